"""What each label of each site of a graph costs, given the labels around it: kept up to date while labels change.

All that is added to these costs is a multiple of a `unit` (a power of 2 so great that sums are exact): so they depend
on the labelling alone, not on the way that led to it.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.graph import LINEAR, POTTS, label_count, least, lowest_label, row_length
from treefield.kernels.jit import inlined, kernel
from treefield.kernels.random import uniform

ALL = np.uint32(0xFFFFFFFF)  # users of the costs


class Conditional(NamedTuple):
    """`costs`, those of site i from ``starts[i]`` on, with infinity after them up to the next multiple of eight; the
    labelling `x` that they are given; a bit in `dirty`, for each of up to 32 users, where the costs or the label have
    changed since it was cleared; `aims`, -1 and work space; and what rounds to multiples of the unit when it is added
    and taken away again."""

    costs: np.ndarray
    starts: np.ndarray
    x: np.ndarray
    dirty: np.ndarray
    aims: np.ndarray
    rounder: float


@inlined
def rounded(state, value):
    """`value` as a multiple of the unit."""
    return (value + state.rounder) - state.rounder


@inlined
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


@inlined
def change_label(graph, state, i, label, mask):
    """Give a site another label, and its neighbours what follows from it; all of them are `dirty` by the mask.
    O(neighbours x labels)."""
    old = state.x[i]
    state.x[i] = label
    state.dirty[i] |= mask
    for k in range(graph.starts[i], graph.starts[i + 1]):
        j, link = graph.beside[k], graph.links[k] ^ 1
        at, count = state.starts[j], label_count(graph, j)
        add_edge(graph, state, link, old, -1.0, state.costs, at, count)
        add_edge(graph, state, link, label, 1.0, state.costs, at, count)
        state.dirty[j] |= mask


@kernel
def begin_costs(graph, state, x):
    """The costs given a labelling."""
    for i in range(len(state.costs)):
        state.costs[i] = np.inf
    for i in range(len(state.x)):
        state.x[i] = x[i]
        state.dirty[i] = ALL
        at, count = state.starts[i], label_count(graph, i)
        for s in range(count):
            state.costs[at + s] = rounded(state, np.float64(graph.unary[graph.label_starts[i] + s]))
        for k in range(graph.starts[i], graph.starts[i + 1]):
            add_edge(graph, state, graph.links[k], x[graph.beside[k]], 1.0, state.costs, at, count)


@kernel
def follow(graph, state, x):
    """Bring the costs to another labelling."""
    for i in range(len(x)):
        if x[i] != state.x[i]:
            change_label(graph, state, i, x[i], ALL)


@kernel
def icm_sweep(graph, state, order):
    """Give each site in turn its cheapest label, the lowest among equals; returns the change of energy (Eq. 4)."""
    total = 0.0
    for i in order:
        at = state.starts[i]
        best = lowest_label(state.costs, at, label_count(graph, i))
        change = state.costs[at + best] - state.costs[at + state.x[i]]
        if best != state.x[i]:
            total += change
            change_label(graph, state, i, best, ALL)
    return total


@inlined
def _drawn_label(state, at, count, heat, limit, u):
    """A label drawn with probabilities proportional to 2**(-cost * heat), by a number between 0 and 1."""
    low = least(state.costs, at, count)
    mass = 0.0
    for s in range(count):
        rise = state.costs[at + s] - low
        if rise < limit:
            mass += 2.0 ** (-rise * heat)
    left = u * mass
    label = -1
    for s in range(count):
        rise = state.costs[at + s] - low
        if rise < limit:
            left -= 2.0 ** (-rise * heat)
            label = s
            if left < 0:
                break
    return label


@kernel
def sample_sweeps(graph, state, order, heats, limits, seed):
    """A sweep for each of the heats: draw each site in turn, none of its labels whose cost is above the least by the
    limit or more; returns the change of energy."""
    total = 0.0
    draw = 0
    for sweep in range(len(heats)):
        for i in order:
            count = label_count(graph, i)
            if count == 1:
                continue
            at, old = state.starts[i], state.x[i]
            draw += 1
            new = _drawn_label(state, at, count, heats[sweep], limits[sweep], uniform(seed, draw))
            if new != old:
                total += state.costs[at + new] - state.costs[at + old]
                change_label(graph, state, i, new, ALL)
    return total
