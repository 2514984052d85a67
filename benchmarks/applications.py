"""The applications against OpenCV's StereoSGBM and scikit-image's filters; and what a command costs to start."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import problems
import treefield as tf
from measure import table
from peers import imported

BORDER = 18  # pixels: where Tsukuba's truth is not known


def depth():
    """Bad pixels of `treefield stereo --time-limit 2` and of StereoSGBM."""
    cv2 = imported("cv2", "opencv-python-headless")
    rows = []
    for name, (left, right, truth, known, number) in stereo_pairs().items():
        disparity, seconds = by_command(left, right, number)
        row = [
            name,
            f"{left.shape[1]}x{left.shape[0]}x{number}",
            f"{bad(disparity, truth, known):.2%}",
            f"{seconds:.1f}",
        ]
        if cv2 is not None:
            found = {block: sgbm(cv2, left, right, number, block) for block in (3, 5)}
            block = min(found, key=lambda block: bad(found[block][0], truth, known))
            row += [f"{bad(found[block][0], truth, known):.2%} (block {block})", f"{found[block][1]:.1f}"]
        rows.append(row)
    columns = ["", "size", "treefield stereo", "s", "StereoSGBM", "s"]
    table("Bad pixels: known, not on the border, wrong by more than 1", columns[: len(rows[0])], rows)


def stereo_pairs():
    """Pairs with their truth: left, right, disparities, where these are known, how many to look at."""
    pairs = {}
    if problems.data_folder() is not None:
        for name, scale, number in (("tsukuba", 16, 16), ("venus", 8, 20)):
            left, right, truth = (
                problems.picture(f"{name}/{name}-{which}.png") for which in ("imL", "imR", "truedispL")
            )
            truth = truth if truth.ndim == 2 else truth[..., 0]
            pairs[name] = left[..., :3], right[..., :3], truth / scale, inner(truth > 0), number
    data = imported("skimage.data", "scikit-image")
    if data is not None:
        left, right, truth = data.stereo_motorcycle()
        pairs["motorcycle"] = left[..., :3], right[..., :3], truth, inner(np.isfinite(truth) & (truth > 0)), 64
    return pairs


def inner(known):
    """The known pixels except those at the border."""
    within = np.zeros_like(known)
    within[BORDER:-BORDER, BORDER:-BORDER] = True
    return known & within


def bad(disparity, truth, known):
    """The share of known pixels that are wrong by more than 1."""
    return float(np.mean(np.abs(disparity - truth)[known] > 1))


def by_command(left, right, number):
    """The disparities that the command finds with its defaults in two seconds, and those seconds."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, name) for name in ("left.png", "right.png", "disparity.npy")]
        for path, image in zip(paths, (left, right), strict=False):
            tf.io.write_image(path, image)
        done = command("stereo", *paths, "--num-disparities", number, "--time-limit", 2, "--seed", 0, "--json")
        return np.load(paths[2]), json.loads(done.stdout)["seconds"]


def command(*arguments, **environment):
    """Run `treefield` in a separate process."""
    run = [sys.executable, "-c", "from treefield.cli import command; command()", *map(str, arguments)]
    return subprocess.run(run, check=True, capture_output=True, text=True, env=os.environ | environment)


