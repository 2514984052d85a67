"""What each label of each site of a graph costs, given the labels around it: kept up to date while labels change; and
what a forest needs to be solved exactly by it. What is said of functions here is in `site_costs`.

All that is added to these costs is a multiple of a `unit` (a power of 2 so great that sums are exact): so they depend
on the labelling alone, not on the way that led to it.
"""

import math
from typing import NamedTuple

import numpy as np

from treefield.kernels.graph import (
    LINEAR,
    POTTS,
    best_given,
    first_label,
    label_count,
    least,
    link_cost,
    lowest_label,
    row_length,
    send,
)
from treefield.kernels.jit import inline_helper, kernel
from treefield.kernels.lanes import (
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
from treefield.kernels.random import uniform

ALL = np.uint32(0xFFFFFFFF)  # users of the costs


class Conditional(NamedTuple):
    """`costs`, those of site i from ``starts[i]`` on, or `step` apart if that is not 0, with infinity after them up to
    the next multiple of eight; the labelling `x` that they are given; a bit in `dirty`, for each of up to 32 users,
    where the costs or the label have changed since it was cleared; `aims`, -1 and work space; and what rounds to
    multiples of the unit when it is added and taken away again."""

    costs: np.ndarray
    step: int
    starts: np.ndarray
    x: np.ndarray
    dirty: np.ndarray
    aims: np.ndarray
    rounder: float


class ForestSpace(NamedTuple):
    """What the search on a forest needs, and finds there when it solves the forest again: where each place has its
    message to its parent, and these. The rest is work space: the costs `h` of one tree, those of its places as far
    apart as `places` are, and the least of each; the old and the new label of each place; and `out`, as in `send`."""

    places: np.ndarray
    h: np.ndarray
    lows: np.ndarray
    starts: np.ndarray
    messages: np.ndarray
    old: np.ndarray
    new: np.ndarray
    out: np.ndarray


@inline_helper
def begin_of(state, starts, i):
    """Where the costs of site i begin, or any other lots of a number for each label: all as far apart, or from
    ``starts[i]`` on."""
    return i * state.step if state.step > 0 else starts[i]


@inline_helper
def rounded(state, value):
    """`value` as a multiple of the unit."""
    return (value + state.rounder) - state.rounder


@inline_helper
def add_edge(graph, state, link, label, sign, h, at, count):
    """Add `sign` times what a neighbour of that label costs to the labels in `h` from `at` on, as multiples of the unit
    (Eq. 8). Potts costs less a constant."""
    edge = link >> 1
    weight = graph.weights[edge]
    if graph.kind == POTTS:
        if label < count:
            h[at + label] -= sign * rounded(state, weight)
    elif graph.kind == LINEAR:
        cutoff = graph.positions[len(graph.positions) - 1]
        for s in range(count):
            apart = min(abs(graph.positions[s] - graph.positions[label]), cutoff)
            h[at + s] += sign * rounded(state, weight * apart)
    else:
        row, start = row_length(graph, edge), graph.table_starts[edge]
        step, first = (1, start + label * row) if link & 1 else (row, start + label)
        for s in range(count):
            h[at + s] += sign * rounded(state, weight * graph.tables[first + s * step])


@inline_helper
def relabel(state, graph, i, label):
    """O(neighbours x labels)."""
    old = state.x[i]
    state.x[i] = label
    state.dirty[i] = ALL
    for k in range(graph.starts[i], graph.starts[i + 1]):
        j, link = graph.beside[k], graph.links[k] ^ 1
        at, count = begin_of(state, state.starts, j), label_count(graph, j)
        add_edge(graph, state, link, old, -1.0, state.costs, at, count)
        add_edge(graph, state, link, label, 1.0, state.costs, at, count)
        state.dirty[j] = ALL


@kernel
def begin_costs(graph, state, x):
    """The costs given a labelling."""
    for i in range(len(state.costs)):
        state.costs[i] = np.inf
    for i in range(len(state.x)):
        state.x[i] = x[i]
        state.dirty[i] = ALL
        at, count = begin_of(state, state.starts, i), label_count(graph, i)
        for s in range(count):
            state.costs[at + s] = rounded(state, np.float64(graph.unary[first_label(graph, i) + s]))
        for k in range(graph.starts[i], graph.starts[i + 1]):
            add_edge(graph, state, graph.links[k], x[graph.beside[k]], 1.0, state.costs, at, count)


@inline_helper
def cheapest(state, graph, i):
    return lowest_label(state.costs, begin_of(state, state.starts, i), label_count(graph, i))


@inline_helper
def rise(state, graph, i, label):
    at = begin_of(state, state.starts, i)
    return state.costs[at + label] - state.costs[at + state.x[i]]


@inline_helper
def drawn_label(state, graph, i, heat, limit, seed, draw):
    at, count = begin_of(state, state.starts, i), label_count(graph, i)
    low = least(state.costs, at, count)
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
def _potts(graph, state, link, label):
    """What a Potts edge costs less at the one label, of eight, that the neighbour has, too."""
    weight = rounded(state, graph.weights[link >> 1])
    return where(lane_numbers() == broadcast(np.int32(label)), broadcast(weight), broadcast(0.0))


@inline_helper
def _gather(graph, state, forest, p, space, at):
    """What a site's labels cost, to `space.h` from `at` on: given the sites around the tree, and with the messages from
    its children. Returns the least of them."""
    i, h, old = forest.sites[p], space.h, space.old
    start, count = begin_of(state, state.starts, i), label_count(graph, i)
    low = broadcast(np.inf)
    # the tree's own edges are not given, but part of what is sought
    if graph.kind == POTTS:
        for s in range(0, count, LANES):
            costs = load(state.costs, start + s)
            if forest.parents[p] >= 0:
                costs += _potts(graph, state, forest.links[p], old[forest.parents[p]] - s)
            q = forest.kids[p]
            while q >= 0:
                costs += _potts(graph, state, forest.links[q], old[q] - s)
                costs += load(space.messages, begin_of(state, space.starts, q) + s)
                q = forest.siblings[q]
            store(h, at + s, costs)
            low = minimum(costs, low)
        return reduce_min(low)
    for s in range(0, count, LANES):
        store(h, at + s, load(state.costs, start + s))
    if forest.parents[p] >= 0:
        add_edge(graph, state, forest.links[p], old[forest.parents[p]], -1.0, h, at, count)
    q = forest.kids[p]
    while q >= 0:
        add_edge(graph, state, forest.links[q] ^ 1, old[q], -1.0, h, at, count)
        for s in range(0, count, LANES):
            store(h, at + s, load(h, at + s) + load(space.messages, begin_of(state, space.starts, q) + s))
        q = forest.siblings[q]
    return least(h, at, count)


@inline_helper
def _add_noise(h, at, count, temperature, seed, number):
    for s in range(count):
        u = uniform(seed, number + s) + 2.0**-54
        h[at + s] += temperature * math.log(-math.log(u))


@inline_helper
def _sent(graph, state, link, h, at, count, low, space, p, others):
    """Send the message of place p to its parent, less the constant `low`; whether it differs from the one before."""
    messages, out, start = space.messages, space.out, begin_of(state, space.starts, p)
    weight = graph.weights[link >> 1]
    differing = 0
    if graph.kind == POTTS and weight >= 0 and count == others:
        most = broadcast(low + weight)
        for s in range(0, count, LANES):
            new = minimum(load(h, at + s), most) - broadcast(low)
            differing |= mask_to_int(new != load(messages, start + s))
            store(messages, start + s, new)
        return differing != 0
    send(graph, link, h, at, count, low, out, others)
    for s in range(others):
        new_one = out[s] - low
        differing |= new_one != messages[start + s]
        messages[start + s] = new_one
    return differing != 0


@inline_helper
def upward(state, graph, forest, begin, end, bit, space, temperature, seed):
    h, first = space.h, begin_of(state, space.places, begin)
    for p in range(end - 1, begin - 1, -1):
        i = forest.sites[p]
        if state.dirty[i] & bit == 0:
            continue
        if p + end - begin < len(forest.sites):
            prefetch(state.costs, begin_of(state, state.starts, forest.sites[p + end - begin]))
        at, count = begin_of(state, space.places, p) - first, label_count(graph, i)
        low = _gather(graph, state, forest, p, space, at)
        if temperature > 0:
            _add_noise(h, at, count, temperature, seed, begin_of(state, state.starts, i))
            low = least(h, at, count)
        space.lows[p - begin] = low
        if forest.parents[p] < 0:
            continue
        parent = forest.sites[forest.parents[p]]
        others = label_count(graph, parent)
        if _sent(graph, state, forest.links[p], h, at, count, low, space, p, others):
            state.dirty[parent] |= bit


@inline_helper
def downward(state, graph, forest, begin, end, bit, space):
    h, old, new, first = space.h, space.old, space.new, begin_of(state, space.places, begin)
    change, moved = 0.0, 0
    for p in range(begin, end):
        i, parent = forest.sites[p], forest.parents[p]
        new[p] = old[p]
        is_known = state.dirty[i] & bit != 0
        if not is_known and (parent < 0 or new[parent] == old[parent]):
            continue
        state.dirty[i] &= ~bit
        at, count = begin_of(state, space.places, p) - first, label_count(graph, i)
        low = space.lows[p - begin] if is_known else _gather(graph, state, forest, p, space, at)
        if parent < 0:
            new[p] = lowest_label(h, at, count)
        else:
            link = forest.links[p]
            new[p] = best_given(graph, link, h, at, count, low, new[parent])
            if new[p] != old[p] and new[parent] != old[parent]:
                change += rounded(state, link_cost(graph, link, new[p], new[parent]))
                change += rounded(state, link_cost(graph, link, old[p], old[parent]))
                change -= rounded(state, link_cost(graph, link, new[p], old[parent]))
                change -= rounded(state, link_cost(graph, link, old[p], new[parent]))
        if new[p] != old[p]:
            moved += 1
            change += (
                state.costs[begin_of(state, state.starts, i) + new[p]]
                - state.costs[begin_of(state, state.starts, i) + old[p]]
            )
    return change, moved
