"""A table of two labels: the compiler knows their number and unrolls every loop over them."""

from typing import NamedTuple

import numpy as np

from treefield.kernels.rules.rule import FEW_ROUNDINGS, MessageError, neighbour_label, register, scan_labels
from treefield.kernels.simd.lanes import broadcast, broadcast_like, load, minimum, store, where, width


class BinaryRule(NamedTuple):
    """The table is flat, [first][second]; any weights. O(1)."""

    table: np.ndarray
    table64: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return FEW_ROUNDINGS

    def fits_int16(self) -> bool:
        return True

    def positions(self) -> np.ndarray:
        return np.zeros(1)


def _add_edge_cost(kind, cost, weight, s, own_first, prepared, labels):
    own = 2 if own_first else 1
    zero = prepared == broadcast_like(prepared, 0)
    return cost + weight * where(zero, broadcast(kind.table[s * own]), broadcast(kind.table[s * own + 3 - own]))


def _message(kind, weight, edge, own_first, low, h, base, out, at, labels):
    step = width(h)
    table = kind.table
    zero = load(h, base) - low
    one = load(h, base + step) - low
    cross = 1 if own_first else 2
    store(out, at, minimum(zero + weight * broadcast(table[0]), one + weight * broadcast(table[3 - cross])))
    store(out, at + step, minimum(zero + weight * broadcast(table[cross]), one + weight * broadcast(table[3])))


def _edge_cost(kind, weight, edge, a, b, labels):
    table = kind.table64
    zero = b == broadcast(np.int32(0))
    first = where(zero, broadcast(table[0]), broadcast(table[1]))
    return weight * where(a == broadcast(np.int32(0)), first, where(zero, broadcast(table[2]), broadcast(table[3])))


register(
    BinaryRule,
    prepare=neighbour_label,
    add_edge_cost=_add_edge_cost,
    message=_message,
    argmin_given=scan_labels,
    edge_cost=_edge_cost,
    can_overwrite=False,
    uses_edge_numbers=False,
    label_count=2,
)
