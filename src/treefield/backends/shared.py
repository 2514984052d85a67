"""Shared by the backends of grids and graphs.

The contract of pairwise costs, ranges of costs, operations on labellings, and trees given by sites.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from treefield.protocols import Trees

if TYPE_CHECKING:
    from treefield.backends.graph.edges import EdgeLayout
    from treefield.backends.grid.lattice import Lattice
    from treefield.kernels.rules.rule import Rule

LARGEST_TOTAL = 1e304  # all costs together must stay below, so that no sum overflows
EPS = float(np.finfo(np.float64).eps)


class WeightRange(NamedTuple):
    """The smallest and the largest weight of an edge, and the cost of a forbidden pair, weight included."""

    least: float
    largest: float
    forbidden: float


class PairwiseCost(Protocol):
    """The cost of two neighbouring labels before the weights of edges; `treefield.Pairwise` implements it."""

    weight: float

    def table(self, n_labels: int) -> np.ndarray:
        """The costs as a float64 array [first label, second label], without the weight."""

    def costs(self, n_labels: int) -> np.ndarray:
        """Every value of the table at least once, in any order."""

    def is_whole(self) -> bool:
        """Whether every cost is an integer."""

    def rule(self, n_labels: int, dtype: np.dtype, weights: WeightRange) -> Rule:
        """The message rule for kernels, in the arithmetic of `dtype`."""

    def edge_tables(self, lattice: Lattice, n_labels: int) -> np.ndarray | None:
        """The tables of all edges of a grid, flat; None if all edges share one."""

    def edge_layout(self, n_labels: int, has_negative_weights: bool) -> EdgeLayout:
        """How the kernels of graphs see the cost."""


def is_float32(number: float) -> bool:
    """Whether float32 holds a number exactly."""
    with np.errstate(over="ignore"):
        return float(np.float32(number)) == number


def largest_finite(costs: np.ndarray) -> float:
    """The largest magnitude of a finite cost; 0 if there is none."""
    low, high, _ = finite_range(costs)
    return max(abs(low), abs(high))


def finite_range(array: np.ndarray) -> tuple[float, float, bool]:
    """The smallest and the largest finite value, and whether there are infinite ones; row by row, to save memory."""
    if array.size == 0:
        return 0.0, 0.0, False
    high = float(array.max())
    if math.isfinite(high):
        return float(array.min()), high, False
    low, high = math.inf, -math.inf
    for row in array if array.ndim > 2 else [array]:
        finite = row[np.isfinite(row)]
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    return (low, high, True) if low <= high else (0.0, 0.0, True)


def check_total(total: float, size: int) -> None:
    """Raise if the costs of `size` sites may add up to more than float64 sums can hold."""
    if not total < LARGEST_TOTAL:
        raise ValueError(f"costs are too large: over {size} sites they may add up to {total:g}; scale them")


class Labellings:
    """Operations on labellings that need no costs."""

    shape: tuple[int, ...]
    n_labels: int

    def apply_components(self, x: np.ndarray, y: np.ndarray, numbers: np.ndarray, taken: np.ndarray) -> None:
        """Set `x` to `y`, in place, on the components that are taken."""
        from treefield.kernels.shared.differences import take_components

        take_components(x.reshape(-1), y.reshape(-1), numbers.reshape(-1), taken)

    def hash_components(
        self, x: np.ndarray, y: np.ndarray, numbers: np.ndarray, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """64-bit hashes of each component's sites with their labels in `x`, and with those in `y`."""
        from treefield.kernels.shared.differences import hash_components

        before, after = np.zeros((2, count), np.uint64)
        hash_components(x.reshape(-1), y.reshape(-1), self.n_labels, numbers.reshape(-1), before, after)
        return before, after


def as_site_lists(trees: Trees, shape: tuple[int, ...]) -> list[np.ndarray]:
    """The user's trees as arrays of flat site indices, or an error."""
    if (isinstance(trees, np.ndarray) and trees.ndim == 1) or not isinstance(trees, Iterable):
        raise TypeError(
            f"trees must be a name or a list of site-index arrays, got {type(trees).__name__}; "
            "one tree is a list of one array"
        )
    size = int(np.prod(shape))
    checked = []
    for number, tree in enumerate(trees):
        try:
            sites = np.asarray(tree)
        except ValueError:
            raise ValueError(f"trees[{number}] must be a 1-D array of flat site indices, got {tree!r}") from None
        if sites.dtype.kind not in "ui" or sites.ndim != 1 or sites.size == 0:
            raise ValueError(
                f"trees[{number}] must be a non-empty 1-D array of flat site indices, "
                f"got dtype {sites.dtype} and shape {sites.shape}"
            )
        if sites.min() < 0 or sites.max() >= size:
            raise ValueError(
                f"trees[{number}] names sites {sites.min()} to {sites.max()}, but the model has sites 0 to {size - 1}"
            )
        if len(np.unique(sites)) != len(sites):
            raise ValueError(f"trees[{number}] names a site twice")
        checked.append(sites.astype(np.int64))
    if not checked:
        raise ValueError("trees is an empty list; at least one tree is needed")
    return checked
