"""Exact search on ribbons: trees several lines wide, eight of them side by side, one lane each.

A ribbon is solved exactly while the sites outside keep their labels. It takes its new labels only if the change of
energy, evaluated in float64 from the costs as they are given, is not positive.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.grid.packing import shift_of
from treefield.kernels.grid.profiles import (
    best_state,
    count_states,
    enter,
    fill_table,
    has_diagonals,
    join_pairs,
    label_before,
    last_label,
    lowest_cost,
    needs_table,
)
from treefield.kernels.rules.rule import add_edge_cost, edge_cost, label_count, lane_rule_of, prepare
from treefield.kernels.simd.jit import inline_helper, inline_overload, kernel
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    cast,
    gather,
    gather_from,
    gather_pairs,
    int_to_mask,
    lane,
    lane_numbers,
    load,
    mask_to_int,
    minimum,
    store,
    where,
)

_ALL = (1 << LANES) - 1
_COLUMNS = 16  # whose costs are collected together: so many fit into the first cache


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
def _place(lines, ribbons, j):
    """The position along the line of column j."""
    place = ribbons.start + j
    return place - lines.length if place >= lines.length else place


@inline_helper
def _weights(costs, lines, block, d, place, mask):
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
def _edges(lines, block, d, place):
    return load(lines.edges, (block * lines.directions + d) * LANES) + broadcast(place * lines.edge_strides[d])


@inline_helper
def _labels(x, lines, block, d, place):
    """The labels at a place on a block's lines (d = 0), or on the lines next to them."""
    return gather_from(x, lines.origins, (block * lines.directions + d) * LANES, place * lines.stride)


@inline_helper
def _own_first(d):
    """Whether a site is the first of its edges in a direction. Along the line it is the second of the edge back."""
    return d > 0 and d % 2 == 0


@inline_helper
def _inside_edge(lines, ribbons, block, kind_number, j):
    """The place of the edge from column j to a site that entered before, and the lanes that have it."""
    d = ribbons.directions[kind_number]
    mask = np.int64(ribbons.inside[block * len(ribbons.roles) + kind_number])
    if d == 0:
        if j > (1 if ribbons.ring else 0):
            return _place(lines, ribbons, j - 1), mask
        return 0, 0
    shift = shift_of(lines.shifts, d)
    if not 0 <= j + shift < lines.length:
        return 0, 0
    return _place(lines, ribbons, j), mask


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
    mask, place = np.int64(ribbons.active[block]), _place(lines, ribbons, j)
    first = _labels(x, lines, block, 0, ribbons.start)
    if j == 1:
        weight = _weights(costs, lines, block, 0, ribbons.start, mask)
        _absorb(kind, work, at, weight, _edges(lines, block, 0, ribbons.start), False, first, labels)
    if j == lines.length - 1:
        weight = _weights(costs, lines, block, 0, place, mask)
        _absorb(kind, work, at, weight, _edges(lines, block, 0, place), True, first, labels)


@inline_helper
def _collect_row(x, costs, lines, ribbons, group, r, first, end, kind, work, old):
    """Eq. 8 for some columns of one row: the unary and the edges to sites outside. O(directions x L) per site.

    One array after the other, so that the addresses of eight lanes stay in registers.
    """
    labels, rows = label_count(kind, lines.labels), ribbons.rows
    block = group * rows + r
    sites, own = load(lines.sites, block * LANES) * broadcast(labels), load(lines.sites, block * LANES)
    cap = broadcast(costs.forbidden_cost)
    for j in range(first, end):
        at, place = (j * rows + r) * labels * LANES, _place(lines, ribbons, j)
        for s in range(0, labels - 1, 2):
            one, two = gather_pairs(costs.unary, place * lines.stride * labels + s, sites)
            store(work.unary, at + s * LANES, cast(minimum(one, cap), work.unary))
            store(work.unary, at + (s + 1) * LANES, cast(minimum(two, cap), work.unary))
        if labels % 2 == 1:
            one = gather(costs.unary, (place * lines.stride + 1) * labels - 1, sites)
            store(work.unary, at + (labels - 1) * LANES, cast(minimum(one, cap), work.unary))
    for j in range(first, end):
        store(old, (j * rows + r) * LANES, gather(x, _place(lines, ribbons, j) * lines.stride, own))
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
        place, at = _place(lines, ribbons, j), (j * rows + r) * labels * LANES
        weight, edges = _weights(costs, lines, block, d, place, mask), _edges(lines, block, d, place)
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
        place, mask = _inside_edge(lines, ribbons, block, kind_number, j)
        at = ((j * rows + r) * kinds + kind_number) * LANES
        if mask == _ALL and not costs.uniform:
            store(work.weights, at, cast(gather(costs.edge_weights, place * stride, numbers), work.weights))
        else:
            store(work.weights, at, cast(_weights(costs, lines, block, d, place, mask), work.weights))


