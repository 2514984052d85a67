"""Exact search on lines: eight rows (or columns, or pillars) advance together, one lane each.

A line is searched from both ends to its middle, so that two chains of operations are in flight and hide each other's
latency. Costs and labels are packed as `kernels.packing` says.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.grid.packing import is_ring, pack_unary_block, pack_weights_block, shift_of, slot
from treefield.kernels.rules.rule import add_edge_cost, argmin_given, edge_cost, label_count, message, prepare
from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    cast,
    gather,
    gather_from,
    int_to_mask,
    lane,
    lane_numbers,
    load,
    mask_to_int,
    minimum,
    prefetch,
    store,
    where,
)

AHEAD = 128  # labels: costs are asked for so long before they are used


class BlockView(NamedTuple):
    """One block: its number, where its unary costs and weights begin, and strides.

    The stride from a slot's weights to the next slot's is 0 where all are alike; `contiguous_start` is for the line
    itself and the first two next to it.
    """

    block: int
    unary: int
    weights: int
    weight_stride: int
    own: int
    before: int
    after: int


class Scratch(NamedTuple):
    """The workspace of one thread.

    Costs [slot][label][lane], two messages [label][lane], their minima and the new labels [slot][lane].
    """

    h: np.ndarray
    left: np.ndarray
    right: np.ndarray
    lows: np.ndarray
    new: np.ndarray


@inline_helper
def block_view(packed, place, lines, block):
    """A block, whose costs are at `place` in the packed arrays."""
    slots = packed.weight_slots
    size = lines.directions * LANES
    at = block * lines.directions
    return BlockView(
        block,
        place * lines.length * lines.labels * LANES,
        place * slots * size,
        size if slots > 1 else 0,
        lines.contiguous_start[at],
        lines.contiguous_start[at + 1],
        lines.contiguous_start[at + 2],
    )


@inline_helper
def weight_at(packed, view, d, p):
    """The weights in a slot of the edges in a direction."""
    return load(packed.weights, view.weights + p * view.weight_stride + d * LANES)


@inline_helper
def edges_at(lines, view, d, j):
    """The numbers of these edges."""
    return load(lines.edges, (view.block * lines.directions + d) * LANES) + broadcast(j * lines.edge_strides[d])


@inline_helper
def labels_at(x, lines, view, d, p, j):
    """The labels in slot p, which is position j, of a block's lines (d = 0) or of the lines next to them."""
    if d == 0:
        at = view.own
    elif d == 1:
        at = view.before
    elif d == 2:
        at = view.after
    else:
        at = lines.contiguous_start[view.block * lines.directions + d]
    if at >= 0:
        return cast(load(x, at + p * LANES), np.int32)
    offset = p * lines.slot_stride + j * lines.label_stride
    return cast(gather_from(x, lines.origins, (view.block * lines.directions + d) * LANES, offset), np.int32)


@inline_helper
def neighbours_at(x, packed, lines, view, d, p, j):
    """The weights and numbers of a slot's edges in a direction, and the labels at their other ends.

    The direction is not along the line. Beyond the ends of the line the weight is 0, and the edge any other.
    """
    weight = weight_at(packed, view, d, p)
    shift = shift_of(lines.shifts, d)
    edge, q = j, p
    if shift != 0:
        if not 0 <= j + shift < lines.length:
            weight = broadcast(packed.weights.dtype.type(0))
            edge = (0 if shift < 0 else lines.length - 1) - shift
        q = slot(edge + shift, lines.length)
    return weight, edges_at(lines, view, d, edge), labels_at(x, lines, view, d, q, edge + shift)


@inline_helper
def _label_cost(packed, base, row, kind, incoming, h, s, w1, w2, p1, p2, labels):
    i = row + s * LANES
    cost = cast(load(packed.unary, base + i), h) + load(incoming, s * LANES)
    cost = add_edge_cost(kind, add_edge_cost(kind, cost, w1, s, False, p1, labels), w2, s, True, p2, labels)
    store(h, i, cost)
    return cost


