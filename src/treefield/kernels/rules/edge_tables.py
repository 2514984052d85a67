"""A table per edge: any cost, any weights."""

from typing import NamedTuple

import numpy as np

from treefield.kernels.rules.rule import (
    FEW_ROUNDINGS,
    GraphRule,
    MessageError,
    add_edge_cost,
    is_kind,
    register,
    round_to_unit,
    scan_graph_labels,
    scan_labels,
)
from treefield.kernels.simd.jit import inline_helper, inline_overload
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    broadcast_like,
    cast,
    gather,
    load,
    minimum,
    reduce_min,
    store,
    width,
)


class EdgeTablesRule(NamedTuple):
    """The tables are flat, [edge][first][second]. A message costs O(L^2). The arithmetic is that of `zero`."""

    tables: np.ndarray
    zero: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return FEW_ROUNDINGS

    def fits_int16(self) -> bool:
        return False

    def positions(self) -> np.ndarray:
        return np.zeros(1)


class CappedEdgeTablesRule(NamedTuple):
    """The same with forbidden pairs: weight times cost is cut to `cap`. `largest` is the largest finite number."""

    tables: np.ndarray
    zero: np.ndarray
    cap: np.ndarray
    largest: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return FEW_ROUNDINGS

    def fits_int16(self) -> bool:
        return False

    def positions(self) -> np.ndarray:
        return np.zeros(1)


def _weighted(kind, weight, entry):
    """weight * entry, cut to the cap of the kind."""


@inline_overload(_weighted)
def _weighted_overload(kind, weight, entry):
    if is_kind(kind, EdgeTablesRule):
        return lambda kind, weight, entry: weight * entry

    def capped(kind, weight, entry):
        # forbidden entries are infinite, and times 0, the weight of no edge, they would be NaN
        finite = minimum(entry, broadcast_like(weight, kind.largest[0]))
        return minimum(weight * finite, broadcast_like(weight, kind.cap[0]))

    return capped


def _prepare(kind, edge, own_first, x, labels):
    return edge * broadcast(labels * labels) + cast(x, np.int64) * broadcast(1 if own_first else labels)


def _add_edge_cost(kind, cost, weight, s, own_first, prepared, labels):
    entry = gather(kind.tables, s * (labels if own_first else 1), prepared)
    return cost + _weighted(kind, weight, cast(entry, kind.zero))


def _message(kind, weight, edge, own_first, low, h, base, out, at, labels):
    step = width(h)
    for s in range(labels):
        prepared = edge * broadcast(labels * labels) + broadcast(s * (1 if own_first else labels))
        value = add_edge_cost(kind, load(h, base) - low, weight, 0, own_first, prepared, labels)
        for t in range(1, labels):
            cost = load(h, base + t * step) - low
            value = minimum(add_edge_cost(kind, cost, weight, t, own_first, prepared, labels), value)
        store(out, at + s * step, value)


def _edge_cost(kind, weight, edge, a, b, labels):
    index = edge * broadcast(labels * labels) + cast(a, np.int64) * broadcast(labels) + cast(b, np.int64)
    return _weighted(kind, weight, cast(gather(kind.tables, 0, index), np.float64))


_SHARED = {
    "prepare": _prepare,
    "add_edge_cost": _add_edge_cost,
    "message": _message,
    "argmin_given": scan_labels,
    "edge_cost": _edge_cost,
    "can_overwrite": False,
    "uses_edge_numbers": True,
}
register(EdgeTablesRule, **_SHARED)
register(CappedEdgeTablesRule, **_SHARED)


# --- graphs: the table of edge e begins at ``tables[table_starts[e]]`` ------------------------------------------------


@inline_helper
def _row_length(graph, edge):
    """How far apart the rows of an edge's table are: a stride of 0 is the number of labels of the second site."""
    if graph.stride > 0:
        return graph.stride
    site = graph.edges[2 * edge + 1]
    return graph.labels if graph.labels > 0 else graph.label_starts[site + 1] - graph.label_starts[site]


def _graph_edge_cost(graph, edge, a, b):
    return graph.weights[edge] * graph.tables[graph.table_starts[edge] + a * _row_length(graph, edge) + b]


def _graph_absorb(graph, link, label, sign, rounder, h, at, count):
    edge = link >> 1
    weight, row, start = graph.weights[edge], _row_length(graph, edge), graph.table_starts[edge]
    if link & 1:
        for s in range(count):
            h[at + s] += sign * round_to_unit(weight * graph.tables[start + label * row + s], rounder)
    else:
        for s in range(count):
            h[at + s] += sign * round_to_unit(weight * graph.tables[start + s * row + label], rounder)


def _graph_send(graph, link, h, at, count, low, out, others):
    edge = link >> 1
    weight, row, start = graph.weights[edge], _row_length(graph, edge), graph.table_starts[edge]
    if link & 1 == 0:  # the rows of the table are the site's own labels
        for s in range(0, others, LANES):
            best = broadcast(np.inf)
            for t in range(count):
                costs = cast(load(graph.tables, start + t * row + s), np.float64)
                best = minimum(broadcast(h[at + t]) + broadcast(weight) * costs, best)
            store(out, s, best)
    else:
        for s in range(others):
            best = broadcast(np.inf)
            for t in range(0, count, LANES):
                costs = cast(load(graph.tables, start + s * row + t), np.float64)
                best = minimum(load(h, at + t) + broadcast(weight) * costs, best)
            out[s] = reduce_min(best)


def _graph_message_error(positions):
    return 0.0


GRAPH_RULE = GraphRule(
    name="tables",
    edge_cost=_graph_edge_cost,
    absorb=_graph_absorb,
    send=_graph_send,
    argmin_given=scan_graph_labels(_graph_edge_cost),
    message_error=_graph_message_error,
)
