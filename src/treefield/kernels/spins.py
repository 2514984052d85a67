"""Graphs whose sites have two labels each: a site is known by one number, what label 1 costs more than label 0.

Any edge between two such sites costs w [a != b], up to what each label costs by itself. So a message is one number too:
the difference, cut to what the edge can make of it. What is said of functions here is in `site_costs`.
"""

import math
from typing import NamedTuple

import numpy as np

from treefield.kernels.conditional import ALL
from treefield.kernels.graph import cost
from treefield.kernels.jit import inline_helper, kernel
from treefield.kernels.random import uniform


class Spins(NamedTuple):
    """`rises`, what label 1 costs more than label 0 given the labels `x` of the neighbours; a bit in `dirty`, for each
    of up to 32 users, where rise or label have changed since it was cleared; `aims`, -1 and work space; the `couplings`
    w of every edge, and those `beside` every site, in the order of its neighbours."""

    rises: np.ndarray
    x: np.ndarray
    dirty: np.ndarray
    aims: np.ndarray
    couplings: np.ndarray
    beside: np.ndarray


class SpinSpace(NamedTuple):
    """As `ForestSpace`: the couplings to the parents, the rises, and the messages to the parents; and, work space, the
    old and the new label of each place."""

    couplings: np.ndarray
    d: np.ndarray
    messages: np.ndarray
    old: np.ndarray
    new: np.ndarray


@kernel
def begin_spins(graph, spins, rounder):
    """The couplings, as multiples of the unit that `rounder` rounds to, and the rises given label 0 everywhere."""
    for i in range(len(spins.x)):
        spins.x[i] = 0
        spins.dirty[i] = ALL
        own = np.float64(graph.unary[2 * i + 1]) - np.float64(graph.unary[2 * i])
        spins.rises[i] = (own + rounder) - rounder
    for edge in range(len(spins.couplings)):
        same = cost(graph, edge, 0, 0), cost(graph, edge, 1, 1)
        other = cost(graph, edge, 0, 1), cost(graph, edge, 1, 0)
        coupling = (0.5 * (other[0] + other[1] - same[0] - same[1]) + rounder) - rounder
        spins.couplings[edge] = coupling
        # what is left costs a label of one site by itself
        first = (other[1] - same[0] - coupling + rounder) - rounder
        second = (other[0] - same[0] - coupling + rounder) - rounder
        spins.rises[graph.edges[2 * edge]] += first + coupling
        spins.rises[graph.edges[2 * edge + 1]] += second + coupling
    for k in range(graph.starts[len(spins.x)]):
        spins.beside[k] = spins.couplings[graph.links[k] >> 1]


@inline_helper
def relabel(spins, graph, i, label):
    sign = 2.0 if spins.x[i] == 1 else -2.0
    spins.x[i] = label
    spins.dirty[i] = ALL
    for k in range(graph.starts[i], graph.starts[i + 1]):
        j = graph.beside[k]
        spins.rises[j] += sign * spins.beside[k]
        spins.dirty[j] = ALL


@inline_helper
def cheapest(spins, graph, i):
    return 1 if spins.rises[i] < 0 else 0


@inline_helper
def rise(spins, graph, i, label):
    own = spins.rises[i]
    return (own if label == 1 else 0.0) - (own if spins.x[i] == 1 else 0.0)


@inline_helper
def drawn_label(spins, graph, i, heat, limit, seed, draw):
    # label 1 has the probability 1 / (1 + 2**(own * heat))
    own = spins.rises[i]
    if own >= limit:
        return 0
    if own <= -limit:
        return 1
    return 1 if uniform(seed, draw) * (1.0 + 2.0 ** (own * heat)) < 1.0 else 0


@inline_helper
def _given(coupling, label):
    """What an edge adds to the rise at one end, given the label at the other."""
    return -coupling if label == 1 else coupling


@inline_helper
def upward(spins, graph, forest, begin, end, bit, space, temperature, seed):
    couplings, d, messages, old = space.couplings, space.d, space.messages, space.old
    for p in range(end - 1, begin - 1, -1):
        i, parent = forest.sites[p], forest.parents[p]
        if spins.dirty[i] & bit == 0:
            continue
        own = spins.rises[i]
        if temperature > 0:
            u = uniform(seed, i) + 2.0**-54
            own += temperature * math.log(u / (1.0 - u + 2.0**-54))
        q = forest.kids[p]
        while q >= 0:
            own += messages[q] - _given(couplings[q], old[q])
            q = forest.siblings[q]
        if parent < 0:
            d[p] = own
            continue
        coupling = couplings[p]
        own -= _given(coupling, old[parent])
        d[p] = own
        most = abs(coupling)
        message = most if own > most else (-most if own < -most else own)
        message = -message if coupling < 0 else message
        if message != messages[p]:
            messages[p] = message
            spins.dirty[forest.sites[parent]] |= bit


@inline_helper
def downward(spins, graph, forest, begin, end, bit, space):
    couplings, d, old, new = space.couplings, space.d, space.old, space.new
    change, moved = 0.0, 0
    for p in range(begin, end):
        i, parent = forest.sites[p], forest.parents[p]
        new[p] = old[p]
        if spins.dirty[i] & bit == 0 and (parent < 0 or new[parent] == old[parent]):
            continue
        spins.dirty[i] &= ~bit
        if parent < 0:
            new[p] = d[p] < 0
        else:
            new[p] = d[p] + _given(couplings[p], new[parent]) < 0
            if new[p] != old[p] and new[parent] != old[parent]:
                change += 2 * couplings[p] if old[p] != old[parent] else -2 * couplings[p]
        if new[p] != old[p]:
            moved += 1
            change += rise(spins, graph, i, new[p])
    return change, moved
