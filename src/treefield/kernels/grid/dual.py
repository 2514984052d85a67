"""Sequential tree-reweighted message passing (TRW-S) on a grid, as a wavefront.

The sites are taken in raster order, but a site needs only those before it: the sites of a step of `kernels.strips`
advance together.

An edge has one message: to its second site after a forward pass, to its first after a backward pass, and the new one
overwrites the old one. It is stored at its first site; those between two strips have a separate array.

The sum of a backward pass is a lower bound. At site i let T_i be its unary and all messages to it, less its
minimum m_i; let h_e = share of T_i - the old message, for each edge e to a site before it, with shares that add up to
T_i or less; and let the new message be at most h_e(x_i) - low_e + V_e for every x_i. Then, added up over all edges and
sites, the messages cancel and sum(m) + sum(low) <= E(x) for every labelling x, whatever the old messages were. It
holds as long as nothing is rounded up: in float32 and int16 all numbers are integers and shares are rounded down.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.rules.rule import add_edge_cost, can_overwrite, label_count, lane_rule_of, message, prepare
from treefield.kernels.simd.jit import inline_helper, inline_overload, kernel
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    broadcast_like,
    cast,
    lane_numbers,
    load,
    minimum,
    prefetch,
    reduce_sum,
    store,
    where,
    width,
)
from treefield.kernels.simd.shifts import (
    first_lane,
    last_lane,
    multiply_floor,
    replace_last,
    shift_down,
    shift_up,
    widen,
)
from treefield.kernels.simd.sums import add_exactly

AHEAD = 1024  # values: fetched so early, the costs of a backward pass are there when needed
FLUSH = 64  # steps whose bound is added up in lanes: an int32 holds it, and float64 rounds it seldom


class StripScratch(NamedTuple):
    """Work space [label][lane]: costs without one neighbour, for each direction, and a message."""

    across: np.ndarray
    along: np.ndarray
    deep: np.ndarray
    out: np.ndarray


def _edges(kind, strips, axis, strip, t, before):
    """The numbers of the lanes' edges along an axis from a step's sites on, or of the edges `before` them.

    Axis 0 is the last, 1 the one before it, 2 the first.
    """


@inline_overload(_edges)
def _edges_overload(kind, strips, axis, strip, t, before):
    if not lane_rule_of(kind).uses_edge_numbers:
        return lambda kind, strips, axis, strip, t, before: 0

    def numbers(kind, strips, axis, strip, t, before):
        dimensions = len(strips.edge_offsets)
        a = dimensions - 1 - axis
        of = strips.edge_strides
        row, column = of[a * dimensions + dimensions - 2], of[a * dimensions + dimensions - 1]
        first = strips.edge_offsets[a] + strip % strips.strips * LANES * row + (t - 1) * column
        if dimensions == 3:
            first += strip // strips.strips * of[a * dimensions]
        if before:
            first -= of[a * dimensions + a]
        number = broadcast(first) + cast(lane_numbers(), np.int64) * broadcast(row - column)
        return minimum(where(number < broadcast(0), broadcast(0), number), broadcast(max(strips.edges - 1, 0)))

    return numbers


@inline_helper
def _places(strips, strip, t):
    """Where a step begins: its sites; its labels above (in the border of lane 0) and below (in that of the last)."""
    n = width(strips.unary)
    above = (strip + strip // strips.strips) * strips.columns + t + n
    return (strip * strips.steps + t) * n, above, above + strips.columns + 1 - n


@inline_helper
def _weights(strips, number, c):
    """One of the five weights of a step's sites."""
    sites = strips.planes * strips.strips * strips.steps * width(strips.unary)
    return load(strips.weights, number * sites + c)


