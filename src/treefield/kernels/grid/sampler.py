"""Gibbs sampling on a checkerboard: sites of one colour touch only the other, so eight of them are drawn at once.

Each row of a grid (its last axis) is stored as two halves, its even columns and then its odd ones, so that neighbours
lie side by side as well: a site at (parity p, place k) has its neighbours along the row at places k + p - 1 and k + p
of the other half, and those in other rows at (p, k) too. An edge's weight stands where its first site does, 0 where
there is no edge.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.rules.rule import add_edge_cost, edge_cost, label_count, lane_rule_of, prepare
from treefield.kernels.simd.jit import inline_helper, inline_overload, kernel
from treefield.kernels.simd.lanes import (
    LANES,
    absolute,
    broadcast,
    cast,
    gather,
    int_to_mask,
    lane,
    lane_numbers,
    load,
    load_deinterleaved,
    mask_to_int,
    minimum,
    reinterpret,
    store,
    store_interleaved,
    where,
)
from treefield.kernels.simd.random import bits64, lane_uniform

# 2**f for |f| <= 1/2, to 1e-7
_C0, _C1, _C2 = np.float32(1.00000007), np.float32(0.693146967), np.float32(0.240221197)
_C3, _C4, _C5 = np.float32(0.0555071327), np.float32(0.00967554148), np.float32(0.00132764720)
_ROUND = np.float32(1.5 * 2**23)  # a float32 of this size has no fraction left


class Board(NamedTuple):
    """A grid of planes x rows x columns (one plane in 2-D). Flat arrays:

    unary    [row][parity][group][label][lane], rows of all planes one after the other
    weights  [parity][half] zeros, then [axis][row][parity][half]; or, if they are uniform, one row per axis:
             `weight_axis` and `weight_row` are the distances to the next
    labels   [row][parity][half], the state while sampling
    h, sums  [label][lane], work space: costs, and running sums of float32

    A half row has `groups` groups of eight places and more than columns / 2 places, `half`: at least one is not in use.
    `edges` are the numbers of the first edges along rows and along columns, and of the last edge.
    """

    unary: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    h: np.ndarray
    sums: np.ndarray
    edges: np.ndarray
    planes: int
    rows: int
    columns: int
    label_count: int
    half: int
    groups: int
    weight_axis: int
    weight_row: int


class Heat(NamedTuple):
    """The temperature T in the form that the lanes need.

    `scale` = -log2(e) / T; costs from `limit` above the least have probability 0; random numbers are multiplied by
    `chance`, 1, or 0 to get the lowest among the labels left.
    """

    scale: np.floating
    limit: np.floating
    chance: np.float32


class NeighbourOffsets(NamedTuple):
    """Where the neighbours of a half row in one direction begin: their labels, the weights and the edge numbers."""

    labels: int
    weights: int
    edge: int


@inline_helper
def _neighbour_offsets(board, row, parity):
    """The neighbours of a half row: before and after it along the rows, the columns and the planes.

    Where there are none, the labels are its own and the weights the zeros.
    """
    rows, half = board.rows, board.half
    plane, i = row // rows, row % rows
    own = (2 * row + parity) * half
    other_half = (2 * row + 1 - parity) * half + parity - 1
    weight = 2 * half + row * board.weight_row + parity * half  # the first axis's, in this row
    along = 2 * half + 2 * board.weight_axis + row * board.weight_row
    edge = board.edges[1] + row * (board.columns - 1) + parity
    before = NeighbourOffsets(other_half, along + (1 - parity) * half + parity - 1, edge - 1)
    after = NeighbourOffsets(other_half + 1, along + parity * half, edge)
    edge = board.edges[0] + (row - plane) * board.columns + parity
    up, down = NeighbourOffsets(own, 0, 0), NeighbourOffsets(own, 0, 0)
    if i > 0:
        up = NeighbourOffsets(own - 2 * half, weight + board.weight_axis - board.weight_row, edge - board.columns)
    if i < rows - 1:
        down = NeighbourOffsets(own + 2 * half, weight + board.weight_axis, edge)
    edge = row * board.columns + parity
    front, behind = NeighbourOffsets(own, 0, 0), NeighbourOffsets(own, 0, 0)
    if plane > 0:
        front = NeighbourOffsets(own - 2 * half * rows, weight - board.weight_row * rows, edge - board.columns * rows)
    if plane < board.planes - 1:
        behind = NeighbourOffsets(own + 2 * half * rows, weight, edge)
    return before, after, up, down, front, behind


@inline_helper
def _label(board, neighbour, k):
    return cast(load(board.labels, neighbour.labels + k), np.int32)


@inline_helper
def _edges(board, neighbour, k):
    """The edge numbers, moved to a true one in lanes that have none."""
    edge = broadcast(neighbour.edge + 2 * k) + cast(lane_numbers() + lane_numbers(), np.int64)
    return minimum(where(edge < broadcast(0), broadcast(0), edge), broadcast(board.edges[2]))


@inline_helper
def _load_neighbours(board, neighbour, k, own_first, kind):
    """The weights and labels of eight neighbours, for `add_edge_cost`."""
    labels = label_count(kind, board.label_count)
    weight = cast(load(board.weights, neighbour.weights + k), board.h)
    return weight, prepare(kind, _edges(board, neighbour, k), own_first, _label(board, neighbour, k), labels)


@inline_helper
def _change_of(board, neighbour, k, own_first, kind, new, old):
    labels = label_count(kind, board.label_count)
    weight = cast(load(board.weights, neighbour.weights + k), np.float64)
    edge, other = _edges(board, neighbour, k), _label(board, neighbour, k)
    if own_first:
        return edge_cost(kind, weight, edge, new, other, labels) - edge_cost(kind, weight, edge, old, other, labels)
    return edge_cost(kind, weight, edge, other, new, labels) - edge_cost(kind, weight, edge, other, old, labels)


@inline_helper
def _edge_changes(board, neighbours, k, kind, new, old):
    before, after, up, down, front, behind = neighbours
    change = _change_of(board, before, k, False, kind, new, old)
    change += _change_of(board, after, k, True, kind, new, old)
    change += _change_of(board, up, k, False, kind, new, old)
    change += _change_of(board, down, k, True, kind, new, old)
    if board.planes > 1:
        change += _change_of(board, front, k, False, kind, new, old)
        change += _change_of(board, behind, k, True, kind, new, old)
    return change


def change(kind, board, neighbours, at, k, new, old):
    """The change of energy by the new labels of the eight sites at place `k`, in float64.

    Undefined where they are the old ones.
    """


@inline_overload(change)
def _change_overload(kind, board, neighbours, at, k, new, old):
    return _change_of_two if lane_rule_of(kind).label_count == 2 else _change_of_many


def _change_of_two(kind, board, neighbours, at, k, new, old):
    zero, one = broadcast(np.int32(0)), broadcast(np.int32(1))
    rise = cast(load(board.unary, at + LANES), np.float64) - cast(load(board.unary, at), np.float64)
    rise += _edge_changes(board, neighbours, k, kind, one, zero)
    return where(new == one, rise, broadcast(0.0) - rise)


def _change_of_many(kind, board, neighbours, at, k, new, old):
    after = gather(board.unary, at, new * broadcast(np.int32(LANES)) + lane_numbers())
    before = gather(board.unary, at, old * broadcast(np.int32(LANES)) + lane_numbers())
    return cast(after, np.float64) - cast(before, np.float64) + _edge_changes(board, neighbours, k, kind, new, old)


@inline_helper
def _likelihood(excess, heat):
    """exp(-excess / T) in float32, to 1e-7."""
    t = cast(excess * broadcast(heat.scale), np.float32)
    rounded = t + broadcast(_ROUND)
    f = t - (rounded - broadcast(_ROUND))
    p = broadcast(_C5) * f + broadcast(_C4)
    p = p * f + broadcast(_C3)
    p = p * f + broadcast(_C2)
    p = p * f + broadcast(_C1)
    p = p * f + broadcast(_C0)
    # the integer part is in the last bits of `rounded`: add it to the exponent
    power = reinterpret(rounded, np.int32) << broadcast(np.int32(23))
    return where(
        excess < broadcast(heat.limit),
        reinterpret(reinterpret(p, np.int32) + power, np.float32),
        broadcast(np.float32(0)),
    )


def draw(kind, board, neighbours, at, k, heat, number):
    """Labels for the eight sites at place `k`, given a random number between 0 and 1 for each."""


@inline_overload(draw)
def _draw_overload(kind, board, neighbours, at, k, heat, number):
    return _draw_of_two if lane_rule_of(kind).label_count == 2 else _draw_of_many


@inline_helper
def _add_edge_to_two(board, neighbour, k, own_first, kind, zero, one):
    """Add the edges in one direction to the costs of both labels."""
    weight, prepared = _load_neighbours(board, neighbour, k, own_first, kind)
    return add_edge_cost(kind, zero, weight, 0, own_first, prepared, 2), add_edge_cost(
        kind, one, weight, 1, own_first, prepared, 2
    )


def _draw_of_two(kind, board, neighbours, at, k, heat, number):
    before, after, up, down, front, behind = neighbours
    zero, one = cast(load(board.unary, at), board.h), cast(load(board.unary, at + LANES), board.h)
    zero, one = _add_edge_to_two(board, before, k, False, kind, zero, one)
    zero, one = _add_edge_to_two(board, after, k, True, kind, zero, one)
    zero, one = _add_edge_to_two(board, up, k, False, kind, zero, one)
    zero, one = _add_edge_to_two(board, down, k, True, kind, zero, one)
    if board.planes > 1:
        zero, one = _add_edge_to_two(board, front, k, False, kind, zero, one)
        zero, one = _add_edge_to_two(board, behind, k, True, kind, zero, one)
    # the dearer of the two (label 0, if neither is) is drawn by small numbers, which are the finer ones
    likelihood = _likelihood(absolute(one - zero), heat)
    dearer = number * (broadcast(np.float32(1)) + likelihood) < likelihood
    return where((one <= zero) ^ dearer, broadcast(np.int32(1)), broadcast(np.int32(0)))


def _draw_of_many(kind, board, neighbours, at, k, heat, number):
    before, after, up, down, front, behind = neighbours
    labels, unary, h, sums, deep = board.label_count, board.unary, board.h, board.sums, board.planes > 1
    if deep:
        w1, p1 = _load_neighbours(board, front, k, False, kind)
        w2, p2 = _load_neighbours(board, behind, k, True, kind)
        for s in range(labels):
            cost = add_edge_cost(kind, cast(load(unary, at + s * LANES), h), w1, s, False, p1, labels)
            store(h, s * LANES, add_edge_cost(kind, cost, w2, s, True, p2, labels))
    w1, p1 = _load_neighbours(board, before, k, False, kind)
    w2, p2 = _load_neighbours(board, after, k, True, kind)
    w3, p3 = _load_neighbours(board, up, k, False, kind)
    w4, p4 = _load_neighbours(board, down, k, True, kind)
    low = broadcast(h.dtype.type(np.inf))
    for s in range(labels):
        cost = load(h, s * LANES) if deep else cast(load(unary, at + s * LANES), h)
        cost = add_edge_cost(kind, add_edge_cost(kind, cost, w1, s, False, p1, labels), w2, s, True, p2, labels)
        cost = add_edge_cost(kind, add_edge_cost(kind, cost, w3, s, False, p3, labels), w4, s, True, p4, labels)
        store(h, s * LANES, cost)
        low = minimum(cost, low)
    total = broadcast(np.float32(0))
    for s in range(labels):
        total += _likelihood(load(h, s * LANES) - low, heat)
        store(sums, s * LANES, total)
    target = number * total  # less than the total, for numbers up to 1 - 2**-24
    label = broadcast(np.int32(0))
    for s in range(labels - 1):
        label = where(load(sums, s * LANES) <= target, broadcast(np.int32(s + 1)), label)
    return label


@inline_helper
def _sample_half_row(board, row, parity, kind, heat, seed):
    """Draw every second site of a row, those of one parity; returns the change of energy."""
    neighbours = _neighbour_offsets(board, row, parity)
    size = label_count(kind, board.label_count) * LANES
    number = 2 * row + parity
    own, first = number * board.half, number * board.groups * size
    places = (board.columns + 1 - parity) // 2
    key = bits64(seed, number)
    total = broadcast(0.0)
    for k in range(0, places, LANES):
        at = first + k // LANES * size
        new = draw(kind, board, neighbours, at, k, heat, lane_uniform(key, k) * broadcast(heat.chance))
        old = cast(load(board.labels, own + k), np.int32)
        moved = mask_to_int(new != old)
        if places - k < LANES:
            moved &= (1 << (places - k)) - 1
        if moved != 0:
            moving = int_to_mask(moved)
            total += where(moving, change(kind, board, neighbours, at, k, new, old), broadcast(0.0))
            store(board.labels, own + k, cast(where(moving, new, old), board.labels))
    result = 0.0
    for k in range(LANES):
        result += lane(total, k)
    return result


@inline_helper
def _load_row(x, board, row):
    """Bring the labels of a row in."""
    labels, half, columns = board.labels, board.half, board.columns
    even, first = 2 * row * half, row * columns
    whole = columns // (2 * LANES) * LANES
    for k in range(0, whole, LANES):
        even_labels, odd_labels = load_deinterleaved(x, first + 2 * k)
        store(labels, even + k, cast(even_labels, labels))
        store(labels, even + half + k, cast(odd_labels, labels))
    for j in range(2 * whole, columns):
        labels[even + j % 2 * half + j // 2] = x[first + j]


@inline_helper
def _store_row(x, board, row):
    """Write the labels of a row back."""
    labels, half, columns = board.labels, board.half, board.columns
    even, first = 2 * row * half, row * columns
    whole = columns // (2 * LANES) * LANES
    for k in range(0, whole, LANES):
        store_interleaved(x, first + 2 * k, cast(load(labels, even + k), x), cast(load(labels, even + half + k), x))
    for j in range(2 * whole, columns):
        x[first + j] = labels[even + j % 2 * half + j // 2]


@kernel
def pack_board(unary, forbidden_cost, board):
    """Lay the natural unary [site][label] out in the order of the board. O(L) per site.

    Forbidden costs are cut to `forbidden_cost`.
    """
    labels = board.label_count
    for row in range(board.planes * board.rows):
        for parity in range(min(2, board.columns)):
            places = (board.columns + 1 - parity) // 2
            for k in range(0, places, LANES):
                at = (((2 * row + parity) * board.groups) * LANES + k) * labels
                last = broadcast(np.int32(min(LANES, places - k) - 1))
                first = minimum(lane_numbers(), last) * broadcast(np.int32(2 * labels))
                site = row * board.columns + 2 * k + parity
                for s in range(labels):
                    cost = gather(unary, site * labels + s, first)
                    store(board.unary, at + s * LANES, minimum(cost, broadcast(forbidden_cost)))


@kernel
def sample_board(x, board, kind, heat, seed):
    """One sweep of Gibbs sampling, in place on the natural labelling; returns the change of energy.

    Sites of even coordinate sum come first, then the odd ones. O(L) per site.

    The odd sites of a row follow as soon as their even neighbours are drawn, while the costs are in the cache.
    """
    rows = board.rows
    count = board.planes * rows
    for row in range(count):
        _load_row(x, board, row)
    total = 0.0
    lag = rows if board.planes > 1 else 1
    for step in range(2 * (count + lag)):
        colour = step % 2
        row = step // 2 - colour * lag
        if 0 <= row < count:
            parity = (row // rows + row % rows + colour) % 2
            total += _sample_half_row(board, row, parity, kind, heat, seed)
    for row in range(count):
        _store_row(x, board, row)
    return total
