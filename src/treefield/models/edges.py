"""The edges of a graph and what they cost, checked, merged, and laid out for kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treefield.models.pairwise import (
    Pairwise,
    Potts,
    Table,
    TruncatedLinear,
    are_integers,
    as_pairwise,
    is_float32,
    largest_finite,
    refuse_nan,
)
from treefield.validation import as_real_array, smallest_dtype

_PADDING = 8
CODES = {"potts": 0, "linear": 1, "tables": 2}  # how kernels know the kinds


@dataclass
class Edges:
    """Edges, each between two sites that no other joins, and their costs: `weights` times a pairwise cost.

    `kind` is "potts", "linear" (truncated linear, `positions` of the labels and the cutoff, weights of at least 0) or
    "tables": that of edge e starts at ``tables[table_starts[e]]``, [first label][second label], rows `stride` apart (0:
    as many as the second site has labels). `shared` is the pairwise cost of all edges, None where they have their own.
    """

    sites: np.ndarray
    weights: np.ndarray
    kind: str
    shared: Pairwise | None
    factors: np.ndarray | None = None  # the weights without that of the pairwise cost
    tables: np.ndarray = field(default_factory=lambda: np.zeros(1, np.float32))
    table_starts: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    stride: int = 0
    positions: np.ndarray = field(default_factory=lambda: np.zeros(1))
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
        if self.shared is not None and self.kind != "tables":
            return self.weights[edge] * self.shared.table(int(counts.max()))[:first, :second]
        stride, start = self.stride or second, self.table_starts[edge]
        rows = self.tables[start : start + first * stride].reshape(first, stride)
        return self.weights[edge] * rows[:, :second].astype(np.float64)

    def measure(self, counts: np.ndarray) -> tuple[float, bool, float]:
        """The largest finite cost of an edge, given the label counts of all sites; whether any is forbidden; and what
        all may add up to."""
        if not len(self.sites):
            return 0.0, False, 0.0
        infinite = self.kind == "tables" and bool(np.isinf(self.tables).any())
        with np.errstate(over="ignore"):  # what is too large is refused with the whole model
            largest = np.abs(self.weights) * self._largest_costs(counts)
            return float(largest.max()), infinite, float(largest.sum())

    def _largest_costs(self, counts: np.ndarray) -> np.ndarray:
        """The largest magnitude of a finite cost of each edge that the labels of its sites can have, without its
        weight."""
        first, second = counts[self.sites].T - 1  # the highest labels
        if self.kind == "potts":
            return np.maximum(first, second).astype(bool).astype(np.float64)
        if self.kind == "linear":
            spans = self.positions[np.maximum(first, second)] - self.positions[0]
            return np.minimum(spans, self.positions[-1])
        if self.stride == 0:
            return np.full(len(self.sites), self._largest_cost())
        table = np.abs(self.tables[: len(self.tables) - _PADDING].reshape(-1, self.stride))
        table = np.where(np.isinf(table), 0, table)
        return np.maximum.accumulate(np.maximum.accumulate(table, axis=0), axis=1)[first, second].astype(np.float64)

    def _largest_cost(self) -> float:
        """The largest magnitude of a finite cost, without its weight."""
        if self.kind != "tables":
            return float(self.positions[-1])
        return largest_finite(self.tables)

    def message_error(self) -> float:
        """How far rounding can raise the messages over all edges, one over each, in float64, beyond a few roundings of
        each number."""
        if self.kind in ("potts", "tables"):
            return 0.0
        # "linear": the distance transform adds up as many rounded steps as there are labels
        error = 4 * len(self.positions) * self._largest_cost()
        return float(np.finfo(np.float64).eps) * error * float(np.abs(self.weights).sum())

    def forbid(self, big: float) -> None:
        """Give forbidden pairs a finite cost; weights must not change it, so they go into the tables."""
        if self.stride > 0 or not bool(np.all(self.weights == 1)):
            size = len(self.tables)
            factors, number = np.unique(self.weights, return_inverse=True)
            self.tables = (factors[:, None] * self.tables.astype(np.float64)).reshape(-1)
            self.table_starts = self.table_starts + number * size
            self.weights = np.ones(len(self.weights))
        if not is_float32(big):
            self.tables = self.tables.astype(np.float64)
        self.tables = np.minimum(self.tables, self.tables.dtype.type(big))


def as_edges(edges: Any, pairwise: Any, weights: Any, counts: np.ndarray) -> Edges:
    """The edges of a graph as given, checked against its sites' label counts."""
    sites = _checked_sites(edges, len(counts))
    factors = _checked_weights(weights, len(sites))
    if isinstance(pairwise, Pairwise):
        return _shared(sites, factors, pairwise, counts)
    if callable(pairwise) and not isinstance(pairwise, type):  # of as many labels as the sites of an edge have
        return _shared(sites, factors, as_pairwise(pairwise, int(counts.max())), counts, cut=True)
    if isinstance(pairwise, np.ndarray) and pairwise.ndim == 2:
        return _shared(sites, factors, _one_table(pairwise), counts)
    if isinstance(pairwise, list | tuple) and len(pairwise) and np.ndim(pairwise[0]) == 1:  # rows of one table
        return _shared(sites, factors, _one_table(pairwise), counts)
    return _own(sites, factors, pairwise, counts)