@kernel
def pass_forward(strips, kind, scratch):
    """Decode all sites and send their messages to the sites after them. O(L) per site for most kinds."""
    labels = label_count(kind, strips.labels)
    right, down, depth, borders, x = strips.right, strips.down, strips.depth, strips.borders, strips.x
    n, within, deep = width(strips.unary), can_overwrite(kind), strips.planes > 1
    plane = strips.strips * strips.steps * n
    for strip in range(strips.planes * strips.strips):
        for t in range(1, strips.steps):
            c, above, below = _places(strips, strip, t)
            o, r = c * labels, (c - n) * labels
            part = load(strips.shares, c)
            along_costs, along_at = (right, o) if within else (scratch.along, 0)
            across_costs, across_at = (down, o) if within else (scratch.across, 0)
            left_weight, up_weight = _weights(strips, 0, c - n), _weights(strips, 3, c)
            left = prepare(kind, _edges(kind, strips, 0, strip, t, True), False, load(x, c - n), labels)
            up = shift_up(load(x, c - n), strips.x_borders[above])
            up = prepare(kind, _edges(kind, strips, 1, strip, t, True), False, up, labels)
            front, front_weight = left, left_weight
            if deep:
                front_weight, front_label = _weights(strips, 4, c), load(x, max(c - plane, 0))
                front = prepare(kind, _edges(kind, strips, 2, strip, t, True), False, front_label, labels)
            best = broadcast_like(part, 0)
            low_along, low_across, low_deep = best, best, best
            label = broadcast_like(load(x, c), 0)
            for s in range(labels):
                i, j = o + s * n, r + s * n
                after, under = load(right, i), replace_last(load(down, i), borders[below * labels + s])
                cost = load(strips.unary, i) + (after + under)
                back = broadcast_like(part, 0)
                if deep:
                    back = load(depth, plane * labels + i)
                    cost += back
                known = add_edge_cost(kind, cost, left_weight, s, False, left, labels)
                known = add_edge_cost(kind, known, up_weight, s, False, up, labels)
                cost += load(right, j) + shift_up(load(down, j), borders[above * labels + s])
                if deep:
                    known = add_edge_cost(kind, known, front_weight, s, False, front, labels)
                    cost += load(depth, i)
                cost = multiply_floor(cost, part)
                along, across = cost - after, cost - under
                store(along_costs, along_at + s * n, along)
                store(across_costs, across_at + s * n, across)
                if deep:
                    store(scratch.deep, s * n, cost - back)
                    low_deep = cost - back if s == 0 else minimum(cost - back, low_deep)
                first = s == 0
                label = label if first else where(known < best, broadcast_like(label, s), label)
                best = known if first else minimum(known, best)
                low_along = along if first else minimum(along, low_along)
                low_across = across if first else minimum(across, low_across)
            store(x, c, label)
            strips.x_borders[below] = last_lane(label)
            edge = _edges(kind, strips, 0, strip, t, False)
            message(kind, _weights(strips, 0, c), edge, True, low_along, along_costs, along_at, right, o, labels)
            edge = _edges(kind, strips, 1, strip, t, False)
            message(kind, _weights(strips, 1, c), edge, True, low_across, across_costs, across_at, down, o, labels)
            for s in range(labels):
                borders[below * labels + s] = down[o + s * n + n - 1]
            if deep:
                edge = _edges(kind, strips, 2, strip, t, False)
                to = plane * labels + o
                message(kind, _weights(strips, 2, c), edge, True, low_deep, scratch.deep, 0, depth, to, labels)


@kernel
def pass_backward(strips, kind, scratch):
    """Send the messages of all sites to the sites before them; returns the bound that they give.

    O(L) per site for most kinds.
    """
    labels = label_count(kind, strips.labels)
    right, down, depth, borders = strips.right, strips.down, strips.depth, strips.borders
    n, within, deep = width(strips.unary), can_overwrite(kind), strips.planes > 1
    plane = strips.strips * strips.steps * n
    out = scratch.across if within else scratch.out
    bound = carried = 0.0
    for strip in range(strips.planes * strips.strips - 1, -1, -1):
        for end in range(strips.steps, 1, -FLUSH):
            total = widen(broadcast_like(load(strips.shares, 0), 0))
            for t in range(end - 1, max(end - FLUSH, 1) - 1, -1):
                c, above, below = _places(strips, strip, t)
                o, r = c * labels, (c - n) * labels
                part = load(strips.shares, c)
                along_costs, along_at = (right, r) if within else (scratch.along, 0)
                low = broadcast_like(part, 0)
                for s in range(labels):
                    i, j = o + s * n, r + s * n
                    prefetch(strips.unary, i - AHEAD)
                    prefetch(right, j - AHEAD)
                    prefetch(down, j - AHEAD)
                    before, over = load(right, j), shift_up(load(down, j), borders[above * labels + s])
                    under = replace_last(load(down, i), borders[below * labels + s])
                    cost = load(strips.unary, i) + load(right, i) + under + (before + over)
                    if deep:
                        cost += load(depth, i) + load(depth, plane * labels + i)
                    low = cost if s == 0 else minimum(cost, low)
                    store(scratch.along, s * n, cost)
                    store(scratch.across, s * n, over)
                low_along, low_across, low_deep = (
                    broadcast_like(part, 0),
                    broadcast_like(part, 0),
                    broadcast_like(part, 0),
                )
                for s in range(labels):
                    cost = multiply_floor(load(scratch.along, s * n) - low, part)
                    along, across = cost - load(right, r + s * n), cost - load(scratch.across, s * n)
                    store(along_costs, along_at + s * n, along)
                    store(scratch.across, s * n, across)
                    if deep:
                        back = cost - load(depth, o + s * n)
                        store(scratch.deep, s * n, back)
                        low_deep = back if s == 0 else minimum(back, low_deep)
                    low_along = along if s == 0 else minimum(along, low_along)
                    low_across = across if s == 0 else minimum(across, low_across)
                edge = _edges(kind, strips, 0, strip, t, True)
                weight = _weights(strips, 0, c - n)
                message(kind, weight, edge, False, low_along, along_costs, along_at, right, r, labels)
                edge = _edges(kind, strips, 1, strip, t, True)
                message(kind, _weights(strips, 3, c), edge, False, low_across, scratch.across, 0, out, 0, labels)
                for s in range(labels):
                    value = load(out, s * n)
                    store(down, r + s * n, shift_down(value))
                    borders[above * labels + s] = first_lane(value)
                if deep:
                    edge = _edges(kind, strips, 2, strip, t, True)
                    message(kind, _weights(strips, 4, c), edge, False, low_deep, scratch.deep, 0, depth, o, labels)
                total += widen(low) + widen(low_along) + widen(low_across) + widen(low_deep)
            bound, carried = add_exactly(bound, carried, np.float64(reduce_sum(total)))
    return bound + carried
