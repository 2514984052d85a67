"""Exact search on a ribbon by dynamic programming over its profile: one site enters and one leaves at each step.

The sites of a ribbon enter one after the other, column by column. Sites that have entered matter only through the
labels of the last `queue` of them, the *profile*, written as one number, the *state*: a digit for each site, the oldest
site's the lowest. The least cost of each state is kept as [state][lane]. When a site enters, the oldest leaves: for
each state of the others and each label of the new site, the best label of the oldest is a *decision*. Where the first
sites have no predecessors, the profile holds sites that do not exist, which have no edges and cost nothing.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from treefield.kernels.rules.rule import (
    add_edge_cost,
    argmin_given,
    lane_rule_of,
    message,
    prepare,
)
from treefield.kernels.simd.jit import inline_helper, inline_overload
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    gather,
    lane_numbers,
    load,
    mask_to_int,
    minimum,
    store,
    where,
)

# Which digit of the state the other site of an edge has, when a site enters: that of the site that leaves, the second
# and the third lowest, the lowest of the `near` highest, and the highest, that of the site that entered just before.
LEAVING, SECOND, THIRD, NEAR, LAST = range(5)
ROLES = 5


class Profile(NamedTuple):
    """The workspace of one thread: the costs of a ribbon's sites, of states, and decisions.

    unary       [step][label][lane]  with the edges to sites outside of the ribbon (Eq. 8)
    weights     [step][kind][lane]   of the edges to sites in the profile
    costs       [place][state][lane] the costs before the first step of a segment, before the second, and so on; where
                decisions are stored there are two places, used in turn
    checkpoints [segment][state][lane]  what a segment of `segment` steps begins with; empty if there is one segment
    decisions   [step][state]        of one segment, a bit for each lane, where there are two labels
    tables      [role][label in the profile][own label][lane]
    pairs       [own label][third label][second label][lane]  the tables of SECOND and THIRD together; of ribbons
                of one line, which have neither, [own label][lane], all 0
    base, out   [label][lane]
    states      [lane]
    """

    unary: np.ndarray
    weights: np.ndarray
    costs: np.ndarray
    checkpoints: np.ndarray
    segment: int
    decisions: np.ndarray
    tables: np.ndarray
    pairs: np.ndarray
    base: np.ndarray
    out: np.ndarray
    states: np.ndarray


class Counts(NamedTuple):
    """How states are counted: `rests` without the site that leaves; of these `last` labels of the site that entered
    last, each with `between` labellings of the rest of the `near` sites, each with `low` of all others."""

    rests: int
    last: int
    between: int
    low: int


@inline_helper
def count_states(labels, queue, near):
    """The counts for a profile of `queue` sites."""
    rests = between = last = 1
    for _ in range(queue - 1):
        rests *= labels
        last = labels
    for _ in range(min(near, queue - 1) - 1):
        between *= labels
    return Counts(rests, last, between, rests // (last * between))


def has_diagonals(shifts):
    """Whether a site has edges to the second and the third oldest site of the profile."""


@inline_overload(has_diagonals)
def _has_diagonals_overload(shifts):
    has_shifts = not isinstance(shifts, types.NoneType)
    return lambda shifts: has_shifts


def needs_table(kind):
    """Whether the edge to the site that leaves is used as a table, not through `message`."""


@inline_overload(needs_table)
def _needs_table_overload(kind):
    rule = lane_rule_of(kind)
    needs = rule.label_count == 2 or rule.uses_edge_numbers
    return lambda kind: needs


@inline_helper
def fill_table(kind, work, role, weight, edges, own_first, labels):
    """Set the table of a role to the costs of an edge. O(L^2)."""
    zero = broadcast(work.tables.dtype.type(0))
    for t in range(labels):
        prepared = prepare(kind, edges, own_first, broadcast(np.int32(t)), labels)
        for s in range(labels):
            cost = add_edge_cost(kind, zero, weight, s, own_first, prepared, labels)
            store(work.tables, ((role * labels + t) * labels + s) * LANES, cost)


@inline_helper
def join_pairs(work, labels):
    """Add the tables of SECOND and THIRD up. O(L^3)."""
    size = labels * labels
    for s in range(labels):
        for third in range(labels):
            for second in range(labels):
                cost = load(work.tables, (SECOND * size + second * labels + s) * LANES)
                cost = cost + load(work.tables, (THIRD * size + third * labels + s) * LANES)
                store(work.pairs, (s * size + third * labels + second) * LANES, cost)


@inline_helper
def _entering_cost(work, at, lowest, last, between, s, labels):
    """The cost of a label of the site that enters, with the edges to the sites that entered last."""
    size = labels * labels
    cost = load(work.unary, at + s * LANES) - lowest
    cost = cost + load(work.tables, (LAST * size + last * labels + s) * LANES)
    return cost + load(work.tables, (NEAR * size + between % labels * labels + s) * LANES)


@inline_helper
def _fill_base(work, at, lowest, last, between, labels):
    """These costs for all labels."""
    for s in range(labels):
        store(work.base, s * LANES, _entering_cost(work, at, lowest, last, between, s, labels))


@inline_helper
def lowest_cost(work, source, states):
    """The least cost of any state."""
    least = load(work.costs, source)
    for state in range(1, states):
        least = minimum(load(work.costs, source + state * LANES), least)
    return least


def enter(kind, shifts, work, source, target, decisions, at, lowest, weight, edges, counts, labels):
    """Let a site enter: from the costs at `source`, less `lowest`, to those at `target`.

    Its own costs are at `at` in `work.unary`; `weight` and `edges` are those of its edge to the site that leaves.
    O(states), with tables O(states x L).
    """


@inline_overload(enter)
def _enter_overload(kind, shifts, work, source, target, decisions, at, lowest, weight, edges, counts, labels):
    rule = lane_rule_of(kind)
    if rule.label_count == 2:
        return _enter_binary
    return _enter_by_table if rule.uses_edge_numbers else _enter_by_message


def _enter_binary(kind, shifts, work, source, target, decisions, at, lowest, weight, edges, counts, labels):
    costs, rests, low = work.costs, counts.rests, counts.low
    half = target + rests * LANES
    zero_zero, zero_one = load(work.tables, 0), load(work.tables, LANES)
    one_zero, one_one = load(work.tables, 2 * LANES), load(work.tables, 3 * LANES)
    first = 0
    for last in range(counts.last):
        for between in range(counts.between):
            to_zero = _entering_cost(work, at, lowest, last, between, 0, 2)
            to_one = _entering_cost(work, at, lowest, last, between, 1, 2)
            from_zero, from_one = zero_zero + to_zero, one_zero + to_zero
            other_zero, other_one = zero_one + to_one, one_one + to_one
            for rest in range(first, first + low):
                zero = load(costs, source + 2 * rest * LANES)
                one = load(costs, source + (2 * rest + 1) * LANES)
                a, b = zero + from_zero, one + from_one
                c, d = zero + other_zero, one + other_one
                best, other_best = minimum(b, a), minimum(d, c)
                if has_diagonals(shifts):
                    best += load(work.pairs, rest % 4 * LANES)
                    other_best += load(work.pairs, (4 + rest % 4) * LANES)
                store(costs, target + rest * LANES, best)
                store(costs, half + rest * LANES, other_best)
                # unsigned: Numba then has no negative index to look for
                work.decisions[np.uint64(decisions + rest)] = mask_to_int(b < a)
                work.decisions[np.uint64(decisions + rests + rest)] = mask_to_int(d < c)
            first += low


def _enter_by_table(kind, shifts, work, source, target, decisions, at, lowest, weight, edges, counts, labels):
    costs, rests, low, pairs = work.costs, counts.rests, counts.low, min(labels * labels, counts.rests)
    first = 0
    for last in range(counts.last):
        for between in range(counts.between):
            _fill_base(work, at, lowest, last, between, labels)
            for rest in range(first, first + low):
                begin = source + rest * labels * LANES
                for s in range(labels):
                    best = load(costs, begin) + load(work.tables, s * LANES)
                    for t in range(1, labels):
                        cost = load(costs, begin + t * LANES) + load(work.tables, (t * labels + s) * LANES)
                        best = minimum(cost, best)
                    best = best + load(work.base, s * LANES)
                    if has_diagonals(shifts):
                        best = best + load(work.pairs, (s * pairs + rest % pairs) * LANES)
                    store(costs, target + (s * rests + rest) * LANES, best)
            first += low


def _enter_by_message(kind, shifts, work, source, target, decisions, at, lowest, weight, edges, counts, labels):
    costs, rests, low, pairs = work.costs, counts.rests, counts.low, min(labels * labels, counts.rests)
    first = 0
    for last in range(counts.last):
        for between in range(counts.between):
            _fill_base(work, at, lowest, last, between, labels)
            for rest in range(first, first + low):
                begin = source + rest * labels * LANES
                least = load(costs, begin)
                for t in range(1, labels):
                    least = minimum(load(costs, begin + t * LANES), least)
                message(kind, weight, edges, True, least, costs, begin, work.out, 0, labels)
                for s in range(labels):
                    cost = load(work.out, s * LANES) + (load(work.base, s * LANES) + least)
                    if has_diagonals(shifts):
                        cost = cost + load(work.pairs, (s * pairs + rest % pairs) * LANES)
                    store(costs, target + (s * rests + rest) * LANES, cost)
            first += low


@inline_helper
def best_state(work, source, states):
    """The state of least cost, the lowest among equals."""
    least, best = load(work.costs, source), broadcast(np.int32(0))
    for state in range(1, states):
        cost = load(work.costs, source + state * LANES)
        best = where(cost < least, broadcast(np.int32(state)), best)
        least = minimum(cost, least)
    return best


@inline_helper
def last_label(state, rests, labels):
    """The label of the site that entered last."""
    label = broadcast(np.int32(0))
    for s in range(1, labels):
        label += where(broadcast(np.int32(s * rests)) <= state, broadcast(np.int32(1)), broadcast(np.int32(0)))
    return label


@inline_helper
def label_before(kind, work, source, rest, label, weight, edges, labels):
    """The labels of the sites that left, given those of the sites that entered and the states of the others."""
    # the costs of the labels that may have left, next to each other
    at = rest * broadcast(np.int32(labels * LANES)) + lane_numbers()
    lowest = gather(work.costs, source, at)
    store(work.out, 0, lowest)
    for t in range(1, labels):
        cost = gather(work.costs, source + t * LANES, at)
        store(work.out, t * LANES, cost)
        lowest = minimum(cost, lowest)
    return argmin_given(kind, weight, edges, True, lowest, work.out, 0, label, labels)
