"""Exact search on ribbons: trees several lines wide, eight of them side by side, one lane each.

A ribbon is solved exactly while the sites outside keep their labels. It takes its new labels only if the change of
energy, evaluated in float64 from the costs as they are given, is not positive.
"""

import numpy as np

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
from treefield.kernels.grid.ribbon_costs import (
    COLUMNS,
    change_by,
    collect_row,
    edges_at,
    inside_edge,
    is_own_first,
    place_of,
)
from treefield.kernels.rules.rule import label_count, lane_rule_of
from treefield.kernels.simd.barriers import arrive, have_arrived
from treefield.kernels.simd.jit import inline_helper, inline_overload, kernel
from treefield.kernels.simd.lanes import LANES, broadcast, lane, load, mask_to_int, store


@inline_helper
def _leaving_edges(lines, ribbons, block, step, j, work):
    """The weights and the numbers of the edges to the sites that leave."""
    place, _ = inside_edge(lines, ribbons, block, 0, j)
    weight = load(work.weights, step * len(ribbons.roles) * LANES)
    return weight, edges_at(lines, block, ribbons.directions[0], place)


@inline_helper
def _prepare_edges(lines, ribbons, group, j, r, kind, work):
    """Fill the tables of the edges of the sites that enter."""
    labels = label_count(kind, lines.labels)
    block, step = group * ribbons.rows + r, j * ribbons.rows + r
    kinds = len(ribbons.roles)
    for kind_number in range(0 if needs_table(kind) else 1, kinds):
        d = ribbons.directions[kind_number]
        place, _ = inside_edge(lines, ribbons, block, kind_number, j)
        edges = edges_at(lines, block, d, place)
        weight = load(work.weights, (step * kinds + kind_number) * LANES)
        if is_own_first(d):
            fill_table(kind, work, ribbons.roles[kind_number], weight, edges, True, labels)
        else:
            fill_table(kind, work, ribbons.roles[kind_number], weight, edges, False, labels)
    if has_diagonals(lines.shifts) and ribbons.rows > 1:
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
def _write(x, lines, ribbons, group, taken, found):
    for step in range(lines.length * ribbons.rows):
        moved = found.moved[step] & taken
        if moved != 0:
            j, block = step // ribbons.rows, group * ribbons.rows + step % ribbons.rows
            at = place_of(lines, ribbons, j) * lines.stride
            for k in range(LANES):
                if moved >> k & 1:
                    x[lines.sites[block * LANES + k] + at] = found.new[step * LANES + k]


@inline_helper
def _solve_group(x, group, costs, lines, kind, ribbons, work, found, check):
    """Solve the eight ribbons of a group; returns the change of energy."""
    for first in range(0, lines.length, COLUMNS):
        end = min(first + COLUMNS, lines.length)
        for r in range(ribbons.rows):
            collect_row(x, costs, lines, ribbons, group, r, first, end, kind, work, found.old)
    _search(lines, ribbons, group, kind, work, found.new)
    change, changed = change_by(x, costs, lines, ribbons, group, kind, found)
    taken = changed & mask_to_int(change <= broadcast(0.0 if check else np.inf))
    total = 0.0
    for k in range(LANES):
        if taken >> k & 1:
            total += lane(change, k)
    if taken != 0:
        _write(x, lines, ribbons, group, taken, found)
    return total


@kernel
def solve_ribbons(x, groups, ends, phase, arrivals, threads, costs, lines, kind, ribbons, work, found, check, changes):
    """Solve the ribbons of each group exactly, in place on the flat labelling; `changes[group]` gets the energy change.

    `groups` are this thread's: those of the first phase up to ``ends[0]``, and so on. Begins with a `phase` and returns
    the one that is next: all of them, unless other threads take long to end the one before. `arrivals` counts these
    (`kernels.simd.barriers`), and begins with the phase before the first.

    With `check` a ribbon takes its new labels only if that does not raise the energy, in float64. O(L^queue) per site,
    O(L^(queue + 1)) where every edge has its own table.
    """
    while phase < len(ends):
        if threads > 1 and not have_arrived(arrivals, phase, threads):
            return phase
        for k in range(ends[phase - 1] if phase > 0 else 0, ends[phase]):
            group = groups[k]
            changes[group] = _solve_group(x, group, costs, lines, kind, ribbons, work, found, check)
        phase += 1
        if threads > 1:
            arrive(arrivals, phase)
    return phase