@inline_helper
def collect(x, packed, lines, view, p, j, kind, incoming, h):
    """Eq. 8: a slot's costs are its unary, the incoming message and the edges to the fixed lines next to it.

    Returns their minimum. O(directions x L).
    """
    labels = label_count(kind, lines.labels)
    for d in range(3, lines.directions, 2):
        weight, edges, neighbour_labels = neighbours_at(x, packed, lines, view, d, p, j)
        w1, p1 = cast(weight, h), prepare(kind, edges, False, neighbour_labels, labels)
        weight, edges, neighbour_labels = neighbours_at(x, packed, lines, view, d + 1, p, j)
        w2, p2 = cast(weight, h), prepare(kind, edges, True, neighbour_labels, labels)
        for s in range(labels):
            cost = add_edge_cost(kind, load(incoming, s * LANES), w1, s, False, p1, labels)
            store(incoming, s * LANES, add_edge_cost(kind, cost, w2, s, True, p2, labels))
    w1 = cast(weight_at(packed, view, 1, p), h)
    w2 = cast(weight_at(packed, view, 2, p), h)
    p1 = prepare(kind, edges_at(lines, view, 1, j), False, labels_at(x, lines, view, 1, p, j), labels)
    p2 = prepare(kind, edges_at(lines, view, 2, j), True, labels_at(x, lines, view, 2, p, j), labels)
    base = view.unary
    row = p * labels * LANES
    if view.weight_stride > 0:
        ahead = view.weights + (p + AHEAD // labels) * view.weight_stride
        prefetch(packed.weights, ahead)
        prefetch(packed.weights, ahead + view.weight_stride - LANES)
    low = broadcast(h.dtype.type(np.inf))
    low_odd = low  # two running minima, for a shorter chain of operations
    for s in range(0, labels - 1, 2):
        prefetch(packed.unary, base + row + (AHEAD + s) * LANES)
        low = minimum(_label_cost(packed, base, row, kind, incoming, h, s, w1, w2, p1, p2, labels), low)
        low_odd = minimum(_label_cost(packed, base, row, kind, incoming, h, s + 1, w1, w2, p1, p2, labels), low_odd)
    if labels % 2 == 1:
        low = minimum(_label_cost(packed, base, row, kind, incoming, h, labels - 1, w1, w2, p1, p2, labels), low)
    return minimum(low, low_odd)


@inline_helper
def _send(x, packed, lines, view, p, j, edge, own_first, kind, outgoing, scratch):
    h = scratch.h
    low = collect(x, packed, lines, view, p, j, kind, outgoing, h)
    store(scratch.lows, p * LANES, low)
    weight = cast(weight_at(packed, view, 0, p), h)
    labels = label_count(kind, lines.labels)
    message(kind, weight, edges_at(lines, view, 0, edge), own_first, low, h, p * labels * LANES, outgoing, 0, labels)


@inline_helper
def inward(x, packed, lines, view, kind, scratch):
    """Messages from both ends to the middle, whose best labels are returned."""
    labels, length = label_count(kind, lines.labels), lines.length
    h, left, right = scratch.h, scratch.left, scratch.right
    zero = broadcast(h.dtype.type(0))
    for s in range(labels):
        store(left, s * LANES, zero)
        store(right, s * LANES, zero)
    for i in range(length // 2):
        _send(x, packed, lines, view, 2 * i, i, i, True, kind, left, scratch)
        if 2 * i + 1 < length - 1:
            j = length - 1 - i
            _send(x, packed, lines, view, 2 * i + 1, j, j - 1, False, kind, right, scratch)
    for s in range(labels):
        store(left, s * LANES, load(left, s * LANES) + load(right, s * LANES))
    low = collect(x, packed, lines, view, length - 1, length // 2, kind, left, h)
    label = broadcast(np.int32(0))
    for s in range(labels - 1, -1, -1):
        label = where(load(h, ((length - 1) * labels + s) * LANES) == low, broadcast(np.int32(s)), label)
    return label


@inline_helper
def change_at(x, packed, lines, view, p, j, kind, new, old):
    """The change of energy by a slot's new labels, in float64, without the edges along the line."""
    labels = label_count(kind, lines.labels)
    at = view.unary + p * labels * LANES
    after = gather(packed.unary, at, new * broadcast(np.int32(LANES)) + lane_numbers())
    before = gather(packed.unary, at, old * broadcast(np.int32(LANES)) + lane_numbers())
    change = cast(after, np.float64) - cast(before, np.float64)
    for d in range(1, lines.directions):
        factor, edge, neighbour_labels = neighbours_at(x, packed, lines, view, d, p, j)
        weight = cast(factor, np.float64)
        if d % 2 == 0:
            change += edge_cost(kind, weight, edge, new, neighbour_labels, labels) - edge_cost(
                kind, weight, edge, old, neighbour_labels, labels
            )
        else:
            change += edge_cost(kind, weight, edge, neighbour_labels, new, labels) - edge_cost(
                kind, weight, edge, neighbour_labels, old, labels
            )
    return change


@inline_helper
def _outward(x, packed, lines, view, p, j, edge, own_first, kind, toward, toward_old, scratch):
    """One slot's labels, given those of its neighbour towards the middle: (new, old, change of energy)."""
    h = scratch.h
    labels = label_count(kind, lines.labels)
    weight = weight_at(packed, view, 0, p)
    edges = edges_at(lines, view, 0, edge)
    low = load(scratch.lows, p * LANES)
    new = argmin_given(kind, cast(weight, h), edges, own_first, low, h, p * labels * LANES, toward, labels)
    old = labels_at(x, lines, view, 0, p, j)
    if p == 0 and is_ring(lines.shifts, lines.ring):
        new = old
    store(scratch.new, p * LANES, new)
    change = broadcast(0.0)
    moved = mask_to_int(new != old)
    if moved != 0:
        change = change_at(x, packed, lines, view, p, j, kind, new, old)
    if (moved | mask_to_int(toward != toward_old)) != 0:
        weight64 = cast(weight, np.float64)
        if own_first:
            change += edge_cost(kind, weight64, edges, new, toward, labels) - edge_cost(
                kind, weight64, edges, old, toward_old, labels
            )
        else:
            change += edge_cost(kind, weight64, edges, toward, new, labels) - edge_cost(
                kind, weight64, edges, toward_old, old, labels
            )
    return new, old, change


@inline_helper
def _solve(x, flat, packed, lines, view, active, kind, scratch, check):
    """Solve the active lines of a block; returns the change of energy."""
    length = lines.length
    new = inward(x, packed, lines, view, kind, scratch)
    store(scratch.new, (length - 1) * LANES, new)
    old = labels_at(x, lines, view, 0, length - 1, length // 2)
    change = broadcast(0.0)
    changed = mask_to_int(new != old)
    if changed != 0:
        change = change_at(x, packed, lines, view, length - 1, length // 2, kind, new, old)
    left, left_old, right, right_old = new, old, new, old
    for i in range(length // 2 - 1, -1, -1):
        if 2 * i + 1 < length - 1:
            j = length - 1 - i
            right, right_old, more = _outward(
                x, packed, lines, view, 2 * i + 1, j, j - 1, False, kind, right, right_old, scratch
            )
            changed |= mask_to_int(right != right_old)
            change += more
        left, left_old, more = _outward(x, packed, lines, view, 2 * i, i, i, True, kind, left, left_old, scratch)
        changed |= mask_to_int(left != left_old)
        change += more
    taken = active & changed & mask_to_int(change <= broadcast(0.0 if check else np.inf))
    total = 0.0
    for k in range(LANES):
        if taken >> k & 1:
            total += lane(change, k)
    if taken != 0:
        _write(x, flat, lines, view, taken, scratch)
    return total


@inline_helper
def _write(x, flat, lines, view, taken, scratch):
    length, stride, new = lines.length, lines.stride, scratch.new
    if view.own >= 0:
        for p in range(length):
            old = cast(load(x, view.own + p * LANES), np.int32)
            store(x, view.own + p * LANES, cast(where(int_to_mask(taken), load(new, p * LANES), old), x))
    for k in range(LANES):
        if taken >> k & 1:
            site = lines.sites[view.block * LANES + k]
            for p in range(0, length - 1, 2):
                flat[site + p // 2 * stride] = new[p * LANES + k]
            for p in range(1, length - 1, 2):
                flat[site + (length - 1 - p // 2) * stride] = new[p * LANES + k]
            flat[site + length // 2 * stride] = new[(length - 1) * LANES + k]


@kernel
def solve_lines(x, flat, steps, packed, lines, kind, scratch, check, changes):
    """Solve the lines of each step exactly, in turn, on the packed labels `x`; `changes[step]` gets the energy change.

    New labels are written to `x` and to the natural labelling `flat`. With `check` a line takes its new labels only if
    that does not raise the energy, in float64. Two passes, one message and O(directions x L) per site.
    """
    for step in steps:
        view = block_view(packed, lines.blocks[step], lines, lines.blocks[step])
        changes[step] = _solve(x, flat, packed, lines, view, lines.active[step], kind, scratch, check)


@kernel
def solve_lines_unpacked(flat, steps, costs, packed, lines, kind, scratch, check, changes):
    """The same from `NaturalCosts`: each block's costs are packed just before, into the one place in `packed`."""
    for step in steps:
        block = lines.blocks[step]
        pack_unary_block(costs, lines, block, packed.unary, 0)
        pack_weights_block(costs, lines, block, packed.weight_slots, packed.weights, 0)
        view = block_view(packed, 0, lines, block)
        changes[step] = _solve(flat, flat, packed, lines, view, lines.active[step], kind, scratch, check)
