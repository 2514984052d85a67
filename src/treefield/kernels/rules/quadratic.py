"""Truncated quadratic: min((v_a - v_b)**2, cutoff) for labels at ascending positions v, weights of at least 0."""

import math
from typing import NamedTuple

import numpy as np
from numba import types

from treefield.kernels.rules.rule import EPS, MessageError, register
from treefield.kernels.rules.truncated import (
    Truncated,
    argmin_given_truncated,
    largest_difference,
    prepare_position,
    steps_between,
    window_error,
    window_message,
)
from treefield.kernels.simd.jit import inline_helper, inline_overload
from treefield.kernels.simd.lanes import (
    LANES,
    absolute,
    broadcast,
    gather,
    lane,
    load,
    lowest_set_bit,
    mask_to_int,
    minimum,
    store,
    width,
)

_INT16_ROOT = 181  # the largest number whose square int16 holds
_PASSES = 4  # that spread costs over the labels together
_BLOCK = 16  # labels, at least: four passes must not carry a change across a block
_MOST_BLOCKS = 60  # one bit each


class WindowRule(NamedTuple):
    """Evenly spaced labels: `costs` below the cutoff by the labels' distance. A message costs O(L x window)."""

    truncated: Truncated
    costs: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return window_error(self.truncated, self.costs, table)

    def fits_int16(self) -> bool:
        return True

    def positions(self) -> np.ndarray:
        return self.truncated.values


class SpreadRule(NamedTuple):
    """Evenly spaced labels: each hands its cost on, label by label. O(L x how far labels move to their best neighbour).

    The cost of distance d is the sum of the first d `rises`, whose number is a multiple of `_PASSES`.
    """

    truncated: Truncated
    rises: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        labels = len(self.truncated.values)
        costs = np.append(np.cumsum(np.append(0.0, self.rises)), np.full(labels, np.inf))
        used = np.minimum(costs[steps_between(labels)], self.truncated.cutoff)
        # a cost is rounded once for each label that it moves
        return MessageError((len(self.rises) + 8) * EPS, largest_difference(used, table))

    def fits_int16(self) -> bool:
        return True

    def positions(self) -> np.ndarray:
        return self.truncated.values


