"""Induced forests of a graph: drawing large ones, and solving them exactly."""

import math
from typing import NamedTuple

import numpy as np

from treefield.kernels.components import join
from treefield.kernels.conditional import change_label, rounded
from treefield.kernels.graph import absorb, best_given, label_count, link_cost, lowest_label, send
from treefield.kernels.jit import called, kernel
from treefield.kernels.lanes import LANES, load, store
from treefield.kernels.random import below, bits64, uniform


class Forest(NamedTuple):
    """The sites of a forest, parents before children; for each the place of its parent (-1 for roots) and its link to
    it. The trees lie one after the other, from ``trees[t]`` to ``trees[t + 1]``."""

    sites: np.ndarray
    parents: np.ndarray
    links: np.ndarray
    trees: np.ndarray


@kernel
def grow_forest(starts, beside, order, roots, seen):
    """Take each site in turn that closes no cycle with those taken; returns how many are. `roots`, one for each site,
    is then -1 for those left out; `seen` is work space. O(neighbours) per site."""
    for i in range(len(roots)):
        roots[i] = -1
        seen[i] = -1
    count = 0
    for i in order:
        free = True
        for k in range(starts[i], starts[i + 1]):
            j = beside[k]
            if roots[j] < 0:
                continue
            while roots[j] != j:
                roots[j] = roots[roots[j]]
                j = roots[j]
            if seen[j] == i:
                free = False
                break
            seen[j] = i
        if not free:
            continue
        roots[i] = i
        root = np.int64(i)
        for k in range(starts[i], starts[i + 1]):
            if roots[beside[k]] >= 0:
                root, _ = join(roots, root, np.int64(beside[k]))
        count += 1
    return count


@kernel
def plan_forest(graph, wanted, sites, parents, links, trees, place):
    """Order the sites whose number in `wanted` is not negative, tree by tree, parents first; returns the number of
    trees, or -1 if there is a cycle. `place`, one for each site of the graph, is work space."""
    for i in range(len(place)):
        place[i] = -1
    tail, count = 0, 0
    for root in range(len(wanted)):
        if wanted[root] < 0 or place[root] >= 0:
            continue
        trees[count] = tail
        count += 1
        head = tail
        sites[tail], parents[tail], links[tail] = root, -1, -1
        place[root] = tail
        tail += 1
        while head < tail:
            i = sites[head]
            for k in range(graph.starts[i], graph.starts[i + 1]):
                j = graph.beside[k]
                if wanted[j] < 0 or (parents[head] >= 0 and j == sites[parents[head]]):
                    continue
                if place[j] >= 0:
                    return -1
                sites[tail], parents[tail], links[tail] = j, head, graph.links[k] ^ 1
                place[j] = tail
                tail += 1
            head += 1
    trees[count] = tail
    return count


@called
def _solve(graph, state, forest, first, last, places, h, old, new, out, temperature, seed):
    """Solve the trees from `first` to `last` exactly, one after the other, given the labels around them; returns the
    change of energy.

    A tree takes its new labels only if that does not raise the energy. At a `temperature` above 0 each cost is lowered
    by Gumbel noise of that scale, and what is best then is taken, whatever it costs.

    Work space: `h`, where the costs of the site at place p lie from ``places[p]`` on; `old` and `new`, one for each
    place; `out`, as in `send`.
    """
    total = 0.0
    for tree in range(first, last):
        begin, end = forest.trees[tree], forest.trees[tree + 1]
        for p in range(begin, end):
            i = forest.sites[p]
            old[p] = state.x[i]
            start = state.starts[i]
            for s in range(0, state.starts[i + 1] - start, LANES):
                store(h, places[p] + s, load(state.costs, start + s))
            if temperature > 0:
                for s in range(label_count(graph, i)):
                    u = uniform(seed, start + s) + 2.0**-54
                    h[places[p] + s] += temperature * math.log(-math.log(u))
        for p in range(end - 1, begin, -1):
            parent, link, at = forest.parents[p], forest.links[p], places[p]
            count, others = label_count(graph, forest.sites[p]), label_count(graph, forest.sites[parent])
            # the tree's own edges are not given, but part of what is sought
            absorb(graph, link, old[parent], -1.0, h, at, count)
            absorb(graph, link ^ 1, old[p], -1.0, h, places[parent], others)
            send(graph, link, h, at, count, out, others)
            at = places[parent]
            for s in range(0, others, LANES):
                store(h, at + s, load(h, at + s) + load(out, s))
        change = 0.0
        moved = False
        for p in range(begin, end):
            i = forest.sites[p]
            if p == begin:
                new[p] = lowest_label(h, places[p], label_count(graph, i))
            else:
                parent, link = forest.parents[p], forest.links[p]
                new[p] = best_given(graph, link, h, places[p], label_count(graph, i), new[parent])
                if new[p] != old[p] and new[parent] != old[parent]:
                    change += rounded(state, link_cost(graph, link, new[p], new[parent]))
                    change += rounded(state, link_cost(graph, link, old[p], old[parent]))
                    change -= rounded(state, link_cost(graph, link, new[p], old[parent]))
                    change -= rounded(state, link_cost(graph, link, old[p], new[parent]))
            if new[p] != old[p]:
                moved = True
                change += state.costs[state.starts[i] + new[p]] - state.costs[state.starts[i] + old[p]]
        if moved and (change <= 0 or temperature > 0):
            total += change
            for p in range(begin, end):
                if new[p] != old[p]:
                    change_label(graph, state, forest.sites[p], new[p])
    return total


@kernel
def solve_trees(graph, state, forest, firsts, places, h, old, new, out, temperatures, seed):
    """Solve a forest once for each of the temperatures, one of several that is drawn: forest f has the trees from
    ``firsts[f]`` to ``firsts[f + 1]``; returns the change of energy."""
    total = 0.0
    for turn in range(len(temperatures)):
        f = below(len(firsts) - 1, seed, 2 * turn)
        stream = bits64(seed, 2 * turn + 1)
        work = places, h, old, new, out
        total += _solve(graph, state, forest, firsts[f], firsts[f + 1], *work, temperatures[turn], stream)
    return total
