"""A grid laid out in strips, for passes that go over its sites in raster order.

The rows of a plane (the last two axes) are cut into *strips*, one row to a lane. Lane k is one column behind lane
k - 1, so that the sites of a *step*, one of each row, do not touch.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import width


class Strips(NamedTuple):
    """A grid laid out in strips, and its messages. Flat arrays; a plane has `rows` rows in `strips` strips:

    unary, right, down, depth [strip][step][label][lane]  costs, and the messages on the edges to the next site along
                              the last axis, the one before and (3-D; else None) the first; before `depth` there is a
                              plane of zeros
    borders  [border][column][label]  the messages on edges between strips; borders are one more than strips
    weights  [axis][strip][step][lane]  of the same edges, 0 where there are none; then those of the edge up from each
                              site, and of that to the plane before
    shares   [strip][step][lane]  the part of a site's cost that each edge takes along
    x        [strip][step][lane]  the labels decoded, and x_borders [border][column] those of a strip's last row
    edge_offsets, edge_strides: as in `Grid`, for tables per edge

    Step t holds column t - 1 - k of row k; columns of borders are padded by the lanes and one more.
    """

    unary: np.ndarray
    right: np.ndarray
    down: np.ndarray
    depth: np.ndarray
    borders: np.ndarray
    weights: np.ndarray
    shares: np.ndarray
    x: np.ndarray
    x_borders: np.ndarray
    edge_offsets: np.ndarray
    edge_strides: np.ndarray
    edges: int
    strips: int
    planes: int
    rows: int
    steps: int
    columns: int
    labels: int


@inline_helper
def _place(strips, row, n):
    """Where the first site of a row is in the strips, given the row's number in the grid; the next is n further."""
    plane, row = row // strips.rows, row % strips.rows
    strip = plane * strips.strips + row // n
    return (strip * strips.steps + row % n + 1) * n + row % n


@kernel
def to_strips(strips, values, out):
    """Bring one value per site, in raster order, into the layout [strip][step][lane]."""
    n = width(strips.unary)
    wide = strips.steps - n
    for row in range(strips.planes * strips.rows):
        place = _place(strips, row, n)
        for column in range(wide):
            out[place + column * n] = values[row * wide + column]


@kernel
def from_strips(strips, x):
    """Bring the labels decoded into raster order."""
    n = width(strips.unary)
    wide = strips.steps - n
    for row in range(strips.planes * strips.rows):
        place = _place(strips, row, n)
        for column in range(wide):
            x[row * wide + column] = strips.x[place + column * n]


@kernel
def pack_costs(strips, unary, reach, scale, whole):
    """Write the unary costs to the strips; returns the sum of the best costs, and that of their magnitudes.

    A cost is what a label costs more than the site's best one, times `scale`, capped at twice the site's `reach` (a
    label beyond the `reach` is never optimal); if `whole`, it is rounded down to an integer and capped at `reach` + 1.
    O(L) per site.
    """
    labels = strips.labels
    n = width(strips.unary)
    wide = strips.steps - n
    total, magnitude = 0.0, 0.0
    for row in range(strips.planes * strips.rows):
        place = _place(strips, row, n)
        row_total = 0.0
        for column in range(wide):
            site = row * wide + column
            best = np.inf
            for s in range(labels):
                best = min(best, np.float64(unary[site * labels + s]))
            if best == np.inf:  # every label is forbidden
                best = 0.0
            row_total += best
            magnitude += abs(best)
            most = reach[site] * scale + 1 if whole else 2 * reach[site] if reach[site] > 0 else 1.0
            at = (place // n + column) * n * labels + place % n
            for s in range(labels):
                cost = min((np.float64(unary[site * labels + s]) - best) * scale, most)
                strips.unary[at + s * n] = np.floor(cost) if whole else cost
        total += row_total
    return total, magnitude


@inline_helper
def _down(strips, row, n):
    """Whether the messages down from a row are in a border, where the first is, and the strides of label and column."""
    labels = strips.labels
    if row % strips.rows % n < n - 1:
        place = _place(strips, row, n)
        return False, place // n * n * labels + place % n, n, n * labels
    border = row // strips.rows * (strips.strips + 1) + row % strips.rows // n + 1
    return True, (border * strips.columns + n + 1) * labels, 1, labels


@inline_helper
def _converted(value, ratio, low, high, whole):
    value = np.float64(value) * ratio
    if whole:
        value = np.floor(value)
    if not value > low:  # also NaN
        value = low
    return min(value, high)


@kernel
def convert(old, new, ratio, low, high, whole):
    """Bring the messages of some strips into others: times `ratio`, if `whole` rounded down, and kept within limits."""
    labels = old.labels
    n, m = width(old.unary), width(new.unary)
    for row in range(old.planes * old.rows):
        place, there = _place(old, row, n), _place(new, row, m)
        bordered, down, label, column = _down(old, row, n)
        new_bordered, new_down, new_label, new_column = _down(new, row, m)
        for c in range(old.steps - n):
            i = (place // n + c) * n * labels + place % n
            j = (there // m + c) * m * labels + there % m
            for s in range(labels):
                new.right[j + s * m] = _converted(old.right[i + s * n], ratio, low, high, whole)
                k = down + c * column + s * label
                value = _converted(old.borders[k] if bordered else old.down[k], ratio, low, high, whole)
                k = new_down + c * new_column + s * new_label
                if new_bordered:
                    new.borders[k] = value
                else:
                    new.down[k] = value
                if old.planes > 1:
                    plane, other = old.strips * old.steps * n * labels, new.strips * new.steps * m * labels
                    new.depth[other + j + s * m] = _converted(old.depth[plane + i + s * n], ratio, low, high, whole)
