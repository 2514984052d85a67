"""The edges of a graph and their costs, merged and laid out for kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from treefield.backends.shared import EPS, PairwiseCost, is_float32, largest_finite
from treefield.validation import all_integral, smallest_dtype

_PADDING = 8


class EdgeLayout(NamedTuple):
    """A cost that edges share, as kernels see it.

    `kind` is the name of its graph rule in `treefield.kernels.rules.registry`. The parameters of the rule are in
    `positions`, or in `table`; without a table, `largest_costs` is the largest cost among the labels up to each label.
    """

    kind: str
    positions: np.ndarray = np.zeros(1)
    table: np.ndarray | None = None
    largest_costs: np.ndarray = np.zeros(1)


@dataclass
class Edges:
    """Edges, each between two sites that no other joins, and their costs: `weights` times a pairwise cost.

    `kind` names the graph rule of the costs; `positions` and `largest_costs` are as in `EdgeLayout`. If `has_tables`,
    the table of edge e starts at ``tables[table_starts[e]]``, [first label][second label], its rows `stride` apart (0:
    as many as the second site has labels). `shared` is the pairwise cost of all edges, None if each has its own.
    """

    sites: np.ndarray
    weights: np.ndarray
    kind: str
    shared: PairwiseCost | None
    factors: np.ndarray | None = None  # the weights without that of the pairwise cost
    tables: np.ndarray = field(default_factory=lambda: np.zeros(1, np.float32))
    table_starts: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    stride: int = 0
    positions: np.ndarray = field(default_factory=lambda: np.zeros(1))
    largest_costs: np.ndarray = field(default_factory=lambda: np.zeros(1))
    has_tables: bool = True
    is_whole: bool = False  # every cost, as given, is an integer
    rounding: float = 0.0  # how far rounding, where parallel edges are merged, can move an energy
    loop_sites: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    loop_costs: list[np.ndarray] = field(default_factory=list)

    def loops(self, starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where edges from a site to itself add to the unary costs, and what."""
        places = [np.arange(starts[site], starts[site] + counts[site]) for site in self.loop_sites]
        costs = [np.diagonal(table)[: counts[i]] for i, table in zip(self.loop_sites, self.loop_costs, strict=True)]
        return np.concatenate(places), np.concatenate(costs)

    def costs(self, edge: int, counts: np.ndarray) -> np.ndarray:
        """The table of one edge, weight included."""
        first, second = (int(counts[site]) for site in self.sites[edge])
        if self.shared is not None and not self.has_tables:
            return self.weights[edge] * self.shared.table(int(counts.max()))[:first, :second]
        stride, start = self.stride or second, self.table_starts[edge]
        rows = self.tables[start : start + first * stride].reshape(first, stride)
        return self.weights[edge] * rows[:, :second].astype(np.float64)

    def measure(self, counts: np.ndarray) -> tuple[float, bool, float]:
        """The largest finite cost of an edge, whether any is forbidden, and a bound on the sum of all.

        `counts` are the label counts of all sites.
        """
        if not len(self.sites):
            return 0.0, False, 0.0
        infinite = self.has_tables and bool(np.isinf(self.tables).any())
        with np.errstate(over="ignore"):  # what is too large is refused with the whole model
            largest = np.abs(self.weights) * self._largest_costs(counts)
            return float(largest.max()), infinite, float(largest.sum())

    def _largest_costs(self, counts: np.ndarray) -> np.ndarray:
        """The largest magnitude of a finite cost of each edge that the labels of its sites can have, without its
        weight."""
        first, second = counts[self.sites].T - 1  # the highest labels
        if not self.has_tables:
            return self.largest_costs[np.maximum(first, second)]
        if self.stride == 0:
            return np.full(len(self.sites), self._largest_cost())
        table = np.abs(self.tables[: len(self.tables) - _PADDING].reshape(-1, self.stride))
        table = np.where(np.isinf(table), 0, table)
        return np.maximum.accumulate(np.maximum.accumulate(table, axis=0), axis=1)[first, second].astype(np.float64)

    def _largest_cost(self) -> float:
        """The largest magnitude of a finite cost, without its weight."""
        if not self.has_tables:
            return float(self.largest_costs[-1])
        return largest_finite(self.tables)

    def message_error(self) -> float:
        """How far rounding in float64 can raise the messages over all edges, one over each.

        A few roundings of each number are not included.
        """
        from treefield.kernels.rules.registry import graph_rule

        error = graph_rule(self.kind).message_error(self.positions) * self._largest_cost()
        return error * float(np.abs(self.weights).sum())

    def forbid(self, cost: float) -> None:
        """Give forbidden pairs a finite cost; weights must not change it, so they go into the tables."""
        if self.stride > 0 or not bool(np.all(self.weights == 1)):
            size = len(self.tables)
            factors, number = np.unique(self.weights, return_inverse=True)
            self.tables = (factors[:, None] * self.tables.astype(np.float64)).reshape(-1)
            self.table_starts = self.table_starts + number * size
            self.weights = np.ones(len(self.weights))
        if not is_float32(cost):
            self.tables = self.tables.astype(np.float64)
        self.tables = np.minimum(self.tables, self.tables.dtype.type(cost))


