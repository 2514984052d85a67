"""Lines of a grid, and their costs and labels laid out for lanes.

Everything that belongs to a position along a line is stored in *slots*, in the order in which `kernels.lines` uses it:
the first position, the last, the second, the last but one, ..., at the end the middle.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.jit import inlined, kernel
from treefield.kernels.lanes import LANES, cast, full, gather, gather_from, load, minimum, store


class Lines(NamedTuple):
    """Where the lines along one axis lie; step q solves eight of them while the lines beside them stay fixed. Flat
    arrays:

    sites    [step][lane]             the first site of each line
    counts   [step]                   how many lanes are in use
    exists   [step][direction][lane]  whether there are edges along the line (direction 0) and, per other axis, to the
    line before and after edges    [step][direction][lane]  the first of these edges, as an index into all edges, and
    `edge_strides` [direction] to the next origins  [step][direction][lane]  where the labels of the line itself and of
    those beside it begin; label (slot p, position j) is
                                      p `slot_stride` + j `label_stride` further
    together [step][direction]        where they begin if the eight of them lie side by side, else -1

    Labels are packed [step][slot][lane], or natural (nothing lies side by side).
    """

    sites: np.ndarray
    counts: np.ndarray
    exists: np.ndarray
    edges: np.ndarray
    edge_strides: np.ndarray
    origins: np.ndarray
    together: np.ndarray
    slot_stride: int
    label_stride: int
    stride: int
    length: int
    labels: int
    directions: int


class Packed(NamedTuple):
    """The costs of the lines: unary [step][slot][label][lane], weights [step][slot][direction][lane], or one slot where
    all are alike."""

    unary: np.ndarray
    weights: np.ndarray
    weight_slots: int


@inlined
def position(slot, length):
    """The position along the line that a slot holds."""
    if slot == length - 1:
        return length // 2
    return slot // 2 if slot % 2 == 0 else length - 1 - slot // 2


@inlined
def slot(j, length):
    """The slot of a position: the other way round."""
    middle = length // 2
    if j == middle:
        return length - 1
    return 2 * j if j < middle else 2 * (length - 1 - j) + 1


@inlined
def pack_unary_step(unary, lines, step, big, out, base):
    labels, length = lines.labels, lines.length
    first = load(lines.sites, step * LANES) * full(labels)
    cap = full(big)
    for p in range(length):
        at = position(p, length) * lines.stride * labels
        row = base + p * labels * LANES
        for s in range(labels):
            store(out, row + s * LANES, minimum(gather(unary, at + s, first), cap))


@kernel
def pack_labels(x, lines, steps, out):
    """Lay the natural labelling out by lines."""
    length = lines.length
    if lines.stride == 1:
        for step in steps:
            for p in range(length):
                store(
                    out,
                    (step * length + p) * LANES,
                    cast(gather_from(x, lines.sites, step * LANES, position(p, length)), out),
                )
        return
    for p in range(length):  # position by position: neighbouring lines are read from the same cache lines
        j = position(p, length) * lines.stride
        for step in steps:
            store(out, (step * length + p) * LANES, cast(gather_from(x, lines.sites, step * LANES, j), out))


@inlined
def pack_weights_step(edge_weights, axis_weights, uniform, lines, step, slots, out, base):
    for d in range(lines.directions):
        at = (step * lines.directions + d) * LANES
        for p in range(slots):
            j = position(p, lines.length)
            if d == 0 and j > lines.length // 2:
                j -= 1  # the edge towards the middle
            for k in range(LANES):
                weight = out.dtype.type(0)
                if lines.exists[at + k]:
                    if uniform:
                        weight = axis_weights[d]
                    elif d > 0 or p < lines.length - 1:
                        weight = edge_weights[lines.edges[at + k] + j * lines.edge_strides[d]]
                out[base + (p * lines.directions + d) * LANES + k] = weight


@kernel
def pack_unary(unary, lines, steps, big, out):
    """Lay the natural unary [site][label] out by lines, costs above `big` (forbidden ones) cut to it."""
    for step in steps:
        pack_unary_step(unary, lines, step, big, out, step * lines.length * lines.labels * LANES)


@kernel
def pack_weights(edge_weights, axis_weights, uniform, lines, steps, slots, out):
    """Lay the weights out by lines: from `edge_weights` of all edges or, if they are uniform, `axis_weights` per
    direction and one slot."""
    for step in steps:
        pack_weights_step(
            edge_weights, axis_weights, uniform, lines, step, slots, out, step * lines.directions * slots * LANES
        )