def sgbm(cv2, left, right, number, block):
    """StereoSGBM's disparities with the penalties its documentation recommends, what it finds invalid filled from the
    nearest valid one on the row; and its seconds."""
    up = -(-number // 16) * 16  # it takes multiples of 16
    channels = 1 if left.ndim == 2 else left.shape[2]
    penalties = {"P1": 8 * channels * block**2, "P2": 32 * channels * block**2}
    start = time.perf_counter()
    disparity = cv2.StereoSGBM_create(0, up, block, **penalties).compute(left, right) / 16.0
    seconds = time.perf_counter() - start
    for row in disparity:
        valid = np.flatnonzero(row >= 0)
        if valid.size:
            nearest = np.abs(np.arange(row.size)[:, None] - valid).argmin(axis=1)
            row[:] = row[valid[nearest]]
    return disparity, seconds


def noise():
    """PSNR and SSIM of `denoise` and of scikit-image's denoise_tv_chambolle and median."""
    if imported("skimage.data", "scikit-image") is None:
        return
    from skimage.filters import median
    from skimage.restoration import denoise_tv_chambolle

    rows = []
    for name, (noisy, clean) in noisy_pictures().items():
        axis = -1 if noisy.ndim == 3 else None
        footprint = np.ones((3, 3) if axis is None else (3, 3, 1))
        start = time.perf_counter()
        restored, res = tf.denoise(noisy, channel_axis=axis, time_limit=20, rng=0, full_output=True)
        seconds = time.perf_counter() - start
        smooth = [denoise_tv_chambolle(noisy, weight=w, channel_axis=axis) for w in (0.1, 0.02, 0.05, 0.15, 0.2, 0.3)]
        smooth = [np.round(255 * image).astype(np.uint8) for image in smooth]
        best = max(smooth, key=lambda image, clean=clean: quality(image, clean)[0])
        images = [noisy, restored, smooth[0], best, median(noisy, footprint)]
        rows.append([name, *("{:.2f} {:.3f}".format(*quality(image, clean)) for image in images)])
        rows[-1] += [f"{seconds:.1f}", f"{res.gap:.2%}"]
    columns = ["PSNR (dB), SSIM", "noisy", "denoise", "TV", "TV, best weight", "median", "s", "gap"]
    table("Denoising, all by their defaults; the best of six weights of TV is chosen with the truth", columns, rows)


def noisy_pictures():
    """Noisy images and their truth."""
    from skimage import data

    rng = np.random.default_rng(0)
    pictures = {}
    if problems.data_folder() is not None:
        clean = problems.picture("penguin/penguin-clean.png")
        noisy = problems.picture("penguin/penguin-input.png")
        pictures["Penguin"] = noisy, clean if clean.ndim == 2 else clean[..., 0]
    for name, clean in (("camera", data.camera()), ("coffee", data.coffee())):
        pictures[f"{name}, Gaussian 20"] = np.clip(np.round(rng.normal(clean, 20)), 0, 255).astype(np.uint8), clean
        for share in (0.05, 0.2):
            noisy, dice = clean.copy(), rng.random(clean.shape[:2])
            noisy[dice < share / 2], noisy[dice > 1 - share / 2] = 0, 255
            pictures[f"{name}, salt and pepper {share:.0%}"] = noisy, clean
    return pictures


def quality(image, clean):
    """PSNR and SSIM."""
    from skimage.metrics import peak_signal_noise_ratio, structural_similarity

    axis = -1 if clean.ndim == 3 else None
    return peak_signal_noise_ratio(clean, image), structural_similarity(clean, image, channel_axis=axis)


def startup():
    """The time of `treefield denoise` on 64x64 pixels without its search: with no kernels cached, and with all."""
    rng = np.random.default_rng(0)
    image = np.clip(rng.normal(np.kron([[60, 180], [120, 90]], np.ones((32, 32))), 15), 0, 255).astype(np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "noisy.png")
        tf.io.write_image(path, image)
        rows = []
        for number in range(6):
            start = time.perf_counter()
            out, cache = pathlib.Path(folder, f"{number}.png"), str(pathlib.Path(folder, "cache"))
            done = command("denoise", path, out, "--json", "--seed", 0, NUMBA_CACHE_DIR=cache)
            seconds = time.perf_counter() - start
            rows.append([seconds, seconds - json.loads(done.stdout)["seconds"], done.stderr.strip()])
    warm = np.median([row[:2] for row in rows[1:]], axis=0)
    found = [["empty cache", *rows[0][:2], rows[0][2]], ["cached, median of 5", *warm, rows[1][2]]]
    shown = [[name, f"{seconds:.2f}", f"{more:.2f}", said] for name, seconds, more, said in found]
    table("treefield denoise, 64x64, 256 levels", ["", "s", "of it not search", "said on stderr"], shown)
