"""Exact search on lines: eight rows (or columns, or pillars) advance together, one lane each.

A line is searched from both ends to its middle, so that two chains of operations are in flight and hide each other's
latency. Costs and labels are packed as `kernels.packing` says.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.jit import inlined, kernel
from treefield.kernels.lanes import (
    LANES,
    bits,
    cast,
    full,
    gather,
    gather_from,
    lane,
    lane_numbers,
    load,
    mask_of,
    minimum,
    prefetch,
    store,
    where,
)
from treefield.kernels.packing import is_ring, pack_unary_block, pack_weights_block, shift_of, slot
from treefield.kernels.rules import back, label_count, message, pair, plus, prepare

AHEAD = 128  # labels: costs are asked for so long before they are used


class Here(NamedTuple):
    """One block: its number, where its unary costs and weights begin, how far a slot's weights are from the next slot's
    (0 where all are alike), and `together` for the line itself and the first two beside it."""

    block: int
    unary: int
    weights: int
    weight_stride: int
    own: int
    before: int
    after: int


class Scratch(NamedTuple):
    """One thread's work space: costs [slot][label][lane], two messages [label][lane], their minima and the new labels
    [slot][lane]."""

    h: np.ndarray
    left: np.ndarray
    right: np.ndarray
    lows: np.ndarray
    new: np.ndarray


@inlined
def here_of(packed, place, lines, block):
    """A block, whose costs are at `place` in the packed arrays."""
    slots = packed.weight_slots
    size = lines.directions * LANES
    at = block * lines.directions
    return Here(
        block,
        place * lines.length * lines.labels * LANES,
        place * slots * size,
        size if slots > 1 else 0,
        lines.together[at],
        lines.together[at + 1],
        lines.together[at + 2],
    )


@inlined
def weight_at(packed, here, d, p):
    """The weights in a slot of the edges in a direction."""
    return load(packed.weights, here.weights + p * here.weight_stride + d * LANES)


@inlined
def edges_at(lines, here, d, j):
    """The numbers of these edges."""
    return load(lines.edges, (here.block * lines.directions + d) * LANES) + full(j * lines.edge_strides[d])


@inlined
def labels_at(x, lines, here, d, p, j):
    """The labels in slot p, which is position j, of a block's lines (d = 0) or of those beside them."""
    if d == 0:
        at = here.own
    elif d == 1:
        at = here.before
    elif d == 2:
        at = here.after
    else:
        at = lines.together[here.block * lines.directions + d]
    if at >= 0:
        return cast(load(x, at + p * LANES), np.int32)
    offset = p * lines.slot_stride + j * lines.label_stride
    return cast(gather_from(x, lines.origins, (here.block * lines.directions + d) * LANES, offset), np.int32)


@inlined
def beside_at(x, packed, lines, here, d, p, j):
    """The weights and numbers of a slot's edges in a direction other than along the line, and the labels at their other
    ends. Beyond the ends of the line the weight is 0, and the edge another."""
    weight = weight_at(packed, here, d, p)
    shift = shift_of(lines.shifts, d)
    edge, q = j, p
    if shift != 0:
        if not 0 <= j + shift < lines.length:
            weight = full(packed.weights.dtype.type(0))
            edge = (0 if shift < 0 else lines.length - 1) - shift
        q = slot(edge + shift, lines.length)
    return weight, edges_at(lines, here, d, edge), labels_at(x, lines, here, d, q, edge + shift)


@inlined
def _label_cost(packed, base, row, kind, incoming, h, s, w1, w2, p1, p2, labels):
    i = row + s * LANES
    cost = cast(load(packed.unary, base + i), h) + load(incoming, s * LANES)
    cost = plus(kind, plus(kind, cost, w1, s, False, p1, labels), w2, s, True, p2, labels)
    store(h, i, cost)
    return cost