@inline_helper
def _leaving_edges(lines, ribbons, block, step, j, work):
    """The weights and the numbers of the edges to the sites that leave."""
    place, _ = _inside_edge(lines, ribbons, block, 0, j)
    weight = load(work.weights, step * len(ribbons.roles) * LANES)
    return weight, _edges(lines, block, ribbons.directions[0], place)


@inline_helper
def _prepare_edges(lines, ribbons, group, j, r, kind, work):
    """Fill the tables of the edges of the sites that enter."""
    labels = label_count(kind, lines.labels)
    block, step = group * ribbons.rows + r, j * ribbons.rows + r
    kinds = len(ribbons.roles)
    for kind_number in range(0 if needs_table(kind) else 1, kinds):
        d = ribbons.directions[kind_number]
        place, _ = _inside_edge(lines, ribbons, block, kind_number, j)
        edges = _edges(lines, block, d, place)
        weight = load(work.weights, (step * kinds + kind_number) * LANES)
        if _own_first(d):
            fill_table(kind, work, ribbons.roles[kind_number], weight, edges, True, labels)
        else:
            fill_table(kind, work, ribbons.roles[kind_number], weight, edges, False, labels)
    if has_diagonals(lines.shifts):
        join_pairs(work, labels)


@inline_helper
def _advance(lines, ribbons, group, first, end, kind, work):
    """Let the sites of one segment enter, one after the other; returns where the costs after it begin."""
    labels = label_count(kind, lines.labels)
    counts = count_states(labels, ribbons.queue, ribbons.near)
    states = counts.rests * labels
    j, r, source = first // ribbons.rows, first % ribbons.rows, 0
    for step in range(first, end):
        target = source + states * LANES
        if target == len(work.costs):
            target = 0
        _prepare_edges(lines, ribbons, group, j, r, kind, work)
        weight, edges = _leaving_edges(lines, ribbons, group * ribbons.rows + r, step, j, work)
        lowest = broadcast(work.costs.dtype.type(0))
        if r == 0:
            lowest = lowest_cost(work, source, states)  # so that sums stay small
        decisions, at = (step - first) * states, step * labels * LANES
        enter(kind, lines.shifts, work, source, target, decisions, at, lowest, weight, edges, counts, labels)
        source, r = target, r + 1
        if r == ribbons.rows:
            j, r = j + 1, 0
    return source


@inline_helper
def _copy_states(source, at, target, to, states):
    for state in range(states):
        store(target, to + state * LANES, load(source, at + state * LANES))


def _backtrack(lines, ribbons, group, first, end, kind, work, new):
    """Write the labels of the sites that entered in a segment, the last first, from the states after it.

    Leaves the states before it in `work.states`.
    """


@inline_overload(_backtrack)
def _backtrack_overload(lines, ribbons, group, first, end, kind, work, new):
    return _read_decisions if lane_rule_of(kind).label_count == 2 else _derive_decisions


def _read_decisions(lines, ribbons, group, first, end, kind, work, new):
    last, states = work.states, 1 << ribbons.queue
    for step in range(end - 1, first - 1, -1):
        for k in range(LANES):
            state = last[k]
            label = state >> (ribbons.queue - 1)
            new[step * LANES + k] = label
            before = work.decisions[(step - first) * states + state] >> k & 1
            last[k] = 2 * (state - (label << (ribbons.queue - 1))) + before


def _derive_decisions(lines, ribbons, group, first, end, kind, work, new):
    labels = label_count(kind, lines.labels)
    rests = count_states(labels, ribbons.queue, ribbons.near).rests
    state = load(work.states, 0)
    for step in range(end - 1, first - 1, -1):
        label = last_label(state, rests, labels)
        store(new, step * LANES, label)
        rest = state - label * broadcast(np.int32(rests))
        j, block = step // ribbons.rows, group * ribbons.rows + step % ribbons.rows
        weight, edges = _leaving_edges(lines, ribbons, block, step, j, work)
        source = (step - first) * rests * labels * LANES
        state = rest * broadcast(np.int32(labels))
        state += label_before(kind, work, source, rest, label, weight, edges, labels)
    store(work.states, 0, state)


