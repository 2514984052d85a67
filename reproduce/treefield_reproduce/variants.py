"""Stereo energies under other conventions (intensity, border, tree set), which the paper does not specify."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import treefield as tf
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts
from treefield_reproduce.datasets import StereoPair
from treefield_reproduce.problems import STEREO_WEIGHT, luminance, stereo_costs

COLUMNS = ("scan-line, nu = 1", "scan-line, nu = 0.4", "random → T-ICM(1)", "scan-line → T-ICM(1)")

_GREYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "luminance, not rounded": lambda image: image[..., :3] @ np.array([0.299, 0.587, 0.114]),
    "the mean of the colours, rounded": lambda image: np.round(image[..., :3].mean(axis=-1)),
    "green alone": lambda image: image[..., 1].astype(np.float64),
}
_OUTSIDE = {"a match outside costs 0": 0.0, "a match outside costs 20": 20.0, "a match outside costs 255": 255.0}


def variants_table(pair: StereoPair, paper: dict[str, int], seed: int) -> list[dict[str, str]]:
    """One row for each rule, with the energies of scan-line and of one sweep."""
    rows = [{"rule": rule} | _energies(mrf, trees, seed) for rule, mrf, trees in _variants(pair)]
    if paper:
        rows.append({"rule": "the paper"} | {column: f"{paper[column]:,}" for column in COLUMNS})
    return rows


def _variants(pair: StereoPair) -> Iterator[tuple[str, GridMRF, str]]:
    images = pair.left, pair.right
    taken = stereo_costs(luminance(pair.left), luminance(pair.right), pair.labels)
    yield "as taken here", _model(taken), "rows-columns"
    for trees in ("alternating", "bands", "combs"):
        yield f"trees: {trees}", _model(taken), trees
    if pair.left.ndim == 3:
        for rule, convert in _GREYS.items():
            left, right = (convert(image) for image in images)
            yield rule, _model(stereo_costs(left, right, pair.labels)), "rows-columns"
    outside = np.arange(pair.left.shape[1])[:, None] < np.arange(pair.labels)
    for rule, cost in _OUTSIDE.items():
        yield rule, _model(np.where(outside, np.float32(cost), taken)), "rows-columns"


def _model(unary: np.ndarray) -> GridMRF:
    return GridMRF(unary.astype(np.float32), Potts(STEREO_WEIGHT))


def _energies(mrf: GridMRF, trees: str, seed: int) -> dict[str, str]:
    line = {nu: tf.scan_line(mrf, nu=nu) for nu in (1.0, 0.4)}
    swept = [tf.t_icm(mrf, x0, trees=trees, maxiter=1, rng=seed) for x0 in ("random", line[0.4].x)]
    energies = (line[1.0].fun, line[0.4].fun, *(res.fun for res in swept))
    return {column: f"{energy:,.0f}" for column, energy in zip(COLUMNS, energies, strict=True)}