def _checked_sites(edges: Any, size: int) -> np.ndarray:
    try:
        sites = np.asarray(edges)
    except ValueError:
        raise ValueError("edges must be an (m, 2) array, but its rows differ in length") from None
    if sites.size == 0:
        return np.zeros((0, 2), np.int32)
    if sites.dtype.kind not in "ui":
        hint = f"; give list({type(edges).__name__}) or an array" if sites.ndim == 0 else ""
        raise TypeError(f"edges must be an (m, 2) array of integers, got dtype {sites.dtype}{hint}")
    if sites.ndim != 2 or sites.shape[1] != 2:
        raise ValueError(f"edges must be an (m, 2) array, the two sites of each edge, got shape {sites.shape}")
    if len(sites) >= 2**30:
        raise ValueError(f"a graph may have up to {2**30 - 1} edges, got {len(sites)}")
    if sites.min() < 0 or sites.max() >= size:
        raise ValueError(f"edges name sites {sites.min()} to {sites.max()}, but the model has sites 0 to {size - 1}")
    return np.ascontiguousarray(sites, np.int32)


def _checked_weights(weights: Any, edges: int) -> np.ndarray:
    if weights is None:
        return np.ones(edges)
    factors = as_real_array(weights, "weights")
    if factors.shape not in ((edges,), ()):
        raise ValueError(f"weights has shape {factors.shape}, expected {(edges,)}, one for each edge")
    factors = np.broadcast_to(factors, (edges,)).astype(np.float64)
    if not np.isfinite(factors).all():
        raise ValueError("weights must be finite; forbid pairs of labels by +inf in a table")
    return factors


def _one_table(pairwise: Any) -> Pairwise:
    table = as_real_array(pairwise, "pairwise")
    if table.ndim == 2 and table.shape[0] != table.shape[1]:
        return _Rectangle(table)
    return Table(table)


class _Rectangle(Table):
    """A table for edges whose two sites differ in their number of labels."""

    def __init__(self, V: np.ndarray) -> None:
        refuse_nan(V, "pairwise")
        self.V = V.astype(np.float64)


