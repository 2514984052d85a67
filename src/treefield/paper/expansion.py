"""Alpha-expansion by PyMaxflow, the peer of the paper's stereo and denoising tables."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np

from treefield.models.pairwise import edge_shape


def alpha_expansion(
    mrf: Any, max_cycles: int | None = None, labels: np.ndarray | None = None
) -> tuple[np.ndarray, float, float] | None:
    """The labelling, its energy by treefield's own count and the seconds of PyMaxflow's call alone (imports and the
    change of dtype left out); None where it is not installed.

    It takes a metric shared by all edges; another model is a ValueError. With `max_cycles` it ends after so many. It
    starts from `labels`, which it leaves alone, or from each site's cheapest label.
    """
    try:
        maxflow: Any = importlib.import_module("maxflow")
    except ImportError:
        return None
    weights = np.unique(np.concatenate([np.ravel(weight) for weight in edge_weights(mrf)]))
    if len(weights) != 1:
        raise ValueError(f"PyMaxflow gives all edges one weight, but the model has {len(weights)}")
    table = weights[0] * metric(mrf)
    dtype = np.int64 if whole(mrf.unary) and whole(table) else np.float64  # it knows no other; integers are faster
    unary, table = mrf.unary.astype(dtype), table.astype(dtype)
    start = (
        None if labels is None else labels.astype(np.int8 if mrf.labels < 128 else np.int64)
    )  # a copy, as it wants it
    return timed(lambda: maxflow.fastmin.aexpansion_grid(unary, table, max_cycles, start), mrf)


def timed(solve: Any, mrf: Any) -> tuple[np.ndarray, float, float]:
    """A peer's labelling, its energy and how long the peer took."""
    start = time.perf_counter()
    found = solve()
    seconds = time.perf_counter() - start
    labelling = found.reshape(mrf.shape).astype(np.int32)
    return labelling, mrf.energy(labelling), seconds


def edge_weights(mrf: Any) -> list[np.ndarray]:
    """The weight of every edge, an array per axis."""
    given = [1.0] * len(mrf.shape) if mrf.weights is None else mrf.weights
    weights = [np.broadcast_to(weight, edge_shape(mrf.shape, axis)) for axis, weight in enumerate(given)]
    if any((weight < 0).any() for weight in weights):
        raise ValueError("expansion needs weights of at least 0, but some are negative")
    return weights


def metric(mrf: Any) -> np.ndarray:
    """The pairwise cost as a table, its own weight included, if expansion can take it."""
    table = mrf.pairwise.weight * mrf.pairwise.table(mrf.labels)
    triangles = all((table <= table[:, [c]] + table[c]).all() for c in range(mrf.labels))
    if not (triangles and (table == table.T).all() and (table >= 0).all() and not np.diagonal(table).any()):
        raise ValueError(f"expansion needs a metric, which {mrf.pairwise} is not")
    return table


def whole(costs: np.ndarray) -> bool:
    """Whether all costs are integers."""
    return costs.dtype.kind in "ui" or bool(np.isfinite(costs).all() and (costs == np.rint(costs)).all())