def spread_rule(truncated: Truncated, costs: np.ndarray) -> SpreadRule:
    """The rule that spreads, given the costs below the cutoff by the labels' distance."""
    rises = np.maximum.accumulate(np.diff(costs, append=truncated.cutoff))  # the last one leads beyond the cutoff
    passes = -(-(len(rises) - 1) // _PASSES) * _PASSES
    return SpreadRule(truncated, np.append(rises, np.repeat(rises[-1:], _PASSES))[:passes])


class EnvelopeRule(NamedTuple):
    """Any spacing: the lower envelope of parabolas, one lane at a time. O(L). `hull` and `starts` are workspace."""

    truncated: Truncated
    hull: np.ndarray
    starts: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        # The parabolas of two labels meet where rounding of their positions says; a label at that point may take the
        # wrong one, whose cost is higher by twice their distance, at most sqrt(cutoff), times the error of the point.
        values, cutoff = self.truncated.values64, float(self.truncated.cutoff64[0])
        span = float(np.ptp(values)) if len(values) else 0.0
        return MessageError(8 * EPS, 128 * EPS * math.sqrt(cutoff) * span)

    def fits_int16(self) -> bool:
        return False  # parabolas meet between integers

    def positions(self) -> np.ndarray:
        return self.truncated.values


def _square(d):
    """d * d in lanes; in int16 at most the square of the largest root."""


@inline_overload(_square)
def _square_overload(d):
    if d.element != types.int16:
        return lambda d: d * d

    def clamped(d):
        root = minimum(absolute(d), broadcast(np.int16(_INT16_ROOT)))
        return root * root

    return clamped


def _add_edge_cost(kind, cost, weight, s, own_first, prepared, labels):
    square = _square(broadcast(kind.truncated.values[s]) - prepared)
    return cost + weight * minimum(square, broadcast(kind.truncated.cutoff[0]))


def _spread_message(kind, weight, edge, own_first, low, h, base, out, at, labels):
    """`message` by passes over the labels: in pass d, a label may take a neighbour's cost plus rise d.

    After it, out[s] is the minimum over all t at most d away, as rises never get less. For the same reason a label
    changes in a pass only if a neighbour changed in the one before. So later passes go only over the blocks of labels
    with changes and the blocks next to them: labels near a minimum come to rest early.
    """
    step = width(h)
    cap = weight * broadcast(kind.truncated.cutoff[0])
    for s in range(labels):
        store(out, at + s * step, minimum(load(h, base + s * step) - low, cap))
    block = max(_BLOCK, (labels + _MOST_BLOCKS - 1) // _MOST_BLOCKS)
    everywhere = (1 << ((labels + block - 1) // block)) - 1
    active, d = everywhere, 0
    while active != 0 and d < len(kind.rises):
        changed, rest = 0, active
        while rest != 0:  # one run of active blocks after the other
            first = lowest_set_bit(rest)
            last = first + lowest_set_bit(~(rest >> first))
            rest = rest >> last << last
            changed |= _spread(kind.rises, d, weight, out, at, first, last, block, labels)
        active = (changed | changed << 1 | changed >> 1) & everywhere
        d += _PASSES


@inline_helper
def _spread(rises, d, weight, out, at, first, last, block, labels):
    """Four passes over the blocks from `first` to before `last`, each one label behind the one before it.

    Costs beyond the ends are taken to be those at the ends, which changes nothing. Returns, as bits, the blocks that
    the last pass has changed; its last labels of a block count as the next one's.
    """
    step = width(out)
    rise1, rise2 = weight * broadcast(rises[d]), weight * broadcast(rises[d + 1])
    rise3, rise4 = weight * broadcast(rises[d + 2]), weight * broadcast(rises[d + 3])
    begin, end = first * block, min(last * block, labels)
    before0 = here0 = before1 = here1 = before2 = here2 = before3 = here3 = load(out, at + begin * step)
    changed_blocks = 0
    for b in range(first, last):
        changed = here0 < here0
        for s in range(b * block, end + _PASSES if b == last - 1 else (b + 1) * block):
            after0 = load(out, at + min(s, end - 1) * step)
            after1 = minimum(minimum(before0, after0) + rise1, here0)
            after2 = minimum(minimum(before1, after1) + rise2, here1)
            after3 = minimum(minimum(before2, after2) + rise3, here2)
            after4 = minimum(minimum(before3, after3) + rise4, here3)
            changed = changed | (after4 < here3)
            store(out, at + max(s - _PASSES, begin) * step, after4)
            before0, here0, before1, here1 = here0, after0, here1, after1
            before2, here2, before3, here3 = here2, after2, here3, after3
        if mask_to_int(changed) != 0:
            changed_blocks |= 1 << b
    return changed_blocks


def _envelope_message(kind, weight, edge, own_first, low, h, base, out, at, labels):
    for k in range(LANES):
        _lower_envelope(kind, lane(weight, k), lane(low, k), h, base + k, out, at + k)


@inline_helper
def _lower_envelope(kind, weight, low, h, base, out, at):
    """The lower envelope of the parabolas h[t] + weight (v - v_t)^2, for one lane (Felzenszwalb & Huttenlocher).

    Meeting points are in float64.
    """
    values, cutoff, hull, starts = kind.truncated.values, kind.truncated.cutoff[0], kind.hull, kind.starts
    labels = len(values)
    if weight <= 0:
        for s in range(labels):
            out[at + s * LANES] = 0
        return
    count = 0
    hull[0] = 0
    starts[0] = -np.inf
    for t in range(1, labels):
        cost = np.float64(h[base + t * LANES])
        while True:
            r = hull[count]
            rise = cost - np.float64(h[base + r * LANES])
            gap = np.float64(values[t]) - np.float64(values[r])
            if gap > 0:
                meet = (rise / (weight * gap) + np.float64(values[t]) + np.float64(values[r])) / 2
            else:
                meet = -np.inf if rise < 0 else np.inf
            if count == 0 or meet > starts[count]:
                break
            count -= 1
        if meet > starts[count]:
            count += 1
        hull[count] = t
        starts[count] = meet if count > 0 else -np.inf
    starts[count + 1] = np.inf
    r = 0
    for s in range(labels):
        while starts[r + 1] < values[s]:
            r += 1
        d = values[s] - values[hull[r]]
        out[at + s * LANES] = min(h[base + hull[r] * LANES] - low + weight * (d * d), weight * cutoff)


def _edge_cost(kind, weight, edge, a, b, labels):
    d = gather(kind.truncated.values64, 0, a) - gather(kind.truncated.values64, 0, b)
    return weight * minimum(d * d, broadcast(kind.truncated.cutoff64[0]))


_SHARED = {
    "prepare": prepare_position,
    "add_edge_cost": _add_edge_cost,
    "argmin_given": argmin_given_truncated,
    "edge_cost": _edge_cost,
    "can_overwrite": False,
    "uses_edge_numbers": False,
}
register(WindowRule, message=window_message, **_SHARED)
register(SpreadRule, message=_spread_message, **_SHARED | {"can_overwrite": True})
register(EnvelopeRule, message=_envelope_message, **_SHARED)