@inlined
def collect(x, packed, lines, here, p, j, kind, incoming, h):
    """Eq. 8: a slot's costs are its unary, the incoming message and the edges to the fixed lines beside. Returns their
    minimum."""
    labels = label_count(kind, lines.labels)
    for d in range(3, lines.directions, 2):
        weight, edges, beside = beside_at(x, packed, lines, here, d, p, j)
        w1, p1 = cast(weight, h), prepare(kind, edges, False, beside, labels)
        weight, edges, beside = beside_at(x, packed, lines, here, d + 1, p, j)
        w2, p2 = cast(weight, h), prepare(kind, edges, True, beside, labels)
        for s in range(labels):
            cost = plus(kind, load(incoming, s * LANES), w1, s, False, p1, labels)
            store(incoming, s * LANES, plus(kind, cost, w2, s, True, p2, labels))
    w1 = cast(weight_at(packed, here, 1, p), h)
    w2 = cast(weight_at(packed, here, 2, p), h)
    p1 = prepare(kind, edges_at(lines, here, 1, j), False, labels_at(x, lines, here, 1, p, j), labels)
    p2 = prepare(kind, edges_at(lines, here, 2, j), True, labels_at(x, lines, here, 2, p, j), labels)
    base = here.unary
    row = p * labels * LANES
    if here.weight_stride > 0:
        ahead = here.weights + (p + AHEAD // labels) * here.weight_stride
        prefetch(packed.weights, ahead)
        prefetch(packed.weights, ahead + here.weight_stride - LANES)
    low = full(h.dtype.type(np.inf))
    low_odd = low  # two running minima, for a shorter chain of operations
    for s in range(0, labels - 1, 2):
        prefetch(packed.unary, base + row + (AHEAD + s) * LANES)
        low = minimum(_label_cost(packed, base, row, kind, incoming, h, s, w1, w2, p1, p2, labels), low)
        low_odd = minimum(_label_cost(packed, base, row, kind, incoming, h, s + 1, w1, w2, p1, p2, labels), low_odd)
    if labels % 2 == 1:
        low = minimum(_label_cost(packed, base, row, kind, incoming, h, labels - 1, w1, w2, p1, p2, labels), low)
    return minimum(low, low_odd)


@inlined
def _send(x, packed, lines, here, p, j, edge, own_first, kind, outgoing, scratch):
    h = scratch.h
    low = collect(x, packed, lines, here, p, j, kind, outgoing, h)
    store(scratch.lows, p * LANES, low)
    weight = cast(weight_at(packed, here, 0, p), h)
    labels = label_count(kind, lines.labels)
    message(kind, weight, edges_at(lines, here, 0, edge), own_first, low, h, p * labels * LANES, outgoing, 0, labels)


@inlined
def inward(x, packed, lines, here, kind, scratch):
    """Messages from both ends to the middle, whose best labels are returned."""
    labels, length = label_count(kind, lines.labels), lines.length
    h, left, right = scratch.h, scratch.left, scratch.right
    zero = full(h.dtype.type(0))
    for s in range(labels):
        store(left, s * LANES, zero)
        store(right, s * LANES, zero)
    for i in range(length // 2):
        _send(x, packed, lines, here, 2 * i, i, i, True, kind, left, scratch)
        if 2 * i + 1 < length - 1:
            j = length - 1 - i
            _send(x, packed, lines, here, 2 * i + 1, j, j - 1, False, kind, right, scratch)
    for s in range(labels):
        store(left, s * LANES, load(left, s * LANES) + load(right, s * LANES))
    low = collect(x, packed, lines, here, length - 1, length // 2, kind, left, h)
    label = full(np.int32(0))
    for s in range(labels - 1, -1, -1):
        label = where(load(h, ((length - 1) * labels + s) * LANES) == low, full(np.int32(s)), label)
    return label


@inlined
def change_at(x, packed, lines, here, p, j, kind, new, old):
    """What a slot's new labels change, in float64, but for the edges along the line."""
    labels = label_count(kind, lines.labels)
    at = here.unary + p * labels * LANES
    after = gather(packed.unary, at, new * full(np.int32(LANES)) + lane_numbers())
    before = gather(packed.unary, at, old * full(np.int32(LANES)) + lane_numbers())
    change = cast(after, np.float64) - cast(before, np.float64)
    for d in range(1, lines.directions):
        factor, edge, beside = beside_at(x, packed, lines, here, d, p, j)
        weight = cast(factor, np.float64)
        if d % 2 == 0:
            change += pair(kind, weight, edge, new, beside, labels) - pair(kind, weight, edge, old, beside, labels)
        else:
            change += pair(kind, weight, edge, beside, new, labels) - pair(kind, weight, edge, beside, old, labels)
    return change


@inlined
def _outward(x, packed, lines, here, p, j, edge, own_first, kind, toward, toward_old, scratch):
    """One slot's labels, given those of its neighbour towards the middle: (new, old, what they change)."""
    h = scratch.h
    labels = label_count(kind, lines.labels)
    weight = weight_at(packed, here, 0, p)
    edges = edges_at(lines, here, 0, edge)
    low = load(scratch.lows, p * LANES)
    new = back(kind, cast(weight, h), edges, own_first, low, h, p * labels * LANES, toward, labels)
    old = labels_at(x, lines, here, 0, p, j)
    if p == 0 and is_ring(lines.shifts, lines.ring):
        new = old
    store(scratch.new, p * LANES, new)
    change = full(0.0)
    moved = bits(new != old)
    if moved != 0:
        change = change_at(x, packed, lines, here, p, j, kind, new, old)
    if (moved | bits(toward != toward_old)) != 0:
        weight64 = cast(weight, np.float64)
        if own_first:
            change += pair(kind, weight64, edges, new, toward, labels) - pair(
                kind, weight64, edges, old, toward_old, labels
            )
        else:
            change += pair(kind, weight64, edges, toward, new, labels) - pair(
                kind, weight64, edges, toward_old, old, labels
            )
    return new, old, change


@inlined
def _solve(x, flat, packed, lines, here, active, kind, scratch, check):
    """Solve the active lines of a block; returns the change of energy."""
    length = lines.length
    new = inward(x, packed, lines, here, kind, scratch)
    store(scratch.new, (length - 1) * LANES, new)
    old = labels_at(x, lines, here, 0, length - 1, length // 2)
    change = full(0.0)
    changed = bits(new != old)
    if changed != 0:
        change = change_at(x, packed, lines, here, length - 1, length // 2, kind, new, old)
    left, left_old, right, right_old = new, old, new, old
    for i in range(length // 2 - 1, -1, -1):
        if 2 * i + 1 < length - 1:
            j = length - 1 - i
            right, right_old, more = _outward(
                x, packed, lines, here, 2 * i + 1, j, j - 1, False, kind, right, right_old, scratch
            )
            changed |= bits(right != right_old)
            change += more
        left, left_old, more = _outward(x, packed, lines, here, 2 * i, i, i, True, kind, left, left_old, scratch)
        changed |= bits(left != left_old)
        change += more
    taken = active & changed & bits(change <= full(0.0 if check else np.inf))
    total = 0.0
    for k in range(LANES):
        if taken >> k & 1:
            total += lane(change, k)
    if taken != 0:
        _write(x, flat, lines, here, taken, scratch)
    return total


@inlined
def _write(x, flat, lines, here, taken, scratch):
    length, stride, new = lines.length, lines.stride, scratch.new
    if here.own >= 0:
        for p in range(length):
            old = cast(load(x, here.own + p * LANES), np.int32)
            store(x, here.own + p * LANES, cast(where(mask_of(taken), load(new, p * LANES), old), x))
    for k in range(LANES):
        if taken >> k & 1:
            site = lines.sites[here.block * LANES + k]
            for p in range(0, length - 1, 2):
                flat[site + p // 2 * stride] = new[p * LANES + k]
            for p in range(1, length - 1, 2):
                flat[site + (length - 1 - p // 2) * stride] = new[p * LANES + k]
            flat[site + length // 2 * stride] = new[(length - 1) * LANES + k]


@kernel
def solve_lines(x, flat, steps, packed, lines, kind, scratch, check, changes):
    """Solve the lines of each step exactly, in turn, on the packed labels `x`; `changes[step]` gets the energy change.

    What changes is written to `x` and to the natural labelling `flat`. With `check` a line takes its new labels only if
    that does not raise the energy, in float64.
    """
    for step in steps:
        here = here_of(packed, lines.blocks[step], lines, lines.blocks[step])
        changes[step] = _solve(x, flat, packed, lines, here, lines.active[step], kind, scratch, check)


@kernel
def solve_lines_unpacked(
    flat, steps, unary, big, weights, axis_weights, uniform, packed, lines, kind, scratch, check, changes
):
    """The same from natural arrays only: each block's costs are packed just before, into the one place in `packed`."""
    for step in steps:
        block = lines.blocks[step]
        pack_unary_block(unary, lines, block, big, packed.unary, 0)
        pack_weights_block(weights, axis_weights, uniform, lines, block, packed.weight_slots, packed.weights, 0)
        here = here_of(packed, 0, lines, block)
        changes[step] = _solve(flat, flat, packed, lines, here, lines.active[step], kind, scratch, check)