@inline_helper
def _search(lines, ribbons, group, kind, work, new):
    """The best labels of all ribbons of a group, given their collected costs.

    With several segments the states at their beginnings are kept, and each segment is computed twice.
    """
    labels = label_count(kind, lines.labels)
    states = count_states(labels, ribbons.queue, ribbons.near).rests * labels
    steps = lines.length * ribbons.rows
    zero = broadcast(work.costs.dtype.type(0))
    for state in range(states):
        store(work.costs, state * LANES, zero)
    segments = (steps + work.segment - 1) // work.segment
    for number in range(segments):
        first = number * work.segment
        end = min(first + work.segment, steps)
        if segments > 1:
            _copy_states(work.costs, 0, work.checkpoints, number * states * LANES, states)
        last = _advance(lines, ribbons, group, first, end, kind, work)
        if number < segments - 1:
            _copy_states(work.costs, last, work.costs, 0, states)
    store(work.states, 0, best_state(work, last, states))
    for number in range(segments - 1, -1, -1):
        first = number * work.segment
        end = min(first + work.segment, steps)
        if number < segments - 1:
            _copy_states(work.checkpoints, number * states * LANES, work.costs, 0, states)
            _advance(lines, ribbons, group, first, end, kind, work)
        _backtrack(lines, ribbons, group, first, end, kind, work, new)


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
    labels, place = label_count(kind, lines.labels), _place(lines, ribbons, j)
    sites, base = load(lines.sites, block * LANES) * broadcast(labels), place * lines.stride * labels
    cap = broadcast(costs.forbidden_cost)
    after = minimum(gather(costs.unary, base, sites + cast(new, np.int64)), cap)
    before = minimum(gather(costs.unary, base, sites + cast(old, np.int64)), cap)
    change = cast(after, np.float64) - cast(before, np.float64)
    for d in range(1, lines.directions):
        mask = np.int64(ribbons.outside[block * lines.directions + d])
        shift = shift_of(lines.shifts, d)
        if mask != 0 and 0 <= j + shift < lines.length:
            weight, edges = _weights(costs, lines, block, d, place, mask), _edges(lines, block, d, place)
            other = _labels(x, lines, block, d, place + shift)
            change += _edge_change(kind, weight, edges, _own_first(d), new, old, other, other, labels)
    if ribbons.ring:
        mask, first = np.int64(ribbons.active[block]), _labels(x, lines, block, 0, ribbons.start)
        if j == 1:
            weight, edges = _weights(costs, lines, block, 0, ribbons.start, mask), _edges(lines, block, 0, ribbons.start)
            change += _edge_change(kind, weight, edges, False, new, old, first, first, labels)
        if j == lines.length - 1:
            weight, edges = _weights(costs, lines, block, 0, place, mask), _edges(lines, block, 0, place)
            change += _edge_change(kind, weight, edges, True, new, old, first, first, labels)
    return change


@inline_helper
def _change(x, costs, lines, ribbons, group, kind, found):
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
            edge_place, mask = _inside_edge(lines, ribbons, block, kind_number, j)
            before = step - ribbons.distances[kind_number]
            if mask != 0 and (moved | found.moved[before]) & mask != 0:
                weight, edges = _weights(costs, lines, block, d, edge_place, mask), _edges(lines, block, d, edge_place)
                other_old, other_new = load(found.old, before * LANES), load(found.new, before * LANES)
                change += _edge_change(
                    kind, weight, edges, _own_first(d), new, old, other_new, other_old, labels
                )
        r += 1
        if r == ribbons.rows:
            j, r = j + 1, 0
    return change, changed


@inline_helper
def _write(x, lines, ribbons, group, taken, found):
    for step in range(lines.length * ribbons.rows):
        moved = found.moved[step] & taken
        if moved != 0:
            j, block = step // ribbons.rows, group * ribbons.rows + step % ribbons.rows
            at = _place(lines, ribbons, j) * lines.stride
            for k in range(LANES):
                if moved >> k & 1:
                    x[lines.sites[block * LANES + k] + at] = found.new[step * LANES + k]


@kernel
def solve_ribbons(x, groups, costs, lines, kind, ribbons, work, found, check, changes):
    """Solve the ribbons of each group exactly, in place on the flat labelling; `changes[group]` gets the energy change.

    With `check` a ribbon takes its new labels only if that does not raise the energy, in float64. O(L^queue) per site,
    O(L^(queue + 1)) where every edge has its own table.
    """
    for group in groups:
        for first in range(0, lines.length, _COLUMNS):
            end = min(first + _COLUMNS, lines.length)
            for r in range(ribbons.rows):
                _collect_row(x, costs, lines, ribbons, group, r, first, end, kind, work, found.old)
        _search(lines, ribbons, group, kind, work, found.new)
        change, changed = _change(x, costs, lines, ribbons, group, kind, found)
        taken = changed & mask_to_int(change <= broadcast(0.0 if check else np.inf))
        total = 0.0
        for k in range(LANES):
            if taken >> k & 1:
                total += lane(change, k)
        if taken != 0:
            _write(x, lines, ribbons, group, taken, found)
        changes[group] = total
