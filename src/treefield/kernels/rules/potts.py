"""Potts: equal labels cost nothing, different labels the weight of the edge."""

from typing import NamedTuple

import numpy as np

from treefield.kernels.rules.rule import (
    FEW_ROUNDINGS,
    GraphRule,
    MessageError,
    neighbour_label,
    register,
    round_to_unit,
    scan_graph_labels,
    scan_labels,
)
from treefield.kernels.simd.jit import inline_helper
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    broadcast_like,
    gather,
    lane_numbers,
    load,
    lowest_set_bit,
    mask_to_int,
    minimum,
    store,
    where,
    width,
)


class PottsRule(NamedTuple):
    """[a != b], weights of at least 0. A message costs O(L)."""

    def message_error(self, table: np.ndarray) -> MessageError:
        return FEW_ROUNDINGS

    def fits_int16(self) -> bool:
        return True

    def positions(self) -> np.ndarray:
        return np.zeros(1)


class SignedPottsRule(NamedTuple):
    """[a != b], weights of any sign: the least cost among the *other* labels matters. O(L)."""

    def message_error(self, table: np.ndarray) -> MessageError:
        return FEW_ROUNDINGS

    def fits_int16(self) -> bool:
        return False  # the second least cost starts at infinity

    def positions(self) -> np.ndarray:
        return np.zeros(1)


def _add_edge_cost(kind, cost, weight, s, own_first, prepared, labels):
    # less the constant w: only the neighbour's own label is cheaper than the others
    return where(prepared == broadcast_like(prepared, s), cost - weight, cost)


def _message(kind, weight, edge, own_first, low, h, base, out, at, labels):
    step = width(h)
    for s in range(labels):
        store(out, at + s * step, minimum(load(h, base + s * step) - low, weight))


def _signed_message(kind, weight, edge, own_first, low, h, base, out, at, labels):
    step = width(h)
    # the least cost of another label is `low`, or the second least where this label is the only one at `low`
    second = broadcast(h.dtype.type(np.inf))
    least = broadcast(h.dtype.type(np.inf))
    for s in range(labels):
        cost = load(h, base + s * step) - low
        second = minimum(second, where(least < cost, cost, least))
        least = minimum(least, cost)
    for s in range(labels):
        cost = load(h, base + s * step) - low
        other = where(cost == least, second, least)
        store(out, at + s * step, minimum(cost, other + weight))


def _argmin_given(kind, weight, edge, own_first, low, h, base, x, labels):
    kept = gather(h, base, x * broadcast(np.int32(LANES)) + lane_numbers()) - low
    result = x
    if mask_to_int(weight <= kept) != 0:
        lowest = x
        for s in range(labels - 1, -1, -1):
            lowest = where(load(h, base + s * LANES) == low, broadcast(np.int32(s)), lowest)
        leaving = (weight < kept) | ((weight == kept) & (lowest < x))
        result = where(leaving, lowest, x)
    return result


def _edge_cost(kind, weight, edge, a, b, labels):
    return where(a == b, weight - weight, weight)


_SHARED = {
    "prepare": neighbour_label,
    "add_edge_cost": _add_edge_cost,
    "edge_cost": _edge_cost,
    "can_overwrite": True,
    "uses_edge_numbers": False,
}
register(PottsRule, message=_message, argmin_given=_argmin_given, **_SHARED)
register(SignedPottsRule, message=_signed_message, argmin_given=scan_labels, **_SHARED)


# --- graphs ---------------------------------------------------------------------------------------------------------


def _graph_edge_cost(graph, edge, a, b):
    return graph.weights[edge] if a != b else 0.0


def _graph_absorb(graph, link, label, sign, rounder, h, at, count):
    if label < count:
        h[at + label] -= sign * round_to_unit(graph.weights[link >> 1], rounder)


def _graph_send(graph, link, h, at, count, low, out, others):
    weight = graph.weights[link >> 1]
    if weight >= 0:
        most = broadcast(low + weight)
        for s in range(0, others, LANES):
            store(out, s, minimum(load(h, at + s), most) if s < count else most)
        return
    second, best = np.inf, -1
    for s in range(count):
        if h[at + s] == low and best < 0:
            best = s
        elif h[at + s] < second:
            second = h[at + s]
    for s in range(others):
        other = (second if s == best else low) + weight
        out[s] = h[at + s] if s < count and h[at + s] < other else other


_scan = scan_graph_labels(_graph_edge_cost)


@inline_helper
def _graph_argmin_given(graph, link, h, at, count, low, label):
    weight = graph.weights[link >> 1]
    if weight >= 0:
        if label < count and h[at + label] < low + weight:
            return np.int64(label)
        for s in range(0, count, LANES):
            lows = mask_to_int(load(h, at + s) == broadcast(low))
            if lows != 0:
                best = s + lowest_set_bit(lows)
                return np.int64(label) if label < best and h[at + label] == low + weight else best
    return _scan(graph, link, h, at, count, low, label)


def _graph_message_error(positions):
    return 0.0


GRAPH_RULE = GraphRule(
    name="potts",
    edge_cost=_graph_edge_cost,
    absorb=_graph_absorb,
    send=_graph_send,
    argmin_given=_graph_argmin_given,
    message_error=_graph_message_error,
)
