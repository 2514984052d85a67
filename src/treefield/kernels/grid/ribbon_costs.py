"""The costs of ribbons, read where they lie: collected for exact search, and the change of energy by new labels."""

from typing import NamedTuple

import numpy as np

from treefield.kernels.grid.packing import shift_of
from treefield.kernels.rules.rule import add_edge_cost, edge_cost, label_count, prepare
from treefield.kernels.simd.jit import inline_helper
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    cast,
    gather,
    gather_from,
    gather_pairs,
    int_to_mask,
    load,
    mask_to_int,
    minimum,
    store,
    where,
)

_ALL = (1 << LANES) - 1
COLUMNS = 16  # whose costs are collected together: so many fit into the first cache


class Ribbons(NamedTuple):
    """Ribbons of `rows` lines, eight to a group: row r of group g is block g `rows` + r of `Lines`. Flat arrays:

    roles      [kind]               the kinds of edges from a site to one that entered before: first that to the site
                                    that leaves, then others, by the digit that the other site has in the state
    directions [kind]               their directions
    distances  [kind]               how many steps before
    inside     [block][kind]        the lanes (a bit mask) that have such an edge
    outside    [block][direction]   the lanes that have an edge to a site outside of their ribbon
    active     [block]              the lanes that have this row

    A profile holds `queue` sites; `near` as in `kernels.grid.profiles`. With `ring` the ends of the lines are joined:
    columns are counted from `start`, where the sites keep their labels.
    """

    rows: int
    queue: int
    near: int
    roles: np.ndarray
    directions: np.ndarray
    distances: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    active: np.ndarray
    ring: bool
    start: int


class Labels(NamedTuple):
    """The labels of a group, [step][lane], before and after, and the lanes where they differ, [step]."""

    old: np.ndarray
    new: np.ndarray
    moved: np.ndarray


@inline_helper
def place_of(lines, ribbons, j):
    """The position along the line of column j."""
    place = ribbons.start + j
    return place - lines.length if place >= lines.length else place


@inline_helper
def weights_at(costs, lines, block, d, place, mask):
    """The weights of the edges in a direction; 0 in lanes that are not in the mask."""
    none = broadcast(costs.edge_weights.dtype.type(0))
    if mask == 0:
        return none
    if costs.uniform:
        return where(int_to_mask(mask), broadcast(costs.axis_weights[d]), none)
    at = (block * lines.directions + d) * LANES
    if mask == _ALL:
        return gather_from(costs.edge_weights, lines.edges, at, place * lines.edge_strides[d])
    there = int_to_mask(mask)
    numbers = load(lines.edges, at) + broadcast(place * lines.edge_strides[d])
    return where(there, gather(costs.edge_weights, 0, where(there, numbers, numbers - numbers)), none)


@inline_helper
def edges_at(lines, block, d, place):
    return load(lines.edges, (block * lines.directions + d) * LANES) + broadcast(place * lines.edge_strides[d])


@inline_helper
def _labels(x, lines, block, d, place):
    """The labels at a place on a block's lines (d = 0), or on the lines next to them."""
    return gather_from(x, lines.origins, (block * lines.directions + d) * LANES, place * lines.stride)


@inline_helper
def is_own_first(d):
    """Whether a site is the first of its edges in a direction. Along the line it is the second of the edge back."""
    return d > 0 and d % 2 == 0


@inline_helper
def inside_edge(lines, ribbons, block, kind_number, j):
    """The place of the edge from column j to a site that entered before, and the lanes that have it."""
    d = ribbons.directions[kind_number]
    mask = np.int64(ribbons.inside[block * len(ribbons.roles) + kind_number])
    if d == 0:
        if j > (1 if ribbons.ring else 0):
            return place_of(lines, ribbons, j - 1), mask
        return 0, 0
    shift = shift_of(lines.shifts, d)
    if not 0 <= j + shift < lines.length:
        return 0, 0
    return place_of(lines, ribbons, j), mask


