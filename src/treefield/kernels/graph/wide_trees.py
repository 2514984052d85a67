"""Exact search on wide trees: induced subgraphs of a graph that have a small profile at every step of their growth.

What has entered a tree matters only through the labels of its profile (`kernels.graph.fronts`): dynamic programming
over their labellings, the *states*, numbered with the newest site's label as the lowest digit. When a site leaves, its
best label for each state of the others is a *decision*.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.graph.edge_rules import link_cost
from treefield.kernels.graph.energy import first_label, label_count
from treefield.kernels.graph.fronts import (
    UNSOLVED,
    append,
    find_links,
    frees,
    is_inside,
    leave_out,
    leaving_position,
    next_site,
    remove,
)
from treefield.kernels.rules.rule import round_to_unit
from treefield.kernels.simd.jit import inline_helper, kernel

LOW_STATES = 64  # of the newest sites, whose costs are in a table of their own


class Tables(NamedTuple):
    """The workspace of exact search on one tree. Flat arrays:

    costs      [half][state]  before and after a site enters or leaves, in turn
    h          [label]        of the site that leaves, given the sites outside of the tree (Eq. 8)
    low, high  [state][own label]  the edges of the site that enters to the newest sites, and to the older ones
    decisions  [site that has left][state]
    events     [event][4]     each site that has entered, -1, 0, its number of labels; or that has left, the number of
                              states of the newer sites, where its decisions begin, its number of labels
    """

    costs: np.ndarray
    h: np.ndarray
    low: np.ndarray
    high: np.ndarray
    decisions: np.ndarray
    events: np.ndarray


@inline_helper
def _note(tables, event, site, newer, decisions, labels):
    """Note that a site has entered or left."""
    at = 4 * event
    tables.events[at], tables.events[at + 1] = site, newer
    tables.events[at + 2], tables.events[at + 3] = decisions, labels


@inline_helper
def _fill_table(graph, front, table, first, last, labels, rounder):
    """Tabulate the edges of the site that enters to those at the positions from `first` to before `last`.

    Returns the number of states of these.
    """
    table[:labels] = 0.0
    states = 1
    for position in range(last - 1, first - 1, -1):
        link = front.links[position]
        for other in range(front.sizes[position] - 1, -1, -1):
            for own in range(labels):
                cost = round_to_unit(link_cost(graph, link, own, other), rounder) if link >= 0 else 0.0
                for state in range(states):
                    table[(other * states + state) * labels + own] = table[state * labels + own] + cost
        states *= front.sizes[position]
    return states


@inline_helper
def _enter(graph, front, tables, labels, count, source, target, rounder):
    """Let a site enter: from the costs at `source` to those at `target`."""
    split, size = count, 1
    while split > 0 and size * front.sizes[split - 1] <= LOW_STATES:
        split -= 1
        size *= front.sizes[split]
    lows = _fill_table(graph, front, tables.low, split, count, labels, rounder)
    highs = _fill_table(graph, front, tables.high, 0, split, labels, rounder)
    for high in range(highs):
        begin, end = source + high * lows, target + high * lows * labels
        if labels == 2:  # the compiler then knows the length of the inner loop
            zero, one = tables.high[2 * high], tables.high[2 * high + 1]
            for low in range(lows):
                cost = tables.costs[begin + low]
                tables.costs[end + 2 * low] = cost + (tables.low[2 * low] + zero)
                tables.costs[end + 2 * low + 1] = cost + (tables.low[2 * low + 1] + one)
            continue
        for low in range(lows):
            cost = tables.costs[begin + low]
            for own in range(labels):
                edges = tables.low[low * labels + own] + tables.high[high * labels + own]
                tables.costs[end + low * labels + own] = cost + edges


@inline_helper
def _leave(tables, older, labels, newer, source, target, decisions):
    """Let a site leave: its best label for each state of the `older` sites and the `newer` ones."""
    for a in range(older):
        begin, end, at = source + a * labels * newer, target + a * newer, decisions + a * newer
        if labels == 2:
            for b in range(newer):
                zero, one = tables.costs[begin + b] + tables.h[0], tables.costs[begin + newer + b] + tables.h[1]
                tables.costs[end + b] = min(zero, one)
                tables.decisions[at + b] = one < zero
            continue
        for b in range(newer):
            tables.costs[end + b] = tables.costs[begin + b] + tables.h[0]
            tables.decisions[at + b] = 0
        for label in range(1, labels):
            for b in range(newer):
                cost = tables.costs[begin + label * newer + b] + tables.h[label]
                if cost < tables.costs[end + b]:
                    tables.costs[end + b] = cost
                    tables.decisions[at + b] = label


@inline_helper
def _absorb(graph, x, front, tables, i, labels, tree, rounder):
    """The costs of a site's labels given the sites outside of the tree."""
    at = first_label(graph, i)
    for label in range(labels):
        tables.h[label] = round_to_unit(np.float64(graph.unary[at + label]), rounder)
    for k in range(graph.starts[i], graph.starts[i + 1]):
        if not is_inside(front, graph.neighbours[k], tree):
            for label in range(labels):
                cost = link_cost(graph, graph.links[k], label, x[graph.neighbours[k]])
                tables.h[label] += round_to_unit(cost, rounder)


