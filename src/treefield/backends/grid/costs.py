"""The costs of a grid as the kernels read them, and what is known of their size."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from treefield.backends.grid.lattice import Lattice
from treefield.backends.shared import (
    EPS,
    LARGEST_TOTAL,
    Labellings,
    PairwiseCost,
    WeightRange,
    check_total,
    finite_range,
    largest_finite,
)
from treefield.validation import all_integral

if TYPE_CHECKING:
    from treefield.kernels.grid.energy import Grid
    from treefield.kernels.rules.rule import Rule

_EXACT_IN_FLOAT32 = 2.0**24


class GridCosts(Labellings):
    """Checked arrays of a grid: `unary` (shape + labels), the pairwise cost, and the lattice with its weights.

    The weights are one number or array for each direction of edges.

    Attributes
    ----------
    dtype : the arithmetic of messages, float32 where that is exact enough, else float64; energies are always float64.
    scale : the largest magnitude of a finite cost.
    forbidden_cost : the finite cost that replaces +inf in messages; inf if nothing is forbidden.
    """

    has_uniform_labels = True
    has_lines = True

    def __init__(
        self,
        unary: np.ndarray,
        pairwise: PairwiseCost,
        lattice: Lattice,
        weights: list[np.ndarray] | None,
        mask: np.ndarray | None,
    ) -> None:
        self.unary, self.pairwise, self.lattice, self.weights, self.mask = unary, pairwise, lattice, weights, mask
        self.shape: tuple[int, ...] = unary.shape[:-1]
        self.n_labels: int = unary.shape[-1]
        self._tables = pairwise.edge_tables(lattice, self.n_labels)
        self._edge_weights, self._is_uniform = self._effective_weights()
        self._measure()

    @property
    def size(self) -> int:
        """The number of sites."""
        return math.prod(self.shape)

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Whether each axis is periodic."""
        return self.lattice.periodic

    @property
    def label_counts(self) -> np.ndarray:
        """The number of labels of each site."""
        return np.broadcast_to(np.int32(self.n_labels), self.shape)

    @property
    def flat_unary(self) -> np.ndarray:
        """The unary as the kernels read it: [site][label], flat."""
        return self.unary.reshape(-1)

    @property
    def has_edge_tables(self) -> bool:
        """Whether every edge has its own table."""
        return self._tables is not None

    @property
    def has_diagonal(self) -> bool:
        """Whether equal neighbouring labels may cost something."""
        return self._tables is not None or bool(np.diagonal(self.pairwise.table(self.n_labels)).any())

    @functools.cached_property
    def is_whole(self) -> bool:
        """Whether all costs, and so all energies, are integers."""
        factors = [np.array(self.pairwise.weight), *(self.weights or [])]  # rounding may make their product whole
        arrays = (*factors, *self.unary)
        return self.pairwise.is_whole() and all(all_integral(array) for array in arrays)

    @property
    def rounding(self) -> float:
        """How far rounding can raise the energy that an exact method finds above the exact minimum."""
        finite = sum(float(np.abs(np.where(np.isinf(row), 0, row)).sum(dtype=np.float64)) for row in self.unary)
        costs = self._tables if self._tables is not None else self.pairwise.costs(self.n_labels)
        factors = sum(float(np.abs(weight).sum()) for weight in self.edge_weights())
        total = finite + factors * largest_finite(costs)
        terms = self.size + sum(weight.size for weight in self.edge_weights()) + self.n_labels
        table = np.zeros((0, 0)) if self._tables is not None else self.pairwise.table(self.n_labels)
        error = self.rule(np.float64).message_error(table)
        return 8 * terms * EPS * total + 2 * (error.relative * total + error.absolute * factors)

    def rule(self, dtype: DTypeLike | None = None) -> Rule:
        """The message rule of the pairwise cost, for kernels; created on each call, since it may hold a workspace."""
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        if self._tables is not None:
            from treefield.kernels.rules.edge_tables import CappedEdgeTablesRule, EdgeTablesRule

            zero = np.zeros(1, dtype)
            if not self._has_forbidden_pairs:
                return EdgeTablesRule(self._tables, zero)
            largest = np.array([np.finfo(dtype).max], dtype)
            return CappedEdgeTablesRule(self._tables, zero, np.array([self.forbidden_cost], dtype), largest)
        return self.pairwise.rule(self.n_labels, dtype, self._weight_range)

    def kernel_grid(self) -> Grid:
        """Shapes, strides and edge weights in the layout of the kernels.

        The directions along the axes come first: kernels that know no others see these edges, and not those from the
        last site to the first.
        """
        from treefield.kernels.grid.energy import Grid

        axes = range(len(self.shape))
        strides = [math.prod(self.shape[a + 1 :]) for a in axes]
        edges = self.lattice.edge_shapes
        offsets = np.cumsum([0, *(math.prod(shape) for shape in edges)])[:-1]
        edge_strides = [[math.prod(shape[a + 1 :]) for a in axes] for shape in edges]
        return Grid(
            np.array(self.shape),
            np.array(strides),
            offsets,
            np.array(edge_strides).reshape(-1),
            self._edge_weights,
            self._is_uniform,
        )

    def edge_weights(self) -> list[np.ndarray]:
        """The weight of every edge, the pairwise cost's own included: a float64 array for each direction."""
        return [self.pairwise.weight * factor for factor in self._factors()]

    def graph_edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """All edges as pairs of flat site indices, their weights and their tables.

        The weights are without the pairwise cost's own; the tables are None where all edges share one pairwise cost.
        """
        pairs = [np.stack(self.lattice.ends(number), axis=-1) for number in range(len(self.lattice.steps))]
        sites = np.concatenate([pair.reshape(-1, 2) for pair in pairs])
        weights = np.concatenate([weight.reshape(-1) for weight in self._factors()])
        if self._tables is None:
            return sites, weights, None
        return sites, weights, self._tables[: len(sites) * self.n_labels**2].reshape(-1, self.n_labels, self.n_labels)

    def edge_tables_by_direction(self) -> list[np.ndarray]:
        """The tables of the edges in each direction, of shape edges + (labels, labels)."""
        assert self._tables is not None
        shapes = [(*edges, self.n_labels, self.n_labels) for edges in self.lattice.edge_shapes]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        return [
            self._tables[end - math.prod(shape) : end].reshape(shape) for shape, end in zip(shapes, ends, strict=True)
        ]

    def edges_of(self, site: int) -> list[tuple[int, np.ndarray]]:
        """The neighbours of a site, and the costs of the edge to each: [label of the site, label of the neighbour]."""
        found = []
        size, edges = self.n_labels**2, 0
        for number, weight in enumerate(self.edge_weights()):
            first, second = (ends.reshape(-1) for ends in self.lattice.ends(number))
            for edge in np.flatnonzero((first == site) | (second == site)).tolist():
                factor = weight.reshape(-1)[edge]
                if self._tables is None:
                    costs = self.pairwise.table(self.n_labels)
                else:
                    start = (edges + edge) * size
                    costs = self._tables[start : start + size].reshape(self.n_labels, -1).astype(np.float64)
                table = factor * costs if factor != 0 else np.zeros_like(costs)
                found.append((int(second[edge]), table) if first[edge] == site else (int(first[edge]), table.T))
            edges += weight.size
        return found

    def fingerprint_parts(self) -> list[object]:
        """Arrays and values that together identify the model."""
        table = self._tables if self._tables is not None else self.pairwise.table(self.n_labels)
        neighbours = [] if self.lattice.has_axis_edges_only else [self.lattice.neighbours_text]
        return [self.unary, type(self.pairwise).__name__, table, self._edge_weights, *neighbours]

    def best_labels(self) -> np.ndarray:
        """Each site's label of least unary cost."""
        x = np.zeros(self.shape, np.int32)
        for i, costs in enumerate(self.unary):
            if self.n_labels != 2:
                x[i] = costs.argmin(axis=-1)
            else:  # NumPy's argmin takes its time for each site
                np.less(costs[..., 1], costs[..., 0], out=x[i], casting="unsafe")
        return x

    def random_labels(self, rng: np.random.Generator, sites: np.ndarray | None = None) -> np.ndarray:
        """A random label for each site, or for each of the given flat indices."""
        x = rng.integers(self.n_labels, size=self.shape if sites is None else len(sites), dtype=np.int32)
        if self.mask is not None:
            x[~(self.mask if sites is None else self.mask.reshape(-1)[sites])] = 0
        return x

    def _factors(self) -> list[np.ndarray]:
        """The weight of every edge without the pairwise cost's own: a float64 array for each direction."""
        given = [np.array(1.0)] * len(self.lattice.steps) if self.weights is None else self.weights
        if self.mask is not None:
            return self.lattice.mask_weights(given, self.mask)
        shapes = self.lattice.edge_shapes
        return [
            np.broadcast_to(np.asarray(weight, np.float64), shape) for weight, shape in zip(given, shapes, strict=True)
        ]

    def _effective_weights(self) -> tuple[np.ndarray, bool]:
        """The pairwise weight times the edge weights, float64: one per direction if they are uniform, else one per
        edge."""
        is_uniform = self.mask is None and self._has_uniform_weights
        if not is_uniform:
            flat = np.concatenate([weight.reshape(-1) for weight in self._factors()])
        else:
            flat = np.array([1.0] * len(self.lattice.steps) if self.weights is None else self.weights, np.float64)
        with np.errstate(over="ignore"):  # `_measure` raises for what is too large
            return self.pairwise.weight * flat, is_uniform

    @property
    def _has_uniform_weights(self) -> bool:
        """Whether all edges of a direction that the mask leaves have the same weight."""
        return self.weights is None or all(weight.ndim == 0 for weight in self.weights)

    def _measure(self) -> None:
        """Measure the costs: which arithmetic is exact enough, and which finite cost can replace +inf."""
        low, high, forbidden = finite_range(self.unary)
        weights = self._edge_weights
        costs = self._tables if self._tables is not None else self.pairwise.costs(self.n_labels)
        table_low, table_high, forbidden_pairs = finite_range(costs)
        if forbidden_pairs and bool(weights.size and weights.min() < 0):
            raise ValueError(
                "a negative weight times a forbidden (+inf) pairwise cost would be -inf; make the weights at least 0"
            )
        largest = float(np.abs(weights).max()) if weights.size else 0.0
        # a shared table is used up to a constant, tables per edge as they are
        spread = table_high - table_low if self._tables is None else max(abs(table_low), abs(table_high))
        steepest = largest * max(abs(table_low), abs(table_high))
        total = self.size * (max(abs(low), abs(high)) + len(self.lattice.steps) * steepest)
        check_total(total, self.size)
        with np.errstate(over="ignore"):
            narrow = weights.astype(np.float32)
        is_same = np.array_equal(narrow, weights)
        self.scale = max(abs(low), abs(high), largest * spread)
        is_small = self.scale <= _EXACT_IN_FLOAT32
        is_exact = self.unary.dtype != np.float64 and is_small and (self._has_uniform_weights or is_same)
        self.dtype: np.dtype[np.floating] = np.dtype(
            np.float32 if is_exact and not (forbidden or forbidden_pairs) else np.float64
        )
        self._edge_weights = narrow if self.dtype == np.float32 and is_same else weights
        self.forbidden_cost = math.inf
        if forbidden or forbidden_pairs:
            self.forbidden_cost = 2.0 ** math.ceil(math.log2(max(total, 1.0)) + 2)
            if self.unary.dtype == np.float32 and self.forbidden_cost > float(np.finfo(np.float32).max):
                self.unary = self.unary.astype(np.float64)
        used = weights[weights != 0] if forbidden_pairs else weights
        least, most = (float(used.min()), float(used.max())) if used.size else (1.0, 1.0)
        if forbidden_pairs and not 8 * self.forbidden_cost < least * LARGEST_TOTAL:
            raise ValueError(
                f"a weight of {least:g} is too small for an edge with forbidden (+inf) pairs; use 0 for no edge"
            )
        self._weight_range = WeightRange(least, most, self.forbidden_cost)
        self._has_forbidden_pairs = forbidden_pairs