def _shared(
    sites: np.ndarray, weights: np.ndarray, pairwise: Pairwise, counts: np.ndarray, *, cut: bool = False
) -> Edges:
    """Edges of one pairwise cost; the pairwise cost's own weight is in theirs. A table that is `cut` may be larger than
    an edge needs."""
    if not hasattr(pairwise, "table") or type(pairwise).table is Pairwise.table:
        raise TypeError(f"{type(pairwise).__name__} is for grids; give a graph's tables as a list, one for each edge")
    labels = int(counts.max())
    table = pairwise.V if isinstance(pairwise, Table) else None
    if table is not None:
        if bool(np.isinf(table).any()):
            _refuse_negative(weights, "pairwise")
        if not cut:
            _check_sizes(sites, counts, np.broadcast_to(table.shape, (len(sites), 2)), "pairwise")
    if table is not None and not (table.shape[0] == table.shape[1] and np.array_equal(table, table.T)):
        _, first, flipped = _pairs(sites)
        if len(first) < len(sites) and bool(flipped.any()):  # an edge there and one back cannot be one weight
            tables = {shape: table[: shape[0], : shape[1]] for shape in {tuple(counts[pair]) for pair in sites}}
            return _own(sites, weights, [tables[tuple(counts[pair])] for pair in sites], counts)
    is_whole = pairwise.is_whole() and are_integers(np.append(weights, pairwise.weight))
    loops = (sites[:, 0] == sites[:, 1]) & (weights != 0)
    loop_costs: list[np.ndarray] = []
    if loops.any():
        whole = pairwise.table(labels) if table is None else table
        loop_costs = [_weighted(pairwise.weight, _weighted(weight, whole)) for weight in weights[loops]]
    loop_sites = sites[loops, 0]
    proper = sites[:, 0] != sites[:, 1]
    sites, weights = sites[proper], weights[proper]
    pair, first, _ = _pairs(sites)
    merged = np.bincount(pair, weights=weights, minlength=len(first)) if len(first) < len(sites) else weights
    costs = _weighted(pairwise.weight, merged)
    kept = costs != 0
    sites, factors = sites[first][kept], merged[kept]
    result = Edges(sites, costs[kept], "tables", pairwise, factors)
    result.loop_sites, result.loop_costs = loop_sites, loop_costs
    _lay_out(result, pairwise, labels)
    result.is_whole = is_whole
    if len(first) < len(pair):
        parallel = np.bincount(pair) * np.bincount(pair, weights=np.abs(weights))
        largest = abs(pairwise.weight) * result._largest_cost()
        result.rounding = float(np.finfo(np.float64).eps) * largest * float(parallel.sum())
    return result


def _lay_out(edges: Edges, pairwise: Pairwise, labels: int) -> None:
    """Choose how kernels see a shared cost."""
    edges.table_starts = np.zeros(max(1, len(edges.sites)), np.int64)
    if isinstance(pairwise, Potts):
        edges.kind, edges.positions = "potts", np.ones(1)
        return
    if isinstance(pairwise, TruncatedLinear) and not bool((edges.weights < 0).any()):
        positions = pairwise.positions(labels)
        if bool((np.diff(positions) >= 0).all()):
            span = float(positions[-1] - positions[0])
            edges.kind = "linear"
            edges.positions = np.append(positions, min(pairwise.cutoff, span))
            return
    table = pairwise.V if isinstance(pairwise, Table) else pairwise.table(labels)
    edges.stride = table.shape[1]
    with np.errstate(over="ignore"):
        dtype = np.float32 if np.array_equal(table.astype(np.float32), table) else np.float64
    edges.tables = _padded([table.reshape(-1)], dtype)


def _own(sites: np.ndarray, weights: np.ndarray, pairwise: Any, counts: np.ndarray) -> Edges:
    """Edges with a table each."""
    tables = _checked_tables(pairwise, len(sites))
    shapes = np.array([table.shape for table in tables], np.int64).reshape(-1, 2)
    _check_sizes(sites, counts, shapes, "pairwise[{}]")
    for e in np.flatnonzero(weights < 0):
        if bool(np.isinf(tables[e]).any()):
            _refuse_negative(weights[e : e + 1], f"pairwise[{e}]")
    loops = np.flatnonzero((sites[:, 0] == sites[:, 1]) & (weights != 0))
    loop_costs = [_weighted(weights[e], tables[e]) for e in loops]
    kept = np.flatnonzero((sites[:, 0] != sites[:, 1]) & (weights != 0))
    pair, first, flipped = _pairs(sites[kept])
    result = Edges(sites[kept][first], np.ones(len(first)), "tables", None)
    result.loop_sites, result.loop_costs = sites[loops, 0], loop_costs
    result.is_whole = are_integers(weights) and all(are_integers(table) for table in tables)
    members: list[list[int]] = [[] for _ in first]
    for place, number in enumerate(pair.tolist()):
        members[number].append(place)
    chosen: list[np.ndarray] = []
    starts, places, at = np.zeros(max(1, len(first)), np.int64), {}, 0
    for number, group in enumerate(members):
        e = kept[group[0]]
        key = (id(tables[e]), float(weights[e])) if len(group) == 1 else (id(group), 0.0)
        if key not in places:
            table = _weighted(weights[e], tables[e]) if weights[e] != 1 else tables[e]
            magnitude = largest_finite(table) if len(group) > 1 else 0.0
            for place in group[1:]:
                other = _weighted(weights[kept[place]], tables[kept[place]])
                table = table + (other.T if flipped[place] else other)
                magnitude += largest_finite(other)
            result.rounding += float(np.finfo(np.float64).eps) * len(group) * magnitude
            places[key] = at
            chosen.append(np.ascontiguousarray(table).reshape(-1))
            at += table.size
        starts[number] = places[key]
    result.table_starts = starts
    if chosen:
        kept_types = {smallest_dtype(table, "pairwise") for table in chosen}
        result.tables = _padded(chosen, np.result_type(np.float32, *kept_types))
    return result


