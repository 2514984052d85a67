"""Loopy belief propagation on a grid: messages between all neighbours, eight sites of a row at a time.

A row of sites (the last axis) is stored label by label, [row][label][column], with eight columns of padding on either
side, so that the messages to the next columns are the same eight lanes, one place further.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.rules.rule import edge_cost, label_count, message
from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import (
    LANES,
    absolute,
    broadcast,
    cast,
    gather_from,
    lane,
    lane_numbers,
    load,
    minimum,
    store,
    where,
)


class Field(NamedTuple):
    """A grid and its messages. Flat arrays:

    unary     [row][label][column]
    weights   [axis][row][column], that of the edge which begins there; 0 where there is none
    messages  [direction][row][label][column] to each site, from before it (2 axis) and from after it (2 axis + 1)
    fresh     likewise: where parallel updates put the new ones
    rows_on   [axis] how many rows further the next site along that axis is (0 for the last axis)
    shape     [axis]
    edge_offsets, edge_strides: as in `Grid`

    Columns are `width` with the padding, `columns` of them true.
    """

    unary: np.ndarray
    weights: np.ndarray
    messages: np.ndarray
    fresh: np.ndarray
    rows_on: np.ndarray
    shape: np.ndarray
    edge_offsets: np.ndarray
    edge_strides: np.ndarray
    rows: int
    columns: int
    width: int
    labels: int


class BeliefScratch(NamedTuple):
    """Workspace of belief propagation.

    A row's beliefs, its costs without one neighbour and its messages, [label][column]; costs and a message of eight
    sites, [label][lane]; and eight places.
    """

    belief: np.ndarray
    costs: np.ndarray
    sent: np.ndarray
    h: np.ndarray
    out: np.ndarray
    places: np.ndarray


@inline_helper
def _edge(field, axis, row, column):
    """The number of the edge along an axis that begins at a site."""
    dimensions = len(field.shape)
    number = field.edge_offsets[axis] + column
    left = row
    for a in range(dimensions - 2, -1, -1):
        number += left % field.shape[a] * field.edge_strides[axis * dimensions + a]
        left //= field.shape[a]
    return number


@inline_helper
def _edges(field, axis, row, column):
    """The numbers of eight edges along an axis from a site on, moved to true ones where there are none."""
    last = field.columns - (2 if axis == len(field.shape) - 1 else 1)
    columns = cast(lane_numbers(), np.int64) + broadcast(column)
    columns = minimum(where(columns < broadcast(0), broadcast(0), columns), broadcast(max(last, 0)))
    return columns + broadcast(_edge(field, axis, row, 0))


@inline_helper
def _neighbour_row(field, row, direction):
    """The row of the neighbours in a direction (the same along the last axis), -1 if there is none."""
    axis = direction // 2
    on = field.rows_on[axis]
    if on == 0:
        return row if field.columns > 1 else -1
    coordinate = row // on % field.shape[axis]
    if direction % 2 == 1:
        return row + on if coordinate < field.shape[axis] - 1 else -1
    return row - on if coordinate > 0 else -1


@inline_helper
def _compute_beliefs(field, kind, row, scratch):
    """The beliefs of a row's sites: their unary costs and all messages to them.

    Read from one end to the other: with a stream for each label memory would not keep up.
    """
    labels = label_count(kind, field.labels)
    size = labels * field.width
    plane = field.rows * size
    for i in range(0, size, LANES):
        total = load(field.unary, row * size + i)
        for d in range(2 * len(field.shape)):
            total += load(field.messages, d * plane + row * size + i)
        store(scratch.belief, i, total)


@inline_helper
def _send(field, kind, row, direction, to, keep, change, scratch):
    """Send the messages of a row's sites in a direction, given their beliefs; returns the greatest change so far.

    `keep` is the share of the old messages that stays. The change is by lanes.
    """
    labels = label_count(kind, field.labels)
    target = _neighbour_row(field, row, direction)
    if target < 0:
        return change
    axis, after = direction // 2, direction % 2 == 1
    shift = 0 if field.rows_on[axis] > 0 else (1 if after else -1)
    first = row if after else target
    width = field.width
    size = labels * width
    plane = field.rows * size
    incoming = direction * plane + row * size
    for i in range(0, size, LANES):
        store(scratch.costs, i, load(scratch.belief, i) - load(field.messages, incoming + i))
    h, out = scratch.h, scratch.out
    for c in range(LANES, LANES + field.columns, LANES):
        low = broadcast(h.dtype.type(np.inf))
        for s in range(labels):
            cost = load(scratch.costs, s * width + c)
            store(h, s * LANES, cost)
            low = minimum(cost, low)
        at = c if after else c + shift  # where the edge begins
        weight = load(field.weights, (axis * field.rows + first) * width + at)
        message(kind, weight, _edges(field, axis, first, at - LANES), after, low, h, 0, out, 0, labels)
        for s in range(labels):
            store(scratch.sent, s * width + c, load(out, s * LANES))
    old_share, new_share = broadcast(h.dtype.type(keep)), broadcast(h.dtype.type(1 - keep))
    outgoing = (direction ^ 1) * plane + target * size + shift
    for s in range(labels):
        for c in range(LANES, LANES + field.columns, LANES):
            i = s * width + c
            old = load(field.messages, outgoing + i)
            new = old * old_share + load(scratch.sent, i) * new_share
            moved = absolute(new - old)
            change = where(change < moved, moved, change)
            store(to, outgoing + i, new)
    return change


@inline_helper
def _reduce_max(lanes):
    greatest = lane(lanes, 0)
    for k in range(1, LANES):
        greatest = max(greatest, lane(lanes, k))
    return greatest


@kernel
def update_all(field, kind, keep, scratch):
    """Compute new messages from every site to all its neighbours, from the old ones (Eq. 5), in `field.fresh`.

    Returns the greatest change of one. O(directions L) per site.
    """
    change = broadcast(scratch.h.dtype.type(0))
    for row in range(field.rows):
        _compute_beliefs(field, kind, row, scratch)
        for direction in range(2 * len(field.shape)):
            change = _send(field, kind, row, direction, field.fresh, keep, change, scratch)
    return _reduce_max(change)


@kernel
def update_rows(field, kind, direction, keep, scratch):
    """Update the messages in one direction along an axis other than the last; returns the greatest change.

    Row after row, each from those before it.
    """
    change = broadcast(scratch.h.dtype.type(0))
    for i in range(field.rows):
        row = i if direction % 2 == 1 else field.rows - 1 - i
        _compute_beliefs(field, kind, row, scratch)
        change = _send(field, kind, row, direction, field.messages, keep, change, scratch)
    return _reduce_max(change)


@kernel
def update_columns(field, kind, direction, keep, scratch):
    """The same along the last axis, column after column, eight rows at a time."""
    labels = label_count(kind, field.labels)
    dimensions = len(field.shape)
    axis, after = dimensions - 1, direction % 2 == 1
    width, columns = field.width, field.columns
    plane = field.rows * labels * width
    h, out, places = scratch.h, scratch.out, scratch.places
    old_share, new_share = broadcast(h.dtype.type(keep)), broadcast(h.dtype.type(1 - keep))
    change = broadcast(h.dtype.type(0))
    for start in range(0, field.rows, LANES):
        for k in range(LANES):  # beyond the last row, the last again
            row = min(start + k, field.rows - 1)
            places[k] = row * labels * width
            places[LANES + k] = (axis * field.rows + row) * width
            places[2 * LANES + k] = _edge(field, axis, row, 0)
        for i in range(columns - 1):
            column = i if after else columns - 1 - i
            begins = column if after else column - 1
            low = broadcast(h.dtype.type(np.inf))
            for s in range(labels):
                at = s * width + LANES + column
                cost = gather_from(field.unary, places, 0, at)
                for d in range(2 * dimensions):
                    if d != direction:
                        cost += gather_from(field.messages, places, 0, d * plane + at)
                store(h, s * LANES, cost)
                low = minimum(cost, low)
            weight = gather_from(field.weights, places, LANES, LANES + begins)
            edges = load(places, 2 * LANES) + broadcast(begins)
            message(kind, weight, edges, after, low, h, 0, out, 0, labels)
            for s in range(labels):
                at = (direction ^ 1) * plane + s * width + LANES + column + (1 if after else -1)
                old = gather_from(field.messages, places, 0, at)
                new = old * old_share + load(out, s * LANES) * new_share
                moved = absolute(new - old)
                change = where(change < moved, moved, change)
                for k in range(LANES):
                    field.messages[places[k] + at] = lane(new, k)
    return _reduce_max(change)


@kernel
def decode(field, kind, x, scratch):
    """Each site's label of the least belief (Eq. 6), the lowest among equals."""
    labels = label_count(kind, field.labels)
    for row in range(field.rows):
        _compute_beliefs(field, kind, row, scratch)
        for c in range(LANES, LANES + field.columns, LANES):
            low = load(scratch.belief, c)
            label = broadcast(np.int32(0))
            for s in range(1, labels):
                cost = load(scratch.belief, s * field.width + c)
                label = where(cost < low, broadcast(np.int32(s)), label)
                low = minimum(cost, low)
            for k in range(min(LANES, field.columns + LANES - c)):
                x[row * field.columns + c - LANES + k] = lane(label, k)


