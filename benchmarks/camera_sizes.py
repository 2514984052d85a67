"""Pictures as large as a camera makes them, and holes in pictures: time, memory and PSNR next to scikit-image."""

import json
import pathlib
import subprocess
import sys
import time

import numpy as np

import treefield as tf
from measure import table
from peers import imported

SIGMA = 20
CROP = 512  # pixels: a part of the picture that is restored by itself
CORNERS = ((700, 1200), (200, 300), (1300, 2200))
BORDER = 16  # pixels at the sides of a crop, which has fewer similar patches there
HOLE = 40
HOLES = 20  # in each picture


def megapixels():
    """Seconds, peak memory and PSNR of `denoise`, by its defaults, on 6 megapixels of grey and 12 of colour.

    Total variation in the same run, and the same picture cut to 512 x 512.
    """
    if imported("skimage.data", "scikit-image") is None:
        return
    rows = []
    for name in LARGE:
        found = in_process(f"restore_large('{name}')")
        rival = in_process(f"restore_large('{name}', 'tv')")
        cuts = [f"{whole:.2f} / {cut:.2f}" for whole, cut in found["crops"]]
        ratio = found["seconds"] / rival["seconds"]
        rows.append([name, f"{found['seconds']:.1f}", f"{ratio:.1f}", f"{found['peak'] / 1e9:.2f}"])
        rows[-1] += [f"{found['psnr']:.2f}", f"{rival['psnr']:.2f}", ", ".join(cuts)]
    columns = ["picture", "s", "times TV", "peak GB", "PSNR", "PSNR of TV", "in parts of it: whole / cut out"]
    table(f"treefield.denoise, sigma {SIGMA}, by its defaults, and denoise_tv_chambolle with weight 0.1", columns, rows)


def holes():
    """PSNR and seconds of `inpaint` and of a biharmonic filling on 20 holes of 40 x 40 in each of three pictures."""
    if imported("skimage.data", "scikit-image") is None:
        return
    rows = [fill_many(name) for name in ("coffee", "astronaut", "camera")]
    columns = ["picture", "PSNR", "biharmonic", "s", "biharmonic, s"]
    table(f"{HOLES} holes of {HOLE} x {HOLE}: PSNR in the holes (mean), seconds (median)", columns, rows)
    rows = []
    for name in ("cat", "3 megapixels"):
        found = in_process(f"fill_large('{name}')")
        rows.append([name, found["shape"], f"{found['seconds']:.2f}", f"{found['more'] / 1e6:.0f}"])
    table("One hole: seconds once compiled, and memory beyond the image", ["picture", "hole", "s", "MB"], rows)


def in_process(call):
    """The result of a function of this module in a new process, whose peak memory belongs to that call."""
    run = [sys.executable, "-c", f"import json, camera_sizes; print(json.dumps(camera_sizes.{call}))"]
    done = subprocess.run(run, check=True, capture_output=True, text=True, cwd=pathlib.Path(__file__).parent)
    return json.loads(done.stdout)


def restore_large(name, method="treefield"):
    """Seconds, peak memory and PSNR of one restoration."""
    clean = LARGE[name]()
    noise = np.random.default_rng(0).standard_normal(clean.shape, np.float32)
    noisy = np.clip(np.round(clean + SIGMA * noise), 0, 255).astype(np.uint8)
    del noise
    axis = -1 if clean.ndim == 3 else None
    if method == "tv":
        from skimage.restoration import denoise_tv_chambolle

        seconds, restored = timed(lambda: denoise_tv_chambolle(noisy, weight=0.1, channel_axis=axis))
        return {"seconds": seconds, "psnr": psnr(255 * restored, clean)}
    part = noisy[:600, :600]
    for limit in ("40 MB", None):  # compiles what tiles and small images need
        tf.denoise(part, channel_axis=axis, rng=0, memory_limit=limit)
    seconds, restored = timed(lambda: tf.denoise(noisy, channel_axis=axis, rng=0))
    peak, crops = own_memory("VmHWM"), []
    for row, column in CORNERS:
        box = slice(row, row + CROP), slice(column, column + CROP)
        alone = tf.denoise(noisy[box], channel_axis=axis, rng=0)
        inner = slice(BORDER, -BORDER), slice(BORDER, -BORDER)
        crops.append([psnr(image[inner], clean[box][inner]) for image in (restored[box], alone)])
    return {"seconds": seconds, "peak": peak, "psnr": psnr(restored, clean), "crops": crops}


def mosaic():
    """Four pictures, mirrored to 6 megapixels: fine detail everywhere."""
    from skimage import data

    rows = [np.concatenate(pair, axis=1) for pair in ((data.camera(), data.brick()), (data.moon(), data.gravel()))]
    return np.pad(np.concatenate(rows), ((0, 976), (0, 1976)), mode="symmetric")


def enlarged(name, shape):
    """A picture enlarged to this shape: as smooth as photographs of that size are."""
    from skimage import data, transform

    image = transform.resize(getattr(data, name)(), shape, order=3)
    return np.round(255 * image).clip(0, 255).astype(np.uint8)


LARGE = {
    "camera, enlarged to 3000 x 2000": lambda: enlarged("camera", (2000, 3000)),
    "four pictures, mirrored to 3000 x 2000": mosaic,
    "coffee, enlarged to 4000 x 3000, colour": lambda: enlarged("coffee", (3000, 4000, 3)),
}


def fill_many(name):
    """A row of the table of holes."""
    from skimage import data
    from skimage.restoration import inpaint_biharmonic

    image = getattr(data, name)()
    axis = -1 if image.ndim == 3 else None
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(HOLES):
        mask = np.zeros(image.shape[:2], bool)
        row, column = (int(rng.integers(20, n - 20 - HOLE)) for n in mask.shape)
        mask[row : row + HOLE, column : column + HOLE] = True
        damaged = np.where(mask if axis is None else mask[..., None], 0, image).astype(np.uint8)
        own = timed(lambda damaged=damaged, mask=mask: tf.inpaint(damaged, mask, channel_axis=axis, rng=0))
        other = timed(lambda damaged=damaged, mask=mask: 255 * inpaint_biharmonic(damaged, mask, channel_axis=axis))
        scores.append([*(psnr(filled[mask], image[mask]) for _, filled in (own, other)), own[0], other[0]])
    quality, seconds = np.mean(scores, axis=0)[:2], np.median(scores, axis=0)[2:]
    return [name, *(f"{value:.2f}" for value in quality), *(f"{value:.2f}" for value in seconds)]


def fill_large(name):
    """Seconds and memory of one hole."""
    from skimage import data

    image = data.cat() if name == "cat" else enlarged("coffee", (1500, 2000, 3))
    mask = np.zeros(image.shape[:2], bool)
    mask[100:140, 150 : 190 if name == "cat" else 210] = True
    tf.inpaint(image[80:160, 130:230], mask[80:160, 130:230], channel_axis=-1, rng=0)  # compiles
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = own_memory("VmRSS")
    seconds, _ = timed(lambda: tf.inpaint(image, mask, channel_axis=-1, rng=0))
    shape = " x ".join(map(str, mask.shape))
    return {"seconds": seconds, "more": own_memory("VmHWM") - before, "shape": f"{mask.sum() // 40} x 40 in {shape}"}


def timed(work):
    """The seconds of a call, and what it returns."""
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def psnr(image, clean):
    return float(10 * np.log10(255**2 / np.mean((image.astype(np.float32) - clean) ** 2, dtype=np.float64)))


def own_memory(which):
    """A figure of this process in bytes: "VmRSS", what it has, or "VmHWM", the most it has had."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(which)).split()[1])