def _weighted(weight: float, table: np.ndarray) -> np.ndarray:
    """A weight times the costs of a table, in float64, or an error where that overflows."""
    with np.errstate(over="ignore"):
        costs = weight * table.astype(np.float64)
    if np.isinf(costs).sum() > np.isinf(table).sum():
        raise ValueError(f"costs are too large: a weight of {weight:g} times {largest_finite(table):g}; scale them")
    return costs


def _padded(tables: list[np.ndarray], dtype: Any) -> np.ndarray:
    """Tables one after the other, and what kernels that read eight numbers at a time may see beyond the last."""
    flat = np.zeros(sum(table.size for table in tables) + _PADDING, dtype)
    np.concatenate(tables, out=flat[:-_PADDING], casting="unsafe")
    return flat


def _checked_tables(pairwise: Any, edges: int) -> list[np.ndarray]:
    if not isinstance(pairwise, list | tuple | np.ndarray):
        raise TypeError(
            "pairwise must be a table, a list with a table for each edge, Potts, TruncatedLinear, TruncatedQuadratic, "
            f"Table or a function of two labels, got {type(pairwise).__name__}"
        )
    if len(pairwise) != edges:
        raise ValueError(f"pairwise has {len(pairwise)} tables, but there are {edges} edges")
    if isinstance(pairwise, np.ndarray):
        if pairwise.ndim != 3:
            raise ValueError(
                f"pairwise has shape {pairwise.shape}, expected one table (labels, labels), or one for each edge "
                "(edges, labels, labels)"
            )
        as_real_array(pairwise, "pairwise")
        if pairwise.size:
            refuse_nan(pairwise, "pairwise")
        return list(pairwise)
    known: dict[int, np.ndarray] = {}  # a table that is given for many edges is looked at, and kept, once
    for number, table in enumerate(pairwise):
        if id(table) in known:
            continue
        array = as_real_array(table.V if isinstance(table, Table) else table, f"pairwise[{number}]")
        if array.ndim != 2:
            raise ValueError(f"pairwise[{number}] must be a table (labels, labels), got shape {array.shape}")
        refuse_nan(array, f"pairwise[{number}]")
        known[id(table)] = array
    return [known[id(table)] for table in pairwise]


def _refuse_negative(weights: np.ndarray, name: str) -> None:
    if bool((weights < 0).any()):
        raise ValueError(
            f"a negative weight ({weights.min():g}) times a forbidden (+inf) cost of {name} would be -inf; make the "
            "weights at least 0"
        )


def _check_sizes(sites: np.ndarray, counts: np.ndarray, shapes: np.ndarray, name: str) -> None:
    wrong = np.flatnonzero((counts[sites] != shapes).any(axis=1))
    if len(wrong):
        e = int(wrong[0])
        first, second = sites[e].tolist()
        expected = tuple(counts[sites[e]].tolist())
        raise ValueError(
            f"{name.format(e)} has shape {tuple(shapes[e].tolist())}, expected {expected}: edge {e} joins site {first} "
            f"of {expected[0]} labels and site {second} of {expected[1]}"
        )


def _pairs(sites: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number the pairs of sites in the order in which they first appear: each edge's pair, each pair's first edge, and
    whether an edge goes the other way than the first of its pair."""
    low, high = sites.min(axis=1, initial=2**31 - 1), sites.max(axis=1, initial=0)
    keys = low.astype(np.int64) << 32 | high
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    pair, first = rank[inverse.reshape(-1)], first[order]
    return pair, first, sites[:, 0] != sites[first[pair], 0]
