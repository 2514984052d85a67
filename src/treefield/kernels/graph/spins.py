"""Graphs whose sites have two labels each: a site's costs are one number, what label 1 costs more than label 0.

Any edge between two such sites costs w [a != b], plus costs of single labels. So a message is one number too: the
difference, clipped to [-|w|, |w|]. `site_costs` documents the functions that it chooses.
"""

import math
from typing import NamedTuple

import numpy as np

from treefield.kernels.graph.edge_rules import edge_cost
from treefield.kernels.graph.label_costs import ALL
from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.random import uniform


class Spins(NamedTuple):
    """Flat arrays:

    rises           [site] what label 1 costs more than label 0, given the labels `x` of the neighbours
    x               [site] the labelling
    dirty           [site] one flag for each of up to 32 users, set when the rise or the label changes
    pending_labels  [site] workspace, all -1
    couplings       [edge] the weight w
    link_couplings  [place] the same for each place of the graph's `links`
    """

    rises: np.ndarray
    x: np.ndarray
    dirty: np.ndarray
    pending_labels: np.ndarray
    couplings: np.ndarray
    link_couplings: np.ndarray


class SpinWorkspace(NamedTuple):
    """The memory of the search on a forest, as in `LabelWorkspace`: flat arrays [place].

    The couplings to the parents, the rises without the parents, and the messages to the parents; the labels before and
    after are workspace.
    """

    couplings: np.ndarray
    rises: np.ndarray
    messages: np.ndarray
    old: np.ndarray
    new: np.ndarray


@kernel
def start_spins(graph, spins, rounder):
    """Compute the couplings, as multiples of the unit of `rounder`, and the rises given label 0 everywhere.

    O(1) per site and edge.
    """
    for i in range(len(spins.x)):
        spins.x[i] = 0
        spins.dirty[i] = ALL
        own = np.float64(graph.unary[2 * i + 1]) - np.float64(graph.unary[2 * i])
        spins.rises[i] = (own + rounder) - rounder
    for edge in range(len(spins.couplings)):
        same = edge_cost(graph, edge, 0, 0), edge_cost(graph, edge, 1, 1)
        other = edge_cost(graph, edge, 0, 1), edge_cost(graph, edge, 1, 0)
        coupling = (0.5 * (other[0] + other[1] - same[0] - same[1]) + rounder) - rounder
        spins.couplings[edge] = coupling
        # what is left costs a label of one site by itself
        first = (other[1] - same[0] - coupling + rounder) - rounder
        second = (other[0] - same[0] - coupling + rounder) - rounder
        spins.rises[graph.edges[2 * edge]] += first + coupling
        spins.rises[graph.edges[2 * edge + 1]] += second + coupling
    for k in range(graph.starts[len(spins.x)]):
        spins.link_couplings[k] = spins.couplings[graph.links[k] >> 1]


@inline_helper
def relabel(spins, graph, i, label):
    sign = 2.0 if spins.x[i] == 1 else -2.0
    spins.x[i] = label
    spins.dirty[i] = ALL
    for k in range(graph.starts[i], graph.starts[i + 1]):
        j = graph.neighbours[k]
        spins.rises[j] += sign * spins.link_couplings[k]
        spins.dirty[j] = ALL


@inline_helper
def cheapest(spins, graph, i):
    return 1 if spins.rises[i] < 0 else 0


@inline_helper
def rise(spins, graph, i, label):
    own = spins.rises[i]
    return (own if label == 1 else 0.0) - (own if spins.x[i] == 1 else 0.0)


@inline_helper
def draw_label(spins, graph, i, heat, limit, seed, draw):
    # label 1 has the probability 1 / (1 + 2**(own * heat))
    own = spins.rises[i]
    if own >= limit:
        return 0
    if own <= -limit:
        return 1
    return 1 if uniform(seed, draw) * (1.0 + 2.0 ** (own * heat)) < 1.0 else 0


@inline_helper
def _given(coupling, label):
    """The part of an edge in the rise at one end, given the label at the other."""
    return -coupling if label == 1 else coupling


@inline_helper
def upward(spins, graph, forest, begin, end, dirty_bit, workspace, temperature, seed):
    couplings, rises, messages, old = workspace.couplings, workspace.rises, workspace.messages, workspace.old
    for p in range(end - 1, begin - 1, -1):
        i, parent = forest.sites[p], forest.parents[p]
        if spins.dirty[i] & dirty_bit == 0:
            continue
        own = spins.rises[i]
        if temperature > 0:
            u = uniform(seed, i) + 2.0**-54
            own += temperature * math.log(u / (1.0 - u + 2.0**-54))
        q = forest.first_children[p]
        while q >= 0:
            own += messages[q] - _given(couplings[q], old[q])
            q = forest.next_siblings[q]
        if parent < 0:
            rises[p] = own
            continue
        coupling = couplings[p]
        own -= _given(coupling, old[parent])
        rises[p] = own
        most = abs(coupling)
        message = most if own > most else (-most if own < -most else own)
        message = -message if coupling < 0 else message
        if message != messages[p]:
            messages[p] = message
            spins.dirty[forest.sites[parent]] |= dirty_bit


@inline_helper
def downward(spins, graph, forest, begin, end, dirty_bit, workspace):
    couplings, rises, old, new = workspace.couplings, workspace.rises, workspace.old, workspace.new
    change, moved = 0.0, 0
    for p in range(begin, end):
        i, parent = forest.sites[p], forest.parents[p]
        new[p] = old[p]
        if spins.dirty[i] & dirty_bit == 0 and (parent < 0 or new[parent] == old[parent]):
            continue
        spins.dirty[i] &= ~dirty_bit
        if parent < 0:
            new[p] = rises[p] < 0
        else:
            new[p] = rises[p] + _given(couplings[p], new[parent]) < 0
            if new[p] != old[p] and new[parent] != old[parent]:
                change += 2 * couplings[p] if old[p] != old[parent] else -2 * couplings[p]
        if new[p] != old[p]:
            moved += 1
            change += rise(spins, graph, i, new[p])
    return change, moved
