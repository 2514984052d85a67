"""Graphs whose sites have two labels each: a site is known by one number, what label 1 costs more than label 0.

Any edge between two such sites costs w [a != b], up to what each label costs by itself. So a message is one number too:
the difference, cut to what the edge can make of it.
"""

import math
from typing import NamedTuple

import numpy as np

from treefield.kernels.graph import cost
from treefield.kernels.jit import called, inlined, kernel
from treefield.kernels.random import below, bits64, uniform


class Spins(NamedTuple):
    """`rises`, what label 1 costs more than label 0 given the labels `x` of the neighbours; the `couplings` w of every
    edge, and those `beside` every site, in the order of its neighbours."""

    rises: np.ndarray
    x: np.ndarray
    couplings: np.ndarray
    beside: np.ndarray


@kernel
def begin_spins(graph, spins, rounder):
    """The couplings, as multiples of the unit that `rounder` rounds to, and the rises given label 0 everywhere."""
    for i in range(len(spins.x)):
        spins.x[i] = 0
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
def _flip(graph, spins, i):
    sign = 2.0 if spins.x[i] == 1 else -2.0
    spins.x[i] = 1 - spins.x[i]
    for k in range(graph.starts[i], graph.starts[i + 1]):
        spins.rises[graph.beside[k]] += sign * spins.beside[k]


@kernel
def follow_spins(graph, spins, x):
    """Bring the rises to another labelling."""
    for i in range(len(x)):
        if x[i] != spins.x[i]:
            _flip(graph, spins, i)


@kernel
def update_spins(graph, spins, order):
    """Give each site in turn its cheaper label, 0 if they are equal; returns the change of energy (Eq. 4)."""
    total = 0.0
    for i in order:
        rise = spins.rises[i]
        if (rise < 0) != (spins.x[i] == 1):
            total -= abs(rise)
            _flip(graph, spins, i)
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
                _flip(graph, spins, i)
    return total


@inlined
def _given(coupling, label):
    """What an edge adds to the rise at one end, given the label at the other."""
    return -coupling if label == 1 else coupling


@called
def _solve(graph, spins, forest, first, last, couplings, d, old, new, temperature, seed):
    """Solve the trees from `first` to `last` exactly, one after the other, given the labels around them; returns the
    change of energy.

    A tree takes its new labels only if that does not raise the energy. At a `temperature` above 0 logistic noise of
    that scale is added to each rise, and what is best then is taken, whatever it costs. `couplings` are those to the
    parents; `d`, `old` and `new`, one for each place, are work space.
    """
    total = 0.0
    for tree in range(first, last):
        begin, end = forest.trees[tree], forest.trees[tree + 1]
        for p in range(begin, end):
            d[p] = spins.rises[forest.sites[p]]
            old[p] = spins.x[forest.sites[p]]
            if temperature > 0:
                u = uniform(seed, forest.sites[p]) + 2.0**-54
                d[p] += temperature * math.log(u / (1.0 - u + 2.0**-54))
        for p in range(end - 1, begin, -1):
            parent, coupling = forest.parents[p], couplings[p]
            own = d[p] - _given(coupling, old[parent])
            d[p] = own
            most = abs(coupling)
            message = most if own > most else (-most if own < -most else own)
            message = -message if coupling < 0 else message
            d[parent] += message - _given(coupling, old[p])
        change = 0.0
        moved = False
        for p in range(begin, end):
            if p == begin:
                new[p] = d[p] < 0
            else:
                parent, coupling = forest.parents[p], couplings[p]
                new[p] = d[p] + _given(coupling, new[parent]) < 0
                if new[p] != old[p] and new[parent] != old[parent]:
                    change += 2 * coupling if old[p] != old[parent] else -2 * coupling
            if new[p] != old[p]:
                moved = True
                rise = spins.rises[forest.sites[p]]
                change += rise if new[p] == 1 else -rise
        if moved and (change <= 0 or temperature > 0):
            total += change
            for p in range(begin, end):
                if new[p] != old[p]:
                    _flip(graph, spins, forest.sites[p])
    return total


@kernel
def solve_spins(graph, spins, forest, firsts, couplings, d, old, new, temperatures, seed):
    """Solve a forest once for each of the temperatures, one of several that is drawn: forest f has the trees from
    ``firsts[f]`` to ``firsts[f + 1]``; returns the change of energy."""
    total = 0.0
    for turn in range(len(temperatures)):
        f = below(len(firsts) - 1, seed, 2 * turn)
        stream = bits64(seed, 2 * turn + 1)
        work = couplings, d, old, new
        total += _solve(graph, spins, forest, firsts[f], firsts[f + 1], *work, temperatures[turn], stream)
    return total
