"""Truncated linear: min(|v_a - v_b|, cutoff) for labels at ascending positions v, weights of at least 0."""

from typing import NamedTuple

import numpy as np

from treefield.kernels.rules.rule import EPS, GraphRule, MessageError, register, round_to_unit, scan_graph_labels
from treefield.kernels.rules.truncated import (
    Truncated,
    argmin_given_truncated,
    largest_difference,
    prepare_position,
    steps_between,
    window_error,
    window_message,
)
from treefield.kernels.simd.lanes import absolute, broadcast, gather, load, minimum, store, width


class LinearRule(NamedTuple):
    """Any cutoff and spacing: a distance transform. A message costs O(L)."""

    truncated: Truncated

    def message_error(self, table: np.ndarray) -> MessageError:
        values, spacing = self.truncated.values, float(self.truncated.spacing[0])
        distances = np.abs(np.subtract.outer(values, values))
        if spacing > 0:
            distances = steps_between(len(values)) * spacing
        used = np.minimum(distances, self.truncated.cutoff)
        # the transform adds up as many rounded steps as there are labels, forward and backward
        return MessageError((4 * len(values) + 8) * EPS, largest_difference(used, table))

    def fits_int16(self) -> bool:
        return True

    def positions(self) -> np.ndarray:
        return self.truncated.values


class LinearWindowRule(NamedTuple):
    """Evenly spaced labels and a low cutoff: `costs` below it by the labels' distance. O(L x window)."""

    truncated: Truncated
    costs: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return window_error(self.truncated, self.costs, table)

    def fits_int16(self) -> bool:
        return True

    def positions(self) -> np.ndarray:
        return self.truncated.values


def _add_edge_cost(kind, cost, weight, s, own_first, prepared, labels):
    return cost + weight * minimum(
        absolute(broadcast(kind.truncated.values[s]) - prepared), broadcast(kind.truncated.cutoff[0])
    )


def _message(kind, weight, edge, own_first, low, h, base, out, at, labels):
    step = width(h)
    values, even, cutoff = kind.truncated.values, kind.truncated.spacing[0], kind.truncated.cutoff[0]
    cap = weight * broadcast(cutoff)
    rise = weight * broadcast(even)
    value = minimum(load(h, base) - low, cap)
    store(out, at, value)
    for s in range(1, labels):
        if even == 0:
            rise = weight * broadcast(h.dtype.type(min(values[s] - values[s - 1], cutoff)))
        value = minimum(minimum(load(h, base + s * step) - low, cap), value + rise)
        store(out, at + s * step, value)
    for s in range(labels - 2, -1, -1):
        if even == 0:
            rise = weight * broadcast(h.dtype.type(min(values[s + 1] - values[s], cutoff)))
        value = minimum(load(out, at + s * step), value + rise)
        store(out, at + s * step, value)


def _edge_cost(kind, weight, edge, a, b, labels):
    d = absolute(gather(kind.truncated.values64, 0, a) - gather(kind.truncated.values64, 0, b))
    return weight * minimum(d, broadcast(kind.truncated.cutoff64[0]))


_SHARED = {
    "prepare": prepare_position,
    "add_edge_cost": _add_edge_cost,
    "argmin_given": argmin_given_truncated,
    "edge_cost": _edge_cost,
    "uses_edge_numbers": False,
}
register(LinearRule, message=_message, can_overwrite=True, **_SHARED)
register(LinearWindowRule, message=window_message, can_overwrite=False, **_SHARED)


# --- graphs: `positions` are those of the labels, and the cutoff ------------------------------------------------------


def _graph_edge_cost(graph, edge, a, b):
    apart = abs(graph.positions[a] - graph.positions[b])
    return graph.weights[edge] * min(apart, graph.positions[len(graph.positions) - 1])


def _graph_absorb(graph, link, label, sign, rounder, h, at, count):
    weight = graph.weights[link >> 1]
    cutoff = graph.positions[len(graph.positions) - 1]
    for s in range(count):
        apart = min(abs(graph.positions[s] - graph.positions[label]), cutoff)
        h[at + s] += sign * round_to_unit(weight * apart, rounder)


def _graph_send(graph, link, h, at, count, low, out, others):
    weight, positions = graph.weights[link >> 1], graph.positions
    most = low + weight * positions[len(positions) - 1]
    labels = max(count, others)
    carried = np.inf
    for s in range(labels):
        if s > 0:
            carried += weight * (positions[s] - positions[s - 1])
        if s < count and h[at + s] < carried:
            carried = h[at + s]
        out[s] = carried if carried < most else most
    for s in range(labels - 2, -1, -1):
        over = out[s + 1] + weight * (positions[s + 1] - positions[s])
        if over < out[s]:
            out[s] = over


def _graph_message_error(positions):
    return 4 * len(positions) * EPS  # the distance transform adds up as many rounded steps as there are labels


GRAPH_RULE = GraphRule(
    name="linear",
    edge_cost=_graph_edge_cost,
    absorb=_graph_absorb,
    send=_graph_send,
    argmin_given=scan_graph_labels(_graph_edge_cost),
    message_error=_graph_message_error,
)