def shared_edges(sites: np.ndarray, weights: np.ndarray, pairwise: PairwiseCost, counts: np.ndarray) -> Edges:
    """Edges of one pairwise cost, whose own weight becomes part of theirs.

    Parallel edges are merged: their cost must be symmetric unless they all point the same way.
    """
    n_labels = int(counts.max())
    is_whole = pairwise.is_whole() and all_integral(np.append(weights, pairwise.weight))
    is_loop = (sites[:, 0] == sites[:, 1]) & (weights != 0)
    loop_costs: list[np.ndarray] = []
    if is_loop.any():
        given = pairwise.edge_layout(n_labels, False).table
        table = pairwise.table(n_labels) if given is None else given
        loop_costs = [weighted(pairwise.weight, weighted(weight, table)) for weight in weights[is_loop]]
    loop_sites = sites[is_loop, 0]
    proper = sites[:, 0] != sites[:, 1]
    sites, weights = sites[proper], weights[proper]
    pair, first, _ = number_pairs(sites)
    merged = np.bincount(pair, weights=weights, minlength=len(first)) if len(first) < len(sites) else weights
    costs = weighted(pairwise.weight, merged)
    kept = costs != 0
    result = Edges(sites[first][kept], costs[kept], "tables", pairwise, merged[kept], is_whole=is_whole)
    result.loop_sites, result.loop_costs = loop_sites, loop_costs
    result.table_starts = np.zeros(max(1, len(result.sites)), np.int64)
    layout = pairwise.edge_layout(n_labels, bool((result.weights < 0).any()))
    result.kind, result.positions, result.largest_costs = layout.kind, layout.positions, layout.largest_costs
    result.has_tables = layout.table is not None
    if layout.table is not None:
        result.stride = layout.table.shape[1]
        with np.errstate(over="ignore"):
            dtype = np.float32 if np.array_equal(layout.table.astype(np.float32), layout.table) else np.float64
        result.tables = _padded([layout.table.reshape(-1)], np.dtype(dtype))
    if len(first) < len(pair):
        parallel = np.bincount(pair) * np.bincount(pair, weights=np.abs(weights))
        largest = abs(pairwise.weight) * result._largest_cost()
        result.rounding = EPS * largest * float(parallel.sum())
    return result


def own_edges(sites: np.ndarray, weights: np.ndarray, tables: list[np.ndarray], counts: np.ndarray) -> Edges:
    """Edges with a table each; parallel edges are merged."""
    loops = np.flatnonzero((sites[:, 0] == sites[:, 1]) & (weights != 0))
    loop_costs = [weighted(weights[e], tables[e]) for e in loops]
    kept = np.flatnonzero((sites[:, 0] != sites[:, 1]) & (weights != 0))
    pair, first, flipped = number_pairs(sites[kept])
    result = Edges(sites[kept][first], np.ones(len(first)), "tables", None)
    result.loop_sites, result.loop_costs = sites[loops, 0], loop_costs
    result.is_whole = all_integral(weights) and all(all_integral(table) for table in tables)
    members: list[list[int]] = [[] for _ in first]
    for place, number in enumerate(pair.tolist()):
        members[number].append(place)
    chosen: list[np.ndarray] = []
    starts, places, at = np.zeros(max(1, len(first)), np.int64), {}, 0
    for number, group in enumerate(members):
        e = kept[group[0]]
        key = (id(tables[e]), float(weights[e])) if len(group) == 1 else (id(group), 0.0)
        if key not in places:
            table = weighted(weights[e], tables[e]) if weights[e] != 1 else tables[e]
            magnitude = largest_finite(table) if len(group) > 1 else 0.0
            for place in group[1:]:
                other = weighted(weights[kept[place]], tables[kept[place]])
                table = table + (other.T if flipped[place] else other)
                magnitude += largest_finite(other)
            result.rounding += EPS * len(group) * magnitude
            places[key] = at
            chosen.append(np.ascontiguousarray(table).reshape(-1))
            at += table.size
        starts[number] = places[key]
    result.table_starts = starts
    if chosen:
        kept_types = {smallest_dtype(table, "pairwise") for table in chosen}
        result.tables = _padded(chosen, np.result_type(np.float32, *kept_types))
    return result


def weighted(weight: float, table: np.ndarray) -> np.ndarray:
    """A weight times the costs of a table, in float64, or an error where that overflows."""
    with np.errstate(over="ignore"):
        costs = weight * table.astype(np.float64)
    if np.isinf(costs).sum() > np.isinf(table).sum():
        raise ValueError(f"costs are too large: a weight of {weight:g} times {largest_finite(table):g}; scale them")
    return costs


def _padded(tables: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Tables one after the other, and what kernels that read eight numbers at a time may see beyond the last."""
    flat = np.zeros(sum(table.size for table in tables) + _PADDING, dtype)
    np.concatenate(tables, out=flat[:-_PADDING], casting="unsafe")
    return flat


def number_pairs(sites: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number the pairs of sites in the order in which they first appear.

    Returns the pair of each edge, the first edge of each pair, and whether an edge is reversed with respect to the
    first of its pair.
    """
    low, high = sites.min(axis=1, initial=2**31 - 1), sites.max(axis=1, initial=0)
    keys = low.astype(np.int64) << 32 | high
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    pair, first = rank[inverse.reshape(-1)], first[order]
    return pair, first, sites[:, 0] != sites[first[pair], 0]
