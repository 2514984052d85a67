"""Min-marginals of lines, and labels drawn from them.

The min-marginal of a label at a site is the least energy of the site's line with that label there, the lines next to
it fixed: where those of two labels are close, the line barely prefers one.
"""

import numpy as np

from treefield.kernels.grid.lines import block_view, edges_at, inward, weight_at
from treefield.kernels.grid.packing import position
from treefield.kernels.rules.rule import label_count, message
from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    cast,
    int_to_mask,
    lane,
    load,
    mask_to_int,
    minimum,
    store,
    where,
)
from treefield.kernels.simd.random import below

_NEVER = 40  # exp(-40) is nothing: what costs more above the best, in temperatures, is not drawn
_DIGITS = 24  # of a random number: all that float32 holds, so that it stays below 1


@inline_helper
def _rank(cost, best, second):
    """The least and the second least cost, one more considered."""
    return minimum(cost, best), minimum(where(best < cost, cost, best), second)


@inline_helper
def _outward(packed, lines, view, p, edge, own_first, kind, scratch):
    """Turn a slot's costs into min-marginals, given those of its neighbour towards the middle.

    The message that the neighbour got from this slot is subtracted from its min-marginals; the rest is sent.
    """
    labels = label_count(kind, lines.labels)
    h, rest, incoming = scratch.h, scratch.left, scratch.right
    row = p * labels * LANES
    toward = min(p + 2, lines.length - 1) * labels * LANES
    weight = cast(weight_at(packed, view, 0, p), h)
    edges = edges_at(lines, view, 0, edge)
    infinity = broadcast(h.dtype.type(np.inf))
    message(kind, weight, edges, own_first, load(scratch.lows, p * LANES), h, row, rest, 0, labels)
    low = infinity
    for s in range(labels):
        cost = load(h, toward + s * LANES) - load(rest, s * LANES)
        store(rest, s * LANES, cost)
        low = minimum(cost, low)
    message(kind, weight, edges, not own_first, low, rest, 0, incoming, 0, labels)
    best, second = infinity, infinity
    for s in range(labels):
        cost = load(h, row + s * LANES) + load(incoming, s * LANES)
        store(h, row + s * LANES, cost)
        best, second = _rank(cost, best, second)
    store(scratch.lows, p * LANES, second - best)


@inline_helper
def _marginals(x, packed, lines, view, kind, scratch):
    """Leave the min-marginals of a block's lines, each site's up to a constant, in `scratch.h`.

    The distance of the second best from the best is left in `scratch.lows`.
    """
    labels, length, h = label_count(kind, lines.labels), lines.length, scratch.h
    inward(x, packed, lines, view, kind, scratch)
    best = second = broadcast(h.dtype.type(np.inf))
    for s in range(labels):  # the middle has heard from both sides
        best, second = _rank(load(h, ((length - 1) * labels + s) * LANES), best, second)
    store(scratch.lows, (length - 1) * LANES, second - best)
    for p in range(length - 2, -1, -1):  # left and right in turn, one copy of the code for both
        first = p % 2 == 0
        _outward(packed, lines, view, p, p // 2 if first else length - 2 - p // 2, first, kind, scratch)


@inline_helper
def _exp_minus(z, like):
    """exp(-z) of lanes for z in 0.._NEVER, within 0.01 % down to exp(-10).

    A series for exp(-z / 64), squared six times. The same bits on every machine, as libm's are not.
    """
    one = broadcast(like.dtype.type(1))
    y = z * broadcast(like.dtype.type(-1 / 64))
    value = broadcast(like.dtype.type(1 / 6)) + y * broadcast(like.dtype.type(1 / 24))
    value = one + y * (one + y * (broadcast(like.dtype.type(1 / 2)) + y * value))
    for _ in range(6):
        value = value * value
    return value


@inline_helper
def _pick(h, row, uniform, inverse, limit, shares, labels):
    """Draw labels from softmin(h * inverse), lane by lane.

    The label drawn is the first whose cumulated share exceeds `uniform` of the total. `shares` [label][lane] is
    workspace.
    """
    zero, most, forbidden = broadcast(h.dtype.type(0)), broadcast(h.dtype.type(_NEVER)), broadcast(h.dtype.type(limit))
    factor = broadcast(h.dtype.type(inverse))
    best = load(h, row)
    for s in range(1, labels):
        best = minimum(load(h, row + s * LANES), best)
    total = zero
    for s in range(labels):
        excess = load(h, row + s * LANES) - best
        z = minimum(excess * factor, most)
        share = where((z < most) & (excess <= forbidden), _exp_minus(z, h), zero)
        store(shares, s * LANES, share)
        total += share
    target = uniform * total
    cumulated = zero
    label = broadcast(np.int32(0))
    for s in range(labels):
        cumulated += load(shares, s * LANES)
        label += where(cumulated <= target, broadcast(np.int32(1)), broadcast(np.int32(0)))
    return label


@kernel
def draw_lines(x, out, steps, packed, lines, kind, scratch, closeness, inverse, limit, seed):
    """Draw labels from the min-marginals of the lines of each step, given the packed labels `x` of all lines.

    A site whose two best differ by at most `closeness` gets a label from softmin(min-marginal * inverse), written to
    the natural labelling `out`; labels that cost more than `limit` above the best are forbidden. Returns the sum of
    the differences between the two best, and the number of sites that have two. Three messages per site, O(L) more
    where a label is drawn. The last step's min-marginals stay in `scratch.h`.
    """
    labels, length = label_count(kind, lines.labels), lines.length
    h, gaps, shares, uniform = scratch.h, scratch.lows, scratch.left, scratch.right
    near, possible = broadcast(h.dtype.type(closeness)), broadcast(h.dtype.type(limit))
    total, count = broadcast(0.0), broadcast(0)
    for step in steps:
        block = lines.blocks[step]
        _marginals(x, packed, lines, block_view(packed, block, lines, block), kind, scratch)
        active = int_to_mask(lines.active[step])
        for p in range(length):
            gap = load(gaps, p * LANES)
            free = active & (gap <= possible)
            total += where(free, cast(gap, np.float64), broadcast(0.0))
            count += where(free, broadcast(1), broadcast(0))
            close = mask_to_int(free & (gap <= near))
            if close == 0:
                continue
            at = position(p, length) * lines.stride
            for k in range(LANES):
                uniform[k] = below(1 << _DIGITS, seed, lines.sites[block * LANES + k] + at) * 2.0**-_DIGITS
            label = _pick(h, p * labels * LANES, load(uniform, 0), inverse, limit, shares, labels)
            for k in range(LANES):
                if close >> k & 1:
                    out[lines.sites[block * LANES + k] + at] = lane(label, k)
    gap_sum, sites = 0.0, 0
    for k in range(LANES):
        gap_sum += lane(total, k)
        sites += lane(count, k)
    return gap_sum, sites
