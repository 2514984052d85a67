"""A model solved again after the costs of some sites have changed: anew, from its labelling, from its messages."""

import time

import numpy as np

import problems
import treefield as tf
from measure import table
from search import has_pictures

SIDE = 512
SHARE = 0.01  # of the sites
TOLERANCES = (1e-4, 1e-5)
RUNS = 3


def again():
    """Models of which 1 % of the sites get other unary costs: the time to the same gap, in parts of the first time."""
    models = {"segmentation, 4 labels": regions(), "stereo, 16 labels": slanted_plane()}
    if has_pictures():
        models["Tsukuba (Middlebury)"] = problems.middlebury_tsukuba()
    rows = []
    for name, mrf in models.items():
        for tol in TOLERANCES:
            for where, sites in (("scattered", scattered(mrf)), ("in one block", block(mrf))):
                changed = with_other_costs(mrf, sites)
                tf.minimize(changed, tf.minimize(mrf, rng=0, maxiter=30, tol=0, keep_messages=True), rng=0, maxiter=30)
                rows.append([f"{name}, tol {tol:g}, {where}", *ratios(mrf, changed, tol)])
    columns = ["1 % of the sites changed", "first s", "rounds", "anew / first", "x0=res.x / first", "x0=res / first"]
    table(f"A changed model solved again, {SIDE} x {SIDE} where nothing else is said", columns, rows)


def ratios(mrf, changed, tol):
    """Seconds and rounds of the first search, and the times of the others relative to it: medians of a few runs."""
    times = []
    for seed in range(RUNS):
        first, seconds = timed(mrf, "unary", tol, seed)
        starts = ("unary", first.x, first)
        times.append([seconds, *(timed(changed, x0, tol, seed)[1] for x0 in starts)])
    first_seconds, *others = np.median(times, axis=0)
    return [f"{first_seconds:.2f}", first.nit, *(f"{other / first_seconds:.2f}" for other in others)]


def timed(mrf, x0, tol, seed):
    """A search to a gap, and its seconds, the preparation included."""
    start = time.perf_counter()
    res = tf.minimize(mrf, x0, rng=seed, tol=tol, keep_messages=True)
    return res, time.perf_counter() - start


def with_other_costs(mrf, sites):
    """The model with the unary costs of these sites exchanged among them."""
    unary = mrf.unary.copy()
    flat = unary.reshape(-1, mrf.n_labels)
    flat[sites] = flat[np.random.default_rng(1).permutation(sites)]
    return tf.GridMRF(unary, mrf.pairwise, weights=mrf.weights)


def scattered(mrf):
    """One site in a hundred."""
    return np.random.default_rng(2).choice(mrf.size, round(SHARE * mrf.size), replace=False)


def block(mrf):
    """A square of one site in a hundred, in the middle."""
    side, sites = round((SHARE * mrf.size) ** 0.5), np.arange(mrf.size).reshape(mrf.shape)
    top, left = (length // 2 - side // 2 for length in mrf.shape)
    return sites[top : top + side, left : left + side].reshape(-1)


def regions():
    """Two discs on a background, in noise of more than twice their contrast."""
    rng, (rows, columns) = np.random.default_rng(3), np.indices((SIDE, SIDE))
    truth = (np.hypot(rows - 200, columns - 250) < 120) + 2 * (np.hypot(rows - 380, columns - 150) < 90)
    unary = rng.normal(0, 1, (SIDE, SIDE, 4)) - 0.4 * (truth[..., None] == np.arange(4))
    return tf.GridMRF(unary.astype(np.float32), tf.Potts(2.0))


def slanted_plane():
    """Absolute differences of two views of a textured plane, and of a disc before it, in noise."""
    rng, (rows, columns) = np.random.default_rng(4), np.indices((SIDE, SIDE))
    disparity = np.minimum(columns // 40 + 4 * (np.hypot(rows - 200, columns - 250) < 120), 15)
    scene = np.cumsum(rng.normal(0, 4, (SIDE, SIDE + 16)), axis=1)
    left = scene[rows, columns + 15] + rng.normal(0, 3, (SIDE, SIDE))
    views = [scene[rows, np.clip(columns + 15 - disparity + label, 0, SIDE + 15)] for label in range(16)]
    costs = np.abs(left[..., None] - np.stack(views, axis=-1) + rng.normal(0, 3, (SIDE, SIDE, 16)))
    return tf.GridMRF(np.minimum(costs, 20).round().astype(np.uint8), tf.TruncatedLinear(8.0, 2))