@inline_helper
def _absorb(kind, work, at, weight, edges, own_first, neighbour_labels, labels):
    weight = cast(weight, work.unary)
    prepared = prepare(kind, edges, own_first, neighbour_labels, labels)
    for s in range(labels):
        cost = load(work.unary, at + s * LANES)
        store(work.unary, at + s * LANES, add_edge_cost(kind, cost, weight, s, own_first, prepared, labels))


@inline_helper
def _absorb_ring(x, costs, lines, ribbons, block, j, kind, work, at, labels):
    """Absorb the labels of the first column of a closed line into the columns next to it."""
    mask, place = np.int64(ribbons.active[block]), place_of(lines, ribbons, j)
    first = _labels(x, lines, block, 0, ribbons.start)
    if j == 1:
        weight = weights_at(costs, lines, block, 0, ribbons.start, mask)
        _absorb(kind, work, at, weight, edges_at(lines, block, 0, ribbons.start), False, first, labels)
    if j == lines.length - 1:
        weight = weights_at(costs, lines, block, 0, place, mask)
        _absorb(kind, work, at, weight, edges_at(lines, block, 0, place), True, first, labels)


@inline_helper
def collect_row(x, costs, lines, ribbons, group, r, first, end, kind, work, old):
    """Eq. 8 for some columns of one row: the unary and the edges to sites outside. O(directions x L) per site.

    One array after the other, so that the addresses of eight lanes stay in registers.
    """
    labels, rows = label_count(kind, lines.labels), ribbons.rows
    block = group * rows + r
    own = load(lines.sites, block * LANES)
    sites = own * broadcast(labels)
    cap = broadcast(costs.forbidden_cost)
    for j in range(first, end):
        at, place = (j * rows + r) * labels * LANES, place_of(lines, ribbons, j)
        for s in range(0, labels - 1, 2):
            one, two = gather_pairs(costs.unary, place * lines.stride * labels + s, sites)
            store(work.unary, at + s * LANES, cast(minimum(one, cap), work.unary))
            store(work.unary, at + (s + 1) * LANES, cast(minimum(two, cap), work.unary))
        if labels % 2 == 1:
            one = gather(costs.unary, (place * lines.stride + 1) * labels - 1, sites)
            store(work.unary, at + (labels - 1) * LANES, cast(minimum(one, cap), work.unary))
    for j in range(first, end):
        store(old, (j * rows + r) * LANES, gather(x, place_of(lines, ribbons, j) * lines.stride, own))
    for d in range(1, lines.directions):
        if ribbons.outside[block * lines.directions + d] != 0:
            _absorb_direction(x, costs, lines, ribbons, block, r, d, first, end, kind, work)
    if ribbons.ring:
        for j in range(first, end):
            _absorb_ring(x, costs, lines, ribbons, block, j, kind, work, (j * rows + r) * labels * LANES, labels)
    for kind_number in range(len(ribbons.roles)):
        _collect_weights(costs, lines, ribbons, block, r, kind_number, first, end, work)


@inline_helper
def _absorb_direction(x, costs, lines, ribbons, block, r, d, first, end, kind, work):
    """Absorb the edges in a direction to sites outside of the ribbon."""
    labels, rows, shift = label_count(kind, lines.labels), ribbons.rows, shift_of(lines.shifts, d)
    mask = np.int64(ribbons.outside[block * lines.directions + d])
    for j in range(first, end):
        if not 0 <= j + shift < lines.length:
            continue
        place, at = place_of(lines, ribbons, j), (j * rows + r) * labels * LANES
        weight, edges = weights_at(costs, lines, block, d, place, mask), edges_at(lines, block, d, place)
        neighbour_labels = _labels(x, lines, block, d, place + shift)
        if d % 2 == 0:
            _absorb(kind, work, at, weight, edges, True, neighbour_labels, labels)
        else:
            _absorb(kind, work, at, weight, edges, False, neighbour_labels, labels)


@inline_helper
def _collect_weights(costs, lines, ribbons, block, r, kind_number, first, end, work):
    """The weights of the edges of one kind."""
    rows, kinds, d = ribbons.rows, len(ribbons.roles), ribbons.directions[kind_number]
    stride = lines.edge_strides[d]
    numbers = load(lines.edges, (block * lines.directions + d) * LANES)
    for j in range(first, end):
        place, mask = inside_edge(lines, ribbons, block, kind_number, j)
        at = ((j * rows + r) * kinds + kind_number) * LANES
        if mask == _ALL and not costs.uniform:
            store(work.weights, at, cast(gather(costs.edge_weights, place * stride, numbers), work.weights))
        else:
            store(work.weights, at, cast(weights_at(costs, lines, block, d, place, mask), work.weights))


