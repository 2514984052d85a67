"""Lines of a grid, and their costs and labels laid out for lanes.

Everything that belongs to a position along a line is stored in *slots*, in the order in which `kernels.lines` uses it:
the first position, the last, the second, the last but one, ..., at the end the middle.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from treefield.kernels.simd.jit import inline_helper, inline_overload, kernel
from treefield.kernels.simd.lanes import LANES, broadcast, cast, gather, gather_from, load, minimum, store


class Lines(NamedTuple):
    """Where the lines along one axis lie, eight to a block. Flat arrays:

    blocks, active [step]              a step solves these lanes (a bit mask) of this block; all others stay fixed
    sites    [block][lane]             the first site of each line
    exists   [block][direction][lane]  whether there are edges along the line (direction 0) and, per other axis and
                                       diagonal, to the next line: an odd direction is that of edges whose second site
                                       is on the line, the even one after it that of those whose first is
    shifts   [direction]               how far along the line the other ends of these edges are: 0, on diagonals 1 or
                                       -1. None if all are 0: code for shifts is then not compiled
    ring                               whether the line's ends are joined. Its first site then keeps its label, and is
                                       a neighbour of the others: the last two directions are the edges from it to the
                                       second site, and from the last site to it
    edges    [block][direction][lane]  the first of these edges, as an index into all edges, and `edge_strides`
                                       [direction] to the next
    origins  [block][direction][lane]  where the labels of the line itself and of its neighbours begin; label (slot p,
                                       position j) is p `slot_stride` + j `label_stride` further
    contiguous_start [block][direction]        where they begin if the eight of them are contiguous, else -1

    Labels are packed [block][slot][lane], or natural (nothing is contiguous).
    """

    blocks: np.ndarray
    active: np.ndarray
    sites: np.ndarray
    exists: np.ndarray
    shifts: np.ndarray | None
    ring: bool
    edges: np.ndarray
    edge_strides: np.ndarray
    origins: np.ndarray
    contiguous_start: np.ndarray
    slot_stride: int
    label_stride: int
    stride: int
    length: int
    labels: int
    directions: int


class NaturalCosts(NamedTuple):
    """The costs of a grid in their natural order: unary [site][label], and the weights of the edges.

    Unary costs above `forbidden_cost` are forbidden. The weights are `edge_weights` of all edges or, if `uniform`,
    `axis_weights` [direction].
    """

    unary: np.ndarray
    forbidden_cost: np.generic
    edge_weights: np.ndarray
    axis_weights: np.ndarray
    uniform: bool


class Packed(NamedTuple):
    """The costs of the lines: unary [block][slot][label][lane], weights [block][slot][direction][lane].

    There is one slot of weights where all are alike.
    """

    unary: np.ndarray
    weights: np.ndarray
    weight_slots: int


def shift_of(shifts, d):
    """How far along the line the other ends of the edges in a direction are."""


@inline_overload(shift_of)
def _shift_of_overload(shifts, d):
    if isinstance(shifts, types.NoneType):
        return lambda shifts, d: 0
    return lambda shifts, d: shifts[d]


def is_ring(shifts, ring):
    """Whether the ends of lines are joined."""


@inline_overload(is_ring)
def _is_ring_overload(shifts, ring):
    if isinstance(shifts, types.NoneType):
        return lambda shifts, ring: False
    return lambda shifts, ring: ring


@inline_helper
def position(slot, length):
    """The position along the line that a slot holds."""
    if slot == length - 1:
        return length // 2
    return slot // 2 if slot % 2 == 0 else length - 1 - slot // 2


@inline_helper
def slot(j, length):
    """The slot of a position: the other way round."""
    middle = length // 2
    if j == middle:
        return length - 1
    return 2 * j if j < middle else 2 * (length - 1 - j) + 1


@inline_helper
def pack_unary_block(costs, lines, block, out, base):
    """Pack the unary of one block into `out` from `base` on. O(L) per site."""
    labels, length = lines.labels, lines.length
    first = load(lines.sites, block * LANES) * broadcast(labels)
    cap = broadcast(costs.forbidden_cost)
    for p in range(length):
        at = position(p, length) * lines.stride * labels
        row = base + p * labels * LANES
        for s in range(labels):
            store(out, row + s * LANES, minimum(gather(costs.unary, at + s, first), cap))


@kernel
def pack_labels(x, lines, blocks, out):
    """Pack the natural labelling x [site] of these blocks, [block][slot][lane]. O(1) per site."""
    length = lines.length
    if lines.stride == 1:
        for block in blocks:
            for p in range(length):
                store(
                    out,
                    (block * length + p) * LANES,
                    cast(gather_from(x, lines.sites, block * LANES, position(p, length)), out),
                )
        return
    for p in range(length):  # position by position: neighbouring lines are read from the same cache lines
        j = position(p, length) * lines.stride
        for block in blocks:
            store(out, (block * length + p) * LANES, cast(gather_from(x, lines.sites, block * LANES, j), out))


@inline_helper
def pack_weights_block(costs, lines, block, slots, out, base):
    """Pack the weights of one block into `out` from `base` on. O(directions) per site, or per block if uniform."""
    for d in range(lines.directions):
        at = (block * lines.directions + d) * LANES
        for p in range(slots):
            j = position(p, lines.length)
            inside = 0 <= j + shift_of(lines.shifts, d) < lines.length or costs.uniform
            if is_ring(lines.shifts, lines.ring):
                inside = inside and not (d == 0 and p == 0) and not (d == lines.directions - 2 and j != 1)
            if d == 0 and j > lines.length // 2:
                j -= 1  # the edge towards the middle
            for k in range(LANES):
                weight = out.dtype.type(0)
                if lines.exists[at + k] and inside:
                    if costs.uniform:
                        weight = costs.axis_weights[d]
                    elif d > 0 or p < lines.length - 1:
                        weight = costs.edge_weights[lines.edges[at + k] + j * lines.edge_strides[d]]
                out[base + (p * lines.directions + d) * LANES + k] = weight


@kernel
def pack_unary(costs, lines, blocks, out):
    """Pack the unary of these blocks, costs above the forbidden cost cut to it. O(L) per site."""
    for block in blocks:
        pack_unary_block(costs, lines, block, out, block * lines.length * lines.labels * LANES)


@kernel
def pack_weights(costs, lines, blocks, slots, out):
    """Pack the weights of these blocks, into one slot if they are uniform. O(directions) per site."""
    for block in blocks:
        pack_weights_block(costs, lines, block, slots, out, block * lines.directions * slots * LANES)
