"""The costs of a graph as the kernels read them, and what is known of their size."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from treefield.backends.graph.edges import Edges
from treefield.backends.shared import (
    EPS,
    Labellings,
    check_total,
    finite_range,
    is_float32,
    largest_finite,
)
from treefield.validation import all_integral

if TYPE_CHECKING:
    from treefield.kernels.graph.energy import Graph

_NO_COST = 2.0**20  # the total where nothing costs anything, so that forbidden costs are above noise


class GraphCosts(Labellings):
    """Checked arrays of a graph: unary costs site after site, the label count of each site, and the edges.

    Labellings have the given shape.

    Attributes
    ----------
    scale : the largest magnitude of a finite cost.
    forbidden_cost : the finite cost that replaces +inf; inf if nothing is forbidden.
    unit : a power of 2 small enough not to matter, and large enough that sums of its multiples are exact.
    """

    has_lines = False
    mask = None

    def __init__(
        self,
        unary: np.ndarray,
        label_counts: np.ndarray,
        joined: Edges,
        *,
        offset: float = 0.0,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self.label_counts, self.joined, self.offset = label_counts, joined, offset
        self.size: int = len(label_counts)
        self.shape = (self.size,) if shape is None else shape
        self.n_labels: int = int(label_counts.max())
        self.starts = np.concatenate([[0], np.cumsum(label_counts, dtype=np.int64)])
        self._has_whole_costs = joined.is_whole and all_integral(unary)
        if len(joined.loop_sites):
            unary = unary.astype(np.float64)
            places, costs = joined.loops(self.starts, label_counts)
            joined.rounding += _rounding_of_sums(unary, places, costs)
            np.add.at(unary, places, costs)
        self.unary = unary
        self._measure()
        dtype = np.result_type(self.unary, joined.tables)  # one for all costs: kernels are compiled for each
        self.unary, joined.tables = self.unary.astype(dtype, copy=False), joined.tables.astype(dtype, copy=False)

    @property
    def edges(self) -> np.ndarray:
        """The first and the second site of each edge, (m, 2)."""
        return self.joined.sites

    @property
    def has_uniform_labels(self) -> bool:
        """Whether all sites have the same number of labels."""
        return bool(self.starts[-1] == self.size * self.n_labels)

    @property
    def unaries(self) -> list[np.ndarray]:
        """The cost of each label, a float64 array for each site; +inf where forbidden."""
        costs = self.unary.astype(np.float64)
        costs[costs >= self.forbidden_cost] = math.inf
        return np.split(costs, self.starts[1:-1])

    def edge_costs(self, edge: int) -> np.ndarray:
        """The costs of an edge, weight included: float64, [label of the first site, label of the second]."""
        table = self.joined.costs(edge, self.label_counts)
        return np.where(table >= self.forbidden_cost, math.inf, table)

    @property
    def is_whole(self) -> bool:
        """Whether every energy is an integer."""
        return self._has_whole_costs and float(self.offset).is_integer()

    @functools.cached_property
    def message_error(self) -> float:
        """How far rounding can raise the sum of all messages of one pass, in float64, and merging edges any energy."""
        return self.joined.message_error() + self.joined.rounding

    @property
    def rounding(self) -> float:
        """How far rounding can raise the energy that an exact method finds above the exact minimum."""
        terms = self.size + len(self.edges) + self.n_labels
        roundings = self.unit + 2 * EPS * (self._total + abs(self.offset))
        return 4 * terms * roundings + 2 * self.message_error

    def fingerprint_parts(self) -> list[object]:
        """Arrays and values that together identify the model."""
        return [*self.kernel_graph, self.offset]

    def best_labels(self) -> np.ndarray:
        """Each site's label of least unary cost."""
        from treefield.kernels.graph.energy import best_labels

        x = np.empty(self.shape, np.int32)
        best_labels(self.kernel_graph, x.reshape(-1))
        return x

    def random_labels(self, rng: np.random.Generator, sites: np.ndarray | None = None) -> np.ndarray:
        """A random label for each site, or for each of the given flat indices."""
        counts = self.label_counts if sites is None else self.label_counts[sites]
        x = rng.integers(counts, dtype=np.int32)
        return x.reshape(self.shape) if sites is None else x

    def independent_sites(self, rng: np.random.Generator) -> np.ndarray:
        """Random sites no two of which share an edge."""
        rank = rng.permutation(self.size)
        least = np.full(self.size, self.size)
        np.minimum.at(least, self.edges, rank[self.edges[:, ::-1]])
        return np.flatnonzero(rank < least)

    @functools.cached_property
    def kernel_graph(self) -> Graph:
        """Labels, costs and edges for kernels."""
        from treefield.kernels.graph.energy import Graph, list_neighbours
        from treefield.kernels.rules.registry import graph_code

        sites, joined = self.edges, self.joined
        starts = np.zeros(self.size + 2, np.int64)
        counts = np.bincount(sites.reshape(-1), minlength=self.size)
        starts[2:] = np.cumsum(counts)
        neighbours, links = np.zeros((2, max(1, 2 * len(sites))), np.int32)
        list_neighbours(sites.reshape(-1), starts, neighbours, links)
        return Graph(
            kind=graph_code(joined.kind),
            labels=self.n_labels if self.has_uniform_labels else 0,
            label_starts=self.starts,
            unary=self.unary,
            starts=starts[:-1],
            neighbours=neighbours,
            links=links,
            edges=np.ascontiguousarray(sites.reshape(-1)) if len(sites) else np.zeros(2, np.int32),
            tables=joined.tables,
            table_starts=joined.table_starts,
            stride=joined.stride,
            weights=joined.weights,
            positions=joined.positions,
            forbidden_cost=self.forbidden_cost,
        )

    def _measure(self) -> None:
        """Measure the costs, and give forbidden ones a finite cost beyond what all others can differ by."""
        joined = self.joined
        low, high, forbidden = finite_range(self.unary)
        steepest, forbidden_pairs, total = joined.measure(self.label_counts)
        total += self.size * max(abs(low), abs(high))
        check_total(total, self.size)
        self._total = total
        total = max(total, 1e-290) if total else _NO_COST
        self.scale = max(abs(low), abs(high), steepest)
        self.forbidden_cost = math.inf
        self.unit = 2.0 ** (math.ceil(math.log2(total)) - 50)
        if not (forbidden or forbidden_pairs):
            return
        self.forbidden_cost = 2.0 ** math.ceil(math.log2(total) + 2)
        # a site may have as many forbidden costs as neighbours
        degree = int(np.bincount(self.edges.reshape(-1), minlength=1).max())
        self.unit = 2.0 ** (math.ceil(math.log2(self.forbidden_cost * (degree + 2))) - 52)
        if not is_float32(self.forbidden_cost):
            self.unary = self.unary.astype(np.float64)
        self.unary = np.minimum(self.unary, self.unary.dtype.type(self.forbidden_cost))
        if forbidden_pairs:
            joined.forbid(self.forbidden_cost)


def _rounding_of_sums(unary: np.ndarray, places: np.ndarray, costs: np.ndarray) -> float:
    """How far rounding can move the energy of a labelling where costs, some at the same places, are added."""
    finite = np.abs(np.where(np.isfinite(costs), costs, 0.0)).sum() + largest_finite(unary) * len(np.unique(places))
    return float(EPS * len(places) * finite)
