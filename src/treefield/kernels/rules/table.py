"""A table shared by all edges: any cost, any weights."""

from typing import NamedTuple

import numpy as np

from treefield.kernels.rules.rule import (
    FEW_ROUNDINGS,
    INT16_LIMIT,
    MessageError,
    is_kind,
    neighbour_label,
    register,
    scan_labels,
)
from treefield.kernels.simd.jit import inline_overload
from treefield.kernels.simd.lanes import broadcast, broadcast_like, gather, load, minimum, store, width


class TableRule(NamedTuple):
    """The table is flat, [first][second]. A message costs O(L^2)."""

    table: np.ndarray
    table64: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return FEW_ROUNDINGS

    def fits_int16(self) -> bool:
        return len(self.table) <= INT16_LIMIT

    def positions(self) -> np.ndarray:
        return np.zeros(1)


class CappedTableRule(NamedTuple):
    """A table with forbidden pairs, for edges of different weights. O(L^2).

    Weight times cost is cut to `cap`, so that a forbidden pair costs the same on every edge.
    """

    table: np.ndarray
    table64: np.ndarray
    cap: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return FEW_ROUNDINGS

    def fits_int16(self) -> bool:
        return False  # the cap is larger than all other costs together

    def positions(self) -> np.ndarray:
        return np.zeros(1)


def _weighted(kind, weight, entry):
    """weight * entry, cut to the cap of the kind."""


@inline_overload(_weighted)
def _weighted_overload(kind, weight, entry):
    if is_kind(kind, CappedTableRule):
        return lambda kind, weight, entry: minimum(weight * entry, broadcast_like(weight, kind.cap[0]))
    return lambda kind, weight, entry: weight * entry


def _add_edge_cost(kind, cost, weight, s, own_first, prepared, labels):
    own = labels if own_first else 1
    other = 1 if own_first else labels
    return cost + _weighted(kind, weight, gather(kind.table, s * own, prepared * broadcast_like(prepared, other)))


def _message_of(is_capped):
    """`message`, with or without a cap: known when compiled, it costs the inner loop nothing."""

    def message(kind, weight, edge, own_first, low, h, base, out, at, labels):
        step = width(h)
        own = labels if own_first else 1
        other = 1 if own_first else labels
        for s in range(labels):
            value = weight  # of no meaning before the first label
            for t in range(labels):
                cost = weight * broadcast(kind.table[t * own + s * other])
                if is_capped:
                    cost = minimum(cost, broadcast(kind.cap[0]))
                cost = load(h, base + t * step) - low + cost
                value = cost if t == 0 else minimum(cost, value)
            store(out, at + s * step, value)

    return message


def _edge_cost(kind, weight, edge, a, b, labels):
    return _weighted(kind, weight, gather(kind.table64, 0, a * broadcast(np.int32(labels)) + b))


_SHARED = {
    "prepare": neighbour_label,
    "add_edge_cost": _add_edge_cost,
    "argmin_given": scan_labels,
    "edge_cost": _edge_cost,
    "can_overwrite": False,
    "uses_edge_numbers": False,
}
register(TableRule, message=_message_of(False), **_SHARED)
register(CappedTableRule, message=_message_of(True), **_SHARED)
