"""Conditional costs of a graph: of each label of each site, given the labels of its neighbours.

They are updated as labels change, and used by the exact search on forests. `site_costs` documents the functions that it
chooses.

All numbers added to these costs are multiples of a `unit`, a power of 2 so large that sums are exact: the costs depend
on the labelling alone, not on the order of its changes.
"""

import math
from typing import NamedTuple

import numpy as np

from treefield.kernels.graph.edge_rules import POTTS, absorb, argmin_given, link_cost, send
from treefield.kernels.graph.energy import first_label, label_count, least_cost, lowest_label
from treefield.kernels.rules.rule import round_to_unit
from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    lane_numbers,
    load,
    mask_to_int,
    minimum,
    prefetch,
    reduce_min,
    store,
    where,
)
from treefield.kernels.simd.random import uniform

ALL = np.uint32(0xFFFFFFFF)  # users of the costs


class ConditionalCosts(NamedTuple):
    """Flat arrays:

    costs    those of site i start at ``starts[i]``, or at i * `step` if the step is not 0; infinity follows up to the
             next multiple of eight
    x        [site] the labelling that the costs are conditional on
    dirty    [site] one flag for each of up to 32 users, set when the costs or the label change
    pending_labels  [site] workspace, all -1
    rounder  see `round_to_unit`
    """

    costs: np.ndarray
    step: int
    starts: np.ndarray
    x: np.ndarray
    dirty: np.ndarray
    pending_labels: np.ndarray
    rounder: float


class LabelWorkspace(NamedTuple):
    """The memory of the search on a forest. The messages are reused when the forest is solved again. Flat arrays:

    places    where the costs of each place of the forest begin, all trees one after the other
    h, lows   workspace: the costs of one tree, and the minimum of each place
    starts    where the message of each place to its parent begins in `messages`
    old, new  [place] workspace: the labels before and after
    out       workspace: one message, as in `GraphRule.send`
    """

    places: np.ndarray
    h: np.ndarray
    lows: np.ndarray
    starts: np.ndarray
    messages: np.ndarray
    old: np.ndarray
    new: np.ndarray
    out: np.ndarray


@inline_helper
def start_of(state, starts, i):
    """Where the costs of site i begin, or its part of any other array with a number per label."""
    return i * state.step if state.step > 0 else starts[i]


@inline_helper
def relabel(state, graph, i, label):
    """O(neighbours x L)."""
    old = state.x[i]
    state.x[i] = label
    state.dirty[i] = ALL
    for k in range(graph.starts[i], graph.starts[i + 1]):
        j, link = graph.neighbours[k], graph.links[k] ^ 1
        at, count = start_of(state, state.starts, j), label_count(graph, j)
        absorb(graph, link, old, -1.0, state.rounder, state.costs, at, count)
        absorb(graph, link, label, 1.0, state.rounder, state.costs, at, count)
        state.dirty[j] = ALL


@kernel
def start_costs(graph, state, x):
    """Compute the costs given a labelling x [site]. O(neighbours x L) per site."""
    for i in range(len(state.costs)):
        state.costs[i] = np.inf
    for i in range(len(state.x)):
        state.x[i] = x[i]
        state.dirty[i] = ALL
        at, count = start_of(state, state.starts, i), label_count(graph, i)
        for s in range(count):
            state.costs[at + s] = round_to_unit(np.float64(graph.unary[first_label(graph, i) + s]), state.rounder)
        for k in range(graph.starts[i], graph.starts[i + 1]):
            absorb(graph, graph.links[k], x[graph.neighbours[k]], 1.0, state.rounder, state.costs, at, count)


@inline_helper
def cheapest(state, graph, i):
    return lowest_label(state.costs, start_of(state, state.starts, i), label_count(graph, i))


@inline_helper
def rise(state, graph, i, label):
    at = start_of(state, state.starts, i)
    return state.costs[at + label] - state.costs[at + state.x[i]]


@inline_helper
def draw_label(state, graph, i, heat, limit, seed, draw):
    at, count = start_of(state, state.starts, i), label_count(graph, i)
    low = least_cost(state.costs, at, count)
    mass = 0.0
    for s in range(count):
        above = state.costs[at + s] - low
        if above < limit:
            mass += 2.0 ** (-above * heat)
    left = uniform(seed, draw) * mass
    label = 0
    for s in range(count):
        above = state.costs[at + s] - low
        if above < limit:
            left -= 2.0 ** (-above * heat)
            label = s
            if left < 0:
                break
    return label


@inline_helper
def _potts_discount(graph, state, link, label):
    """The discount of a Potts edge on the costs of eight labels: its weight where the neighbour has the same label."""
    weight = round_to_unit(graph.weights[link >> 1], state.rounder)
    return where(lane_numbers() == broadcast(np.int32(label)), broadcast(weight), broadcast(0.0))


