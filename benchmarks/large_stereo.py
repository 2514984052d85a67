"""Stereo at the size of a camera's image against StereoSGBM: time, memory and bad pixels."""

import json
import resource
import subprocess
import sys
import time

import numpy as np

import treefield as tf
from applications import inner, sgbm
from measure import table
from peers import imported

SHAPE, NUMBER, LIMIT = (1000, 1500), 128, 20.0
SCALE = 2  # of the picture and of its truth
RUNS = {"grey": {}, "colour": {}, 'colour, occlusion="fill"': {"occlusion": "fill"}}


def large_depth():
    """tf.stereo on 1500 x 1000 pixels, 128 disparities, time_limit=20, and StereoSGBM: time, memory, bad pixels."""
    if imported("skimage.data", "scikit-image") is None:
        return
    rows = []
    for name in RUNS:
        figures = in_a_process("treefield", name)
        rows.append([name, "tf.stereo", *figures])
        if "occlusion" not in name and imported("cv2", "opencv-python-headless") is not None:
            rows.append([name, "StereoSGBM", *in_a_process("sgbm", name)])
    columns = ["image", "", "s", "peak MB", "wrong by > 1", "> 2", "note"]
    table(f"Stereo, {SHAPE[1]} x {SHAPE[0]}, {NUMBER} disparities, time_limit={LIMIT:g}", columns, rows)


def in_a_process(method, name):
    """Run a method on the pair in a separate process; returns its figures as text."""
    run = [sys.executable, __file__, method, name]
    found = json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return [
        f"{found['seconds']:.1f}",
        f"{found['peak'] / 1e6:.0f}",
        *(f"{share:.2%}" for share in found["bad"]),
        found["note"],
    ]


def large_pair(is_grey):
    """Middlebury's motorcycle, twice as large: left, right, disparities, and where these are known."""
    from skimage import data
    from skimage.transform import resize

    left, right, truth = data.stereo_motorcycle()
    size = tuple(SCALE * n for n in truth.shape)
    pair = []
    for image in (left[..., :3], right[..., :3]):
        large = resize(image.astype(np.float32), (*size, 3), order=3, preserve_range=True)
        large = fit(np.clip(np.round(large), 0, 255).astype(np.uint8), mode="edge")
        pair.append(np.round(large @ [0.299, 0.587, 0.114]).astype(np.uint8) if is_grey else large)
    truth = fit(SCALE * np.kron(truth, np.ones((SCALE, SCALE), truth.dtype)), constant_values=np.inf)
    return *pair, truth, inner(np.isfinite(truth) & (truth > 0))


def fit(image, **padding):
    """Crop and pad an image to SHAPE."""
    image = image[: SHAPE[0], : SHAPE[1]]
    missing = [(0, wanted - n) for wanted, n in zip(SHAPE, image.shape[:2], strict=True)]
    return np.pad(image, missing + [(0, 0)] * (image.ndim - 2), **padding)


def main(method, name):
    """Print the figures of one method on one pair as JSON."""
    is_grey = name == "grey"
    left, right, truth, known = large_pair(is_grey)
    if method == "treefield":
        axis = None if is_grey else -1
        given = {"num_disparities": NUMBER, "channel_axis": axis, "rng": 0, **RUNS[name]}
        tf.stereo(left[:64, :256], right[:64, :256], maxiter=3, **given)  # compiled
        start = time.perf_counter()
        disparity, res = tf.stereo(left, right, time_limit=LIMIT, full_output=True, **given)
        seconds, note = time.perf_counter() - start, f"gap {res.gap:.2%}"
    else:
        cv2 = imported("cv2", "opencv-python-headless")
        found = {block: sgbm(cv2, left, right, NUMBER, block) for block in (3, 5)}
        block = min(found, key=lambda block: wrong(found[block][0], truth, known, 1))
        (disparity, seconds), note = found[block], f"block {block}"
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # Linux counts in kB
    shares = [wrong(disparity, truth, known, most) for most in (1, 2)]
    print(json.dumps({"seconds": seconds, "peak": peak, "bad": shares, "note": note}))


def wrong(disparity, truth, known, most):
    """The share of known pixels that are wrong by more than `most`."""
    return float(np.mean(np.abs(disparity - truth)[known] > most))


if __name__ == "__main__":
    main(*sys.argv[1:])
