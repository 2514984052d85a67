"""Time limits: what was asked for and what was taken, for each application and solver, at three sizes."""

import time

import numpy as np

import treefield as tf
from measure import table

LIMITS = (1.0, 3.0, 10.0)
SIDES = (64, 1024, 3464)  # pixels; the last one is 12 megapixels
SOLVERS = ("auto", "t_icm", "t_ils", "trw", "loopy_bp", "anneal", "genetic", "icm")
ALLOWED = 0.1, 0.3  # of the limit, or seconds: whichever is more


def limits():
    """Seconds asked for and taken by each application and solver, from 64 x 64 to 12 megapixels."""
    rows = []
    for name, create in {**APPLICATIONS, **{f"{m} (8 labels)": solver_call(m) for m in SOLVERS}}.items():
        create(SIDES[0])(1.0)  # compiles
        for side in SIDES:
            call = create(side)
            call(0.5)  # compiles what only large models need
            taken = [seconds(lambda limit=limit, call=call: call(limit)) for limit in LIMITS]
            rows.append([name, f"{side} x {side}", *(f"{each:.2f}" for each in taken), verdict(taken)])
            print("  ".join(rows[-1]), flush=True)
    columns = ["call", "size", *(f"{limit:g} s" for limit in LIMITS), "longest excess"]
    table("Seconds taken for each time limit", columns, rows)


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def verdict(taken):
    """The greatest excess in seconds, marked where it is more than allowed."""
    excess = [each - limit for each, limit in zip(taken, LIMITS, strict=True)]
    share, most = ALLOWED
    is_late = any(each > max(share * limit, most) for each, limit in zip(excess, LIMITS, strict=True))
    return f"{max(excess):+.2f}{' LATE' if is_late else ''}"


def scene(side):
    """A smooth picture with edges, 0..255."""
    rows, columns = np.ogrid[:side, :side]
    waves = np.sin(rows / 37.0) * np.cos(columns / 51.0) + 0.5 * np.sin((rows + 2 * columns) / 91.0)
    return 128 + 70 * np.sign(waves) * np.abs(waves) ** 0.5


def denoise_call(side, channels=None):
    clean = scene(side) if channels is None else np.stack([scene(side)] * channels, axis=-1)
    noisy = np.clip(np.random.default_rng(0).normal(clean, 20), 0, 255).astype(np.uint8)
    axis = None if channels is None else -1
    return lambda limit: tf.denoise(noisy, channel_axis=axis, time_limit=limit, tol=0, rng=0)


def segment_call(side):
    image = np.clip(np.random.default_rng(0).normal(scene(side), 30), 0, 255).astype(np.uint8)
    return lambda limit: tf.segment(image, 3, time_limit=limit, tol=0, rng=0)


def inpaint_call(side):
    image, mask = scene(side).astype(np.uint8), np.zeros((side, side), bool)
    hole = slice(side // 4, side // 4 + min(side // 4, 200))
    mask[hole, hole] = True
    return lambda limit: tf.inpaint(image, mask, time_limit=limit, tol=0, rng=0)


def stereo_call(side):
    rng = np.random.default_rng(0)
    right = np.clip(rng.normal(scene(side + 16), 40), 0, 255).astype(np.uint8)[:side]
    left = np.roll(right, 5, axis=1)[:, :side]
    return lambda limit: tf.stereo(left, right[:, :side], num_disparities=16, time_limit=limit, tol=0, rng=0)


def ising_call(side):
    rng = np.random.default_rng(0)
    fields, across = rng.uniform(-1, 1, (side, side)), rng.uniform(-1, 1, (side - 1, side))
    couplings = across, rng.uniform(-1, 1, (side, side - 1))
    return lambda limit: tf.ising(fields, couplings, time_limit=limit, tol=0, rng=0)


def solver_call(method):
    """A function of a side that creates the call of a solver on a Potts model with 8 labels."""

    def create(side):
        unary = np.random.default_rng(0).integers(0, 60, (side, side, 8)).astype(np.uint8)
        mrf = tf.GridMRF(unary, tf.Potts(20))
        return lambda limit: tf.minimize(mrf, method=method, time_limit=limit, rng=None if method == "trw" else 0)

    return create


APPLICATIONS = {
    "denoise": denoise_call,
    "denoise, colour": lambda side: denoise_call(side, 3),
    "segment": segment_call,
    "inpaint": inpaint_call,
    "stereo": stereo_call,
    "ising": ising_call,
}