@inline_helper
def _product(front, first, last):
    states = 1
    for position in range(first, last):
        states *= front.sizes[position]
    return states


@inline_helper
def _search(graph, x, root, width, front, tables, tree, rounder):
    """Grow a tree from its root and decide the best labels of its sites; returns the number of events."""
    half, room = len(tables.costs) // 2, len(tables.decisions)
    count, source, events, decisions, most = 0, 0, 0, 0, 1
    tables.costs[0] = 0.0
    site = np.int64(root)
    while True:
        if site >= 0:
            labels = label_count(graph, site)
            find_links(graph, front, site, count)
            _enter(graph, front, tables, labels, count, source, half - source, rounder)
            append(graph, front, site, labels, count, tree)
            _note(tables, events, site, -1, 0, labels)
            source, events, count = half - source, events + 1, count + 1
            most = max(most, _product(front, 0, count))
        if count == 0:
            return events
        position = leaving_position(front, count)
        if position >= 0:
            older, newer = _product(front, 0, position), _product(front, position + 1, count)
            site, labels = np.int64(front.sites[position]), front.sizes[position]
            _absorb(graph, x, front, tables, site, labels, tree, rounder)
            _leave(tables, older, labels, newer, source, half - source, decisions)
            _note(tables, events, site, newer, decisions, labels)
            remove(front, position, count)
            source, events, count = half - source, events + 1, count - 1
            decisions += older * newer
            site = np.int64(-1)
            continue
        site = np.int64(next_site(graph, front, count, tree))
        has_room = decisions + (count + 2) * most * label_count(graph, site) <= room
        if not (has_room and (count < width or frees(graph, front, site))):
            leave_out(graph, front, site, tree)
            site = np.int64(-1)


@inline_helper
def _relabel(graph, x, i, label, rounder):
    """Give a site another label; returns the change of energy."""
    at = first_label(graph, i)
    change = round_to_unit(np.float64(graph.unary[at + label]), rounder)
    change -= round_to_unit(np.float64(graph.unary[at + x[i]]), rounder)
    for k in range(graph.starts[i], graph.starts[i + 1]):
        link, other = graph.links[k], x[graph.neighbours[k]]
        change += round_to_unit(link_cost(graph, link, label, other), rounder)
        change -= round_to_unit(link_cost(graph, link, x[i], other), rounder)
    x[i] = label
    return change


@inline_helper
def _take(graph, x, tables, events, check, rounder):
    """Take the labels that were decided; returns the change of energy.

    The events of sites that have left get their old labels instead of the number of states.
    """
    state, change = np.int64(0), 0.0
    for event in range(events - 1, -1, -1):
        site, newer, decisions, labels = tables.events[4 * event : 4 * event + 4]
        if newer < 0:
            state //= labels
            continue
        label = np.int64(tables.decisions[decisions + state])
        state = (state // newer * labels + label) * newer + state % newer
        tables.events[4 * event + 1] = x[site]
        if label != x[site]:
            change += _relabel(graph, x, site, label, rounder)
    if not check or change <= 0:
        return change
    for event in range(events):
        if tables.events[4 * event + 1] >= 0:
            x[tables.events[4 * event]] = tables.events[4 * event + 1]
    return 0.0


@kernel
def solve_wide_trees(graph, x, roots, width, rounder, check, front, tables):
    """Cut the sites into wide trees, each from the first of `roots` that is in none yet; solve each exactly, in place.

    Returns the change of energy; with `check` a tree's labels are taken only if that is not positive. Profiles have at
    most `width` sites. O(L^width) per site.
    """
    front.places[:] = UNSOLVED
    front.trees[:] = -1
    change = 0.0
    tree = 0
    for root in roots:
        if front.places[root] == UNSOLVED:
            events = _search(graph, x, root, width, front, tables, tree, rounder)
            change += _take(graph, x, tables, events, check, rounder)
            tree += 1
    return change