@kernel
def decode_in_turn(field, kind, x, costs):
    """One site after the other: its label given the labels of the sites before it and the messages from those after it.

    `costs` is work space for the labels and eight more.
    """
    labels = label_count(kind, field.labels)
    dimensions = len(field.shape)
    plane = field.rows * labels * field.width
    for row in range(field.rows):
        for column in range(field.columns):
            for s in range(labels):
                at = (row * labels + s) * field.width + LANES + column
                costs[s] = field.unary[at]
                for axis in range(dimensions):
                    costs[s] += field.messages[(2 * axis + 1) * plane + at]
            for axis in range(dimensions):
                other = _neighbour_row(field, row, 2 * axis)
                other_column = column - 1 if field.rows_on[axis] == 0 else column
                if other < 0 or other_column < 0:
                    continue
                weight = field.weights[(axis * field.rows + other) * field.width + LANES + other_column]
                edge = broadcast(_edge(field, axis, other, other_column))
                known = broadcast(x[other * field.columns + other_column])
                for s in range(0, labels, LANES):
                    own = minimum(broadcast(np.int32(s)) + lane_numbers(), broadcast(np.int32(labels - 1)))
                    cost = edge_cost(kind, broadcast(np.float64(weight)), edge, known, own, labels)
                    for k in range(min(LANES, labels - s)):
                        costs[s + k] += lane(cost, k)
            best = 0
            for s in range(1, labels):
                if costs[s] < costs[best]:
                    best = s
            x[row * field.columns + column] = best
