"""Graphs whose sites have two labels each: a site is known by one number, what label 1 costs more than label 0.

Any edge between two such sites costs w [a != b], up to what each label costs by itself. So a message is one number too:
the difference, cut to what the edge can make of it.
"""

import math
from typing import NamedTuple

import numpy as np

from treefield.kernels.conditional import ALL
from treefield.kernels.graph import cost
from treefield.kernels.jit import inlined, kernel
from treefield.kernels.random import below, bits64, uniform

_MANY = 32  # changes, if more than one in so many sites has one


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
        rise = np.float64(graph.unary[2 * i + 1]) - np.float64(graph.unary[2 * i])
        spins.rises[i] = (rise + rounder) - rounder
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


@inlined
def _flip(graph, spins, i, mask):
    """Give a site its other label, and its neighbours what follows from it; all of them are `dirty` by the mask."""
    sign = 2.0 if spins.x[i] == 1 else -2.0
    spins.x[i] = 1 - spins.x[i]
    spins.dirty[i] |= mask
    for k in range(graph.starts[i], graph.starts[i + 1]):
        j = graph.beside[k]
        spins.rises[j] += sign * spins.beside[k]
        spins.dirty[j] |= mask


@kernel
def follow_spins(graph, spins, x):
    """Bring the rises to another labelling."""
    for i in range(len(x)):
        if x[i] != spins.x[i]:
            _flip(graph, spins, i, ALL)


@kernel
def update_spins(graph, spins, order):
    """Give each site in turn its cheaper label, 0 if they are equal; returns the change of energy (Eq. 4)."""
    total = 0.0
    for i in order:
        rise = spins.rises[i]
        if (rise < 0) != (spins.x[i] == 1):
            total -= abs(rise)
            _flip(graph, spins, i, ALL)
    return total


@kernel
def sample_spins(graph, spins, order, heats, limits, seed):
    """A sweep for each of the heats: draw each site in turn, label 1 with probability 1 / (1 + 2**(rise * heat)), the
    cheaper label if the other costs the limit more; returns the change of energy."""
    total = 0.0
    draw = 0
    for sweep in range(len(heats)):
        heat, limit = heats[sweep], limits[sweep]
        for i in order:
            rise = spins.rises[i]
            if rise >= limit:
                label = 0
            elif rise <= -limit:
                label = 1
            else:
                draw += 1
                label = 1 if uniform(seed, draw) * (1.0 + 2.0 ** (rise * heat)) < 1.0 else 0
            if label != spins.x[i]:
                total += rise if label == 1 else -rise
                _flip(graph, spins, i, ALL)
    return total


@inlined
def _given(coupling, label):
    """What an edge adds to the rise at one end, given the label at the other."""
    return -coupling if label == 1 else coupling


@inlined
def _upward(spins, forest, begin, end, bit, space, temperature, seed):
    """Messages from the leaves to the root, where something has changed: where a message is as it was, what lies above
    is, too."""
    couplings, d, messages, old = space.couplings, space.d, space.messages, space.old
    for p in range(end - 1, begin - 1, -1):
        i, parent = forest.sites[p], forest.parents[p]
        if spins.dirty[i] & bit == 0:
            continue
        rise = spins.rises[i]
        if temperature > 0:
            u = uniform(seed, i) + 2.0**-54
            rise += temperature * math.log(u / (1.0 - u + 2.0**-54))
        q = forest.kids[p]
        while q >= 0:
            rise += messages[q] - _given(couplings[q], old[q])
            q = forest.siblings[q]
        if parent < 0:
            d[p] = rise
            continue
        coupling = couplings[p]
        rise -= _given(coupling, old[parent])
        d[p] = rise
        most = abs(coupling)
        message = most if rise > most else (-most if rise < -most else rise)
        message = -message if coupling < 0 else message
        if message != messages[p]:
            messages[p] = message
            spins.dirty[forest.sites[parent]] |= bit


@inlined
def _downward(spins, forest, begin, end, bit, space):
    """Labels from the root to the leaves, where something has changed; returns the change of energy and how many there
    are."""
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
            change += spins.rises[i] if new[p] == 1 else -spins.rises[i]
    return change, moved


@kernel
def solve_spins(graph, spins, forest, firsts, bit, space, temperatures, seed):
    """As `solve_trees`, with logistic noise on each rise."""
    old, new = space.old, space.new
    total = 0.0
    for turn in range(len(temperatures)):
        f = below(len(firsts) - 1, seed, 2 * turn)
        stream, temperature = bits64(seed, 2 * turn + 1), temperatures[turn]
        for tree in range(firsts[f], firsts[f + 1]):
            begin, end = forest.trees[tree], forest.trees[tree + 1]
            for p in range(begin, end):
                old[p] = spins.x[forest.sites[p]]
                if temperature > 0:
                    spins.dirty[forest.sites[p]] |= bit
            _upward(spins, forest, begin, end, bit, space, temperature, stream)
            change, moved = _downward(spins, forest, begin, end, bit, space)
            if moved == 0 or (change > 0 and temperature == 0):
                continue
            total += change
            for p in range(begin, end):
                if new[p] != old[p]:
                    if moved > len(spins.x) // _MANY:
                        spins.aims[forest.sites[p]] = new[p]
                    else:
                        _flip(graph, spins, forest.sites[p], ALL)
            if moved > len(spins.x) // _MANY:  # in the order of memory
                for i in range(len(spins.x)):
                    if spins.aims[i] >= 0:
                        _flip(graph, spins, i, ALL)
                        spins.aims[i] = -1
            for p in range(begin, end):  # its own changes do not concern a tree
                spins.dirty[forest.sites[p]] &= ~bit
    return total
