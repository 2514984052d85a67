"""Alpha-expansion by PyMaxflow, the peer of the paper's stereo and denoising tables."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from treefield.models.grid import GridMRF, edge_shape
from treefield.validation import all_integral


class _Fastmin(Protocol):
    """The part of PyMaxflow that is used."""

    def aexpansion_grid(
        self, unary: np.ndarray, binary: np.ndarray, max_cycles: int | None, labels: np.ndarray | None
    ) -> np.ndarray: ...


def alpha_expansion(
    mrf: GridMRF, max_cycles: int | None = None, labels: np.ndarray | None = None
) -> tuple[np.ndarray, float, float] | None:
    """The labelling, its energy as treefield computes it, and the seconds of PyMaxflow's call alone (imports and the
    conversion of dtypes left out); None if it is not installed.

    It takes a metric shared by all edges; another model is a ValueError. It stops after `max_cycles`. It
    starts from `labels`, which it leaves alone, or from each site's cheapest label.
    """
    try:
        fastmin: _Fastmin = importlib.import_module("maxflow").fastmin
    except ImportError:
        return None
    weights = np.unique(np.concatenate([np.ravel(weight) for weight in edge_weights(mrf)]))
    if len(weights) != 1:
        raise ValueError(f"PyMaxflow gives all edges one weight, but the model has {len(weights)}")
    table = weights[0] * metric_table(mrf)
    dtype = (
        np.int64 if is_integral(mrf.unary) and is_integral(table) else np.float64
    )  # it knows no other; integers are faster
    unary, table = mrf.unary.astype(dtype), table.astype(dtype)
    start = (
        None if labels is None else labels.astype(np.int8 if mrf.n_labels < 128 else np.int64)
    )  # a copy, as it wants it
    return time_peer(lambda: fastmin.aexpansion_grid(unary, table, max_cycles, start), mrf)


def time_peer(solve: Callable[[], np.ndarray], mrf: GridMRF) -> tuple[np.ndarray, float, float]:
    """A peer's labelling, its energy and how long the peer took."""
    start = time.perf_counter()
    labels = solve()
    seconds = time.perf_counter() - start
    labelling = labels.reshape(mrf.shape).astype(np.int32)
    return labelling, mrf.energy(labelling), seconds


def edge_weights(mrf: GridMRF) -> list[np.ndarray]:
    """The weight of every edge, an array per axis."""
    given: Sequence[ArrayLike] = [1.0] * len(mrf.shape) if mrf.weights is None else mrf.weights
    weights = [np.broadcast_to(weight, edge_shape(mrf.shape, axis)) for axis, weight in enumerate(given)]
    if any((weight < 0).any() for weight in weights):
        raise ValueError("expansion needs weights of at least 0, but some are negative")
    return weights


def metric_table(mrf: GridMRF) -> np.ndarray:
    """The pairwise cost as a table, its own weight included, if expansion can take it."""
    table = mrf.pairwise.weight * mrf.pairwise.table(mrf.n_labels)
    triangles = all((table <= table[:, [c]] + table[c]).all() for c in range(mrf.n_labels))
    if not (triangles and (table == table.T).all() and (table >= 0).all() and not np.diagonal(table).any()):
        raise ValueError(f"expansion needs a metric, which {mrf.pairwise} is not")
    return table


def is_integral(costs: np.ndarray) -> bool:
    """Whether all costs are integers."""
    return all_integral(costs) and bool(np.isfinite(costs).all())