@inline_helper
def _collect_costs(graph, state, forest, p, workspace, at):
    """Write the costs of a site's labels given the sites around the tree to `workspace.h`, from `at` on.

    The messages from its children are included. Returns the minimum. O(neighbours in the tree x L).
    """
    i, h, old = forest.sites[p], workspace.h, workspace.old
    start, count = start_of(state, state.starts, i), label_count(graph, i)
    low = broadcast(np.inf)
    # the ends of the tree's own edges are not given: take these costs out again
    if graph.kind == POTTS:
        for s in range(0, count, LANES):
            costs = load(state.costs, start + s)
            if forest.parents[p] >= 0:
                costs += _potts_discount(graph, state, forest.links[p], old[forest.parents[p]] - s)
            q = forest.first_children[p]
            while q >= 0:
                costs += _potts_discount(graph, state, forest.links[q], old[q] - s)
                costs += load(workspace.messages, start_of(state, workspace.starts, q) + s)
                q = forest.next_siblings[q]
            store(h, at + s, costs)
            low = minimum(costs, low)
        return reduce_min(low)
    for s in range(0, count, LANES):
        store(h, at + s, load(state.costs, start + s))
    if forest.parents[p] >= 0:
        absorb(graph, forest.links[p], old[forest.parents[p]], -1.0, state.rounder, h, at, count)
    q = forest.first_children[p]
    while q >= 0:
        absorb(graph, forest.links[q] ^ 1, old[q], -1.0, state.rounder, h, at, count)
        for s in range(0, count, LANES):
            store(h, at + s, load(h, at + s) + load(workspace.messages, start_of(state, workspace.starts, q) + s))
        q = forest.next_siblings[q]
    return least_cost(h, at, count)


@inline_helper
def _add_noise(h, at, count, temperature, seed, number):
    for s in range(count):
        u = uniform(seed, number + s) + 2.0**-54
        h[at + s] += temperature * math.log(-math.log(u))


@inline_helper
def _update_message(graph, state, link, h, at, count, low, workspace, p, others):
    """Replace the message of place p to its parent, less the constant `low`; returns whether it has changed."""
    messages, out, start = workspace.messages, workspace.out, start_of(state, workspace.starts, p)
    weight = graph.weights[link >> 1]
    has_changed = 0
    if graph.kind == POTTS and weight >= 0 and count == others:
        most = broadcast(low + weight)
        for s in range(0, count, LANES):
            new = minimum(load(h, at + s), most) - broadcast(low)
            has_changed |= mask_to_int(new != load(messages, start + s))
            store(messages, start + s, new)
        return has_changed != 0
    send(graph, link, h, at, count, low, out, others)
    for s in range(others):
        new_one = out[s] - low
        has_changed |= new_one != messages[start + s]
        messages[start + s] = new_one
    return has_changed != 0


@inline_helper
def upward(state, graph, forest, begin, end, dirty_bit, workspace, temperature, seed):
    h, first = workspace.h, start_of(state, workspace.places, begin)
    for p in range(end - 1, begin - 1, -1):
        i = forest.sites[p]
        if state.dirty[i] & dirty_bit == 0:
            continue
        if p + end - begin < len(forest.sites):
            prefetch(state.costs, start_of(state, state.starts, forest.sites[p + end - begin]))
        at, count = start_of(state, workspace.places, p) - first, label_count(graph, i)
        low = _collect_costs(graph, state, forest, p, workspace, at)
        if temperature > 0:
            _add_noise(h, at, count, temperature, seed, start_of(state, state.starts, i))
            low = least_cost(h, at, count)
        workspace.lows[p - begin] = low
        if forest.parents[p] < 0:
            continue
        parent = forest.sites[forest.parents[p]]
        others = label_count(graph, parent)
        if _update_message(graph, state, forest.links[p], h, at, count, low, workspace, p, others):
            state.dirty[parent] |= dirty_bit


@inline_helper
def downward(state, graph, forest, begin, end, dirty_bit, workspace):
    h, old, new, first = workspace.h, workspace.old, workspace.new, start_of(state, workspace.places, begin)
    change, moved = 0.0, 0
    for p in range(begin, end):
        i, parent = forest.sites[p], forest.parents[p]
        new[p] = old[p]
        is_known = state.dirty[i] & dirty_bit != 0
        if not is_known and (parent < 0 or new[parent] == old[parent]):
            continue
        state.dirty[i] &= ~dirty_bit
        at, count = start_of(state, workspace.places, p) - first, label_count(graph, i)
        low = workspace.lows[p - begin] if is_known else _collect_costs(graph, state, forest, p, workspace, at)
        if parent < 0:
            new[p] = lowest_label(h, at, count)
        else:
            link = forest.links[p]
            new[p] = argmin_given(graph, link, h, at, count, low, new[parent])
            if new[p] != old[p] and new[parent] != old[parent]:
                change += round_to_unit(link_cost(graph, link, new[p], new[parent]), state.rounder)
                change += round_to_unit(link_cost(graph, link, old[p], old[parent]), state.rounder)
                change -= round_to_unit(link_cost(graph, link, new[p], old[parent]), state.rounder)
                change -= round_to_unit(link_cost(graph, link, old[p], new[parent]), state.rounder)
        if new[p] != old[p]:
            moved += 1
            change += (
                state.costs[start_of(state, state.starts, i) + new[p]]
                - state.costs[start_of(state, state.starts, i) + old[p]]
            )
    return change, moved
