"""Induced forests of a graph: drawing large ones, and solving them exactly."""

import math
from typing import NamedTuple

import numpy as np

from treefield.kernels.components import join
from treefield.kernels.conditional import ALL, add_edge, change_label, rounded
from treefield.kernels.graph import best_given, label_count, least, link_cost, lowest_label, send
from treefield.kernels.jit import inlined, kernel
from treefield.kernels.lanes import LANES, bits, full, load, store
from treefield.kernels.prefetch import prefetch
from treefield.kernels.random import below, bits64, uniform

_AHEAD = 8  # places whose costs are asked for before they are needed
_MANY = 32  # changes, if more than one in so many sites has one


class Forest(NamedTuple):
    """The sites of a forest, parents before children; for each the place of its parent (-1 for roots), its link to it,
    its first child, and the next child of the same parent (-1 where there is none). The trees lie one after the other,
    from ``trees[t]`` to ``trees[t + 1]``."""

    sites: np.ndarray
    parents: np.ndarray
    links: np.ndarray
    kids: np.ndarray
    siblings: np.ndarray
    trees: np.ndarray


class ForestSpace(NamedTuple):
    """What the search on a forest needs, and finds there when it solves the forest again: where each place has its
    costs in `h`, these, and the least of them; where it has its message to its parent, and these. The old and the new
    label of each place, and `out`, as in `send`, are work space."""

    places: np.ndarray
    h: np.ndarray
    lows: np.ndarray
    starts: np.ndarray
    messages: np.ndarray
    old: np.ndarray
    new: np.ndarray
    out: np.ndarray


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


@inlined
def _append(forest, tail, i, parent, link):
    """Put a site, with the place of its parent and its link to it (-1 for a root), at the end of a forest."""
    forest.sites[tail], forest.parents[tail], forest.links[tail] = i, parent, link
    forest.kids[tail], forest.siblings[tail] = -1, -1
    if parent >= 0:
        forest.siblings[tail] = forest.kids[parent]
        forest.kids[parent] = tail


@kernel
def split_into_trees(graph, order, limit, turned, forest, stack, place, tree, touched):
    """Cut the sites into induced trees of up to `limit` sites, one around each site of `order` that is in none before:
    along a branch as far as it goes, and then from where it came. `turned`, neighbours are tried in the reverse order:
    where there are rows and columns, it is columns instead of rows. Returns the number of trees.

    Fills the arrays of `forest`; work space: `stack`, one for each end of an edge and one more, and for each site its
    `place`, the `tree` that came next to it last, and how many of that tree's sites are beside it.
    """
    for i in range(len(place)):
        place[i] = tree[i] = -1
    tail, count = 0, 0
    for root in order:
        if place[root] >= 0:
            continue
        begin = tail
        forest.trees[count] = begin
        stack[0], top, tree[root], touched[root] = root, 1, count, 0
        while top > 0 and tail - begin < limit:
            top -= 1
            i = stack[top]
            if place[i] >= 0 or touched[i] > 1:  # a second edge to the tree would close a cycle
                continue
            parent, link = -1, -1
            first, last = graph.starts[i], graph.starts[i + 1] - 1
            for step in range(last - first + 1):
                k = last - step if turned else first + step
                j = graph.beside[k]
                if place[j] >= begin:
                    parent, link = place[j], graph.links[k]
                elif place[j] < 0:
                    if tree[j] != count:
                        tree[j], touched[j] = count, 0
                    touched[j] += 1
                    if touched[j] == 1:
                        stack[top] = j
                        top += 1
            _append(forest, tail, i, parent, link)
            place[i] = tail
            tail += 1
        count += 1
    forest.trees[count] = tail
    return count


@kernel
def plan_forest(graph, wanted, forest, stack, place):
    """Order the sites whose number in `wanted` is not negative, tree by tree, each along its branches: parents come
    before children, and neighbours close to each other. Returns the number of trees, or -1 if there is a cycle. Fills
    the arrays of `forest`; `stack`, two for each of its sites, and `place`, one for each of the graph, are work space.
    """
    for i in range(len(place)):
        place[i] = -1
    tail, count = 0, 0
    for root in range(len(wanted)):
        if wanted[root] < 0 or place[root] >= 0:
            continue
        forest.trees[count] = tail
        count += 1
        stack[0], stack[1], top = root, -1, 2
        while top > 0:
            top -= 2
            i, entry = stack[top], stack[top + 1]  # the latter is the parent's: its way to this site
            if place[i] >= 0:
                return -1
            parent, link = -1, -1
            if entry >= 0:
                link = graph.links[entry] ^ 1
                parent = place[graph.edges[2 * (link >> 1) + 1 - (link & 1)]]
            _append(forest, tail, i, parent, link)
            place[i] = tail
            tail += 1
            for k in range(graph.starts[i], graph.starts[i + 1]):
                j = graph.beside[k]
                if wanted[j] < 0 or graph.links[k] == link:
                    continue
                if place[j] >= 0 or top + 1 >= len(stack):
                    return -1
                stack[top], stack[top + 1] = j, k
                top += 2
    forest.trees[count] = tail
    return count


