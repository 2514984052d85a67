"""Shared by truncated linear and truncated quadratic costs: min(distance(v_a, v_b), cutoff), weights of at least 0."""

from typing import NamedTuple

import numpy as np

from treefield.kernels.rules.rule import EPS, MessageError, scan_labels
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    gather,
    lane_numbers,
    load,
    mask_to_int,
    minimum,
    store,
    width,
)


class Truncated(NamedTuple):
    """Labels at ascending positions v.

    `spacing` is the distance of neighbouring labels, 0 if they differ; `change` the least cost of two different labels.
    """

    values: np.ndarray
    cutoff: np.ndarray
    values64: np.ndarray
    cutoff64: np.ndarray
    spacing: np.ndarray
    change: np.ndarray


def prepare_position(kind, edge, own_first, x, labels):
    """`prepare`: the position of the neighbour's label."""
    return gather(kind.truncated.values, 0, x)


def argmin_given_truncated(kind, weight, edge, own_first, low, h, base, x, labels):
    """`argmin_given`: the neighbour's label where no other can pay, else a loop over all labels."""
    kept = gather(h, base, x * broadcast(np.int32(LANES)) + lane_numbers()) - low
    if mask_to_int(kept < weight * broadcast(kind.truncated.change[0])) == (1 << LANES) - 1:
        return x  # any other label costs more than that, and at least `low`
    return scan_labels(kind, weight, edge, own_first, low, h, base, x, labels)


def window_message(kind, weight, edge, own_first, low, h, base, out, at, labels):
    """`message` of evenly spaced labels. O(L x window).

    `kind.costs` are the costs below the cutoff by the labels' distance.
    """
    step = width(h)
    cap = weight * broadcast(kind.truncated.cutoff[0])
    for s in range(labels):
        store(out, at + s * step, minimum(load(h, base + s * step) - low, cap))
    reach = len(kind.costs)
    for d in range(1, reach, 2):  # two distances at a time: four candidates for each load and store of `out`
        near = weight * broadcast(kind.costs[d]) - low
        far = near
        if d + 1 < reach:
            far = weight * broadcast(kind.costs[d + 1]) - low
        e = d + 1 if d + 1 < reach else d
        for s in range(labels):
            value = load(out, at + s * step)
            i = base + s * step
            if e <= s < labels - e:
                value = minimum(load(h, i - d * step) + near, value)
                value = minimum(load(h, i + d * step) + near, value)
                value = minimum(load(h, i - e * step) + far, value)
                value = minimum(load(h, i + e * step) + far, value)
            else:
                if s >= d:
                    value = minimum(load(h, i - d * step) + near, value)
                if s >= e:
                    value = minimum(load(h, i - e * step) + far, value)
                if s < labels - d:
                    value = minimum(load(h, i + d * step) + near, value)
                if s < labels - e:
                    value = minimum(load(h, i + e * step) + far, value)
            store(out, at + s * step, value)


def window_error(truncated: Truncated, costs: np.ndarray, table: np.ndarray) -> MessageError:
    """The rounding margin of `window_message`."""
    labels = len(truncated.values)
    used = np.append(costs, np.full(labels, truncated.cutoff))[steps_between(labels)]
    return MessageError(8 * EPS, largest_difference(used, table))


def steps_between(labels: int) -> np.ndarray:
    """How many labels lie between two, as a table."""
    return np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))


def largest_difference(used: np.ndarray, table: np.ndarray) -> float:
    """How far the costs of a rule are from the exact ones: it takes nearly even spacing for even."""
    return float(np.abs(used - table).max(initial=0.0))
