"""Truncated quadratic: min((v_a - v_b)**2, cutoff) for labels at ascending positions v, weights of at least 0."""

import math
from typing import NamedTuple

import numpy as np
from numba import types

from treefield.kernels.rules.rule import EPS, MessageError, register
from treefield.kernels.rules.truncated import (
    Truncated,
    argmin_given_truncated,
    prepare_position,
    window_error,
    window_message,
)
from treefield.kernels.simd.jit import inline_helper, inline_overload
from treefield.kernels.simd.lanes import LANES, absolute, broadcast, gather, lane, minimum

_INT16_ROOT = 181  # the largest number whose square int16 holds


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
register(EnvelopeRule, message=_envelope_message, **_SHARED)