@inlined
def _gather(graph, state, forest, p, space):
    """What a site's labels cost: given the sites around the tree, and with the messages from its children."""
    i, at, h, old = forest.sites[p], space.places[p], space.h, space.old
    start, count = state.starts[i], label_count(graph, i)
    for s in range(0, count, LANES):
        store(h, at + s, load(state.costs, start + s))
    # the tree's own edges are not given, but part of what is sought
    if forest.parents[p] >= 0:
        add_edge(graph, state, forest.links[p], old[forest.parents[p]], -1.0, h, at, count)
    q = forest.kids[p]
    while q >= 0:
        add_edge(graph, state, forest.links[q] ^ 1, old[q], -1.0, h, at, count)
        for s in range(0, count, LANES):
            store(h, at + s, load(h, at + s) + load(space.messages, space.starts[q] + s))
        q = forest.siblings[q]


@inlined
def _add_noise(h, at, count, temperature, seed, number):
    for s in range(count):
        u = uniform(seed, number + s) + 2.0**-54
        h[at + s] += temperature * math.log(-math.log(u))


@inlined
def _replaced(messages, at, out, low, count):
    """Put a message, less the constant `low`, in its place; whether it differs from the one that was there."""
    differing = 0
    whole = count // LANES * LANES
    for s in range(0, whole, LANES):
        new = load(out, s) - full(low)
        differing |= bits(new != load(messages, at + s))
        store(messages, at + s, new)
    for s in range(whole, count):
        new_one = out[s] - low
        differing |= new_one != messages[at + s]
        messages[at + s] = new_one
    return differing != 0


@inlined
def _upward(graph, state, forest, begin, end, bit, space, temperature, seed):
    """Messages from the leaves to the root, where something has changed: where a message is as it was, what lies above
    is, too."""
    h, messages, out = space.h, space.messages, space.out
    for p in range(end - 1, begin - 1, -1):
        i = forest.sites[p]
        if state.dirty[i] & bit == 0:
            continue
        if p >= begin + _AHEAD:
            prefetch(state.costs, state.starts[forest.sites[p - _AHEAD]])
        count = label_count(graph, i)
        _gather(graph, state, forest, p, space)
        if temperature > 0:
            _add_noise(h, space.places[p], count, temperature, seed, state.starts[i])
        if forest.parents[p] < 0:
            continue
        parent = forest.sites[forest.parents[p]]
        others = label_count(graph, parent)
        low = least(h, space.places[p], count)
        space.lows[p] = low
        send(graph, forest.links[p], h, space.places[p], count, low, out, others)
        if _replaced(messages, space.starts[p], out, low, others):
            state.dirty[parent] |= bit


@inlined
def _downward(graph, state, forest, begin, end, bit, space):
    """Labels from the root to the leaves, where something has changed; returns the change of energy and how many there
    are."""
    h, old, new = space.h, space.old, space.new
    change, moved = 0.0, 0
    for p in range(begin, end):
        i, parent = forest.sites[p], forest.parents[p]
        new[p] = old[p]
        if state.dirty[i] & bit == 0 and (parent < 0 or new[parent] == old[parent]):
            continue
        state.dirty[i] &= ~bit
        count = label_count(graph, i)
        if parent < 0:
            new[p] = lowest_label(h, space.places[p], count)
        else:
            link = forest.links[p]
            new[p] = best_given(graph, link, h, space.places[p], count, space.lows[p], new[parent])
            if new[p] != old[p] and new[parent] != old[parent]:
                change += rounded(state, link_cost(graph, link, new[p], new[parent]))
                change += rounded(state, link_cost(graph, link, old[p], old[parent]))
                change -= rounded(state, link_cost(graph, link, new[p], old[parent]))
                change -= rounded(state, link_cost(graph, link, old[p], new[parent]))
        if new[p] != old[p]:
            moved += 1
            change += state.costs[state.starts[i] + new[p]] - state.costs[state.starts[i] + old[p]]
    return change, moved


@kernel
def solve_trees(graph, state, forest, firsts, bit, space, temperatures, seed):
    """Solve a forest exactly given the labels around it, once for each of the temperatures; returns the change of
    energy.

    Of several forests one is drawn each time: forest f has the trees from ``firsts[f]`` to ``firsts[f + 1]``. A tree
    takes its new labels only if that does not raise the energy. At a temperature above 0 each cost is lowered by Gumbel
    noise of that scale, and what is best then is taken, whatever it costs.

    A site is looked at if the forest's `bit` of its `dirty` is set, or what is below or above it has changed.
    """
    old, new = space.old, space.new
    total = 0.0
    for turn in range(len(temperatures)):
        f = below(len(firsts) - 1, seed, 2 * turn)
        stream, temperature = bits64(seed, 2 * turn + 1), temperatures[turn]
        for tree in range(firsts[f], firsts[f + 1]):
            begin, end = forest.trees[tree], forest.trees[tree + 1]
            for p in range(begin, end):
                old[p] = state.x[forest.sites[p]]
                if temperature > 0:
                    state.dirty[forest.sites[p]] |= bit
            _upward(graph, state, forest, begin, end, bit, space, temperature, stream)
            change, moved = _downward(graph, state, forest, begin, end, bit, space)
            if moved == 0 or (change > 0 and temperature == 0):
                continue
            total += change
            for p in range(begin, end):
                if new[p] != old[p]:
                    if moved > len(state.x) // _MANY:
                        state.aims[forest.sites[p]] = new[p]
                    else:
                        change_label(graph, state, forest.sites[p], new[p], ALL)
            if moved > len(state.x) // _MANY:  # in the order of memory
                for i in range(len(state.x)):
                    if state.aims[i] >= 0:
                        change_label(graph, state, i, state.aims[i], ALL)
                        state.aims[i] = -1
            for p in range(begin, end):  # its own changes do not concern a tree
                state.dirty[forest.sites[p]] &= ~bit
    return total