@inline_helper
def _edge_change(kind, weight, edges, own_first, new, old, other_new, other_old, labels):
    """The change of the costs of edges, in float64."""
    weight = cast(weight, np.float64)
    if own_first:
        return edge_cost(kind, weight, edges, new, other_new, labels) - edge_cost(
            kind, weight, edges, old, other_old, labels
        )
    return edge_cost(kind, weight, edges, other_new, new, labels) - edge_cost(
        kind, weight, edges, other_old, old, labels
    )


@inline_helper
def _site_change(x, costs, lines, ribbons, block, j, kind, new, old):
    """The change of the unary costs and of the edges to sites outside, in float64."""
    labels, place = label_count(kind, lines.labels), place_of(lines, ribbons, j)
    sites, base = load(lines.sites, block * LANES) * broadcast(labels), place * lines.stride * labels
    cap = broadcast(costs.forbidden_cost)
    after = minimum(gather(costs.unary, base, sites + cast(new, np.int64)), cap)
    before = minimum(gather(costs.unary, base, sites + cast(old, np.int64)), cap)
    change = cast(after, np.float64) - cast(before, np.float64)
    for d in range(1, lines.directions):
        mask = np.int64(ribbons.outside[block * lines.directions + d])
        shift = shift_of(lines.shifts, d)
        if mask != 0 and 0 <= j + shift < lines.length:
            weight, edges = weights_at(costs, lines, block, d, place, mask), edges_at(lines, block, d, place)
            other = _labels(x, lines, block, d, place + shift)
            change += _edge_change(kind, weight, edges, is_own_first(d), new, old, other, other, labels)
    if ribbons.ring:
        start, mask = ribbons.start, np.int64(ribbons.active[block])
        first = _labels(x, lines, block, 0, start)
        if j == 1:
            weight, edges = weights_at(costs, lines, block, 0, start, mask), edges_at(lines, block, 0, start)
            change += _edge_change(kind, weight, edges, False, new, old, first, first, labels)
        if j == lines.length - 1:
            weight, edges = weights_at(costs, lines, block, 0, place, mask), edges_at(lines, block, 0, place)
            change += _edge_change(kind, weight, edges, True, new, old, first, first, labels)
    return change


@inline_helper
def change_by(x, costs, lines, ribbons, group, kind, found):
    """The change of energy of each lane, in float64, and the lanes that have new labels."""
    labels = label_count(kind, lines.labels)
    change, changed = broadcast(0.0), np.int64(0)
    j, r = 0, 0
    for step in range(lines.length * ribbons.rows):
        block = group * ribbons.rows + r
        old, new = load(found.old, step * LANES), load(found.new, step * LANES)
        moved = np.int64(0)
        if not (ribbons.ring and j == 0):
            moved = mask_to_int(new != old) & ribbons.active[block]
        new = where(int_to_mask(moved), new, old)
        store(found.new, step * LANES, new)
        found.moved[step] = moved
        changed |= moved
        if moved != 0:
            change += _site_change(x, costs, lines, ribbons, block, j, kind, new, old)
        for kind_number in range(len(ribbons.roles)):
            d = ribbons.directions[kind_number]
            edge_place, mask = inside_edge(lines, ribbons, block, kind_number, j)
            before = step - ribbons.distances[kind_number]
            if mask != 0 and (moved | found.moved[before]) & mask != 0:
                weight, edges = (
                    weights_at(costs, lines, block, d, edge_place, mask),
                    edges_at(lines, block, d, edge_place),
                )
                other_old, other_new = load(found.old, before * LANES), load(found.new, before * LANES)
                change += _edge_change(kind, weight, edges, is_own_first(d), new, old, other_new, other_old, labels)
        r += 1
        if r == ribbons.rows:
            j, r = j + 1, 0
    return change, changed
