"""Induced forests of a graph: large ones, and cuts of all sites into trees."""

from typing import NamedTuple

import numpy as np

from treefield.kernels.shared.union_find import join
from treefield.kernels.simd.jit import inline_helper, kernel

_NOWHERE = -(2**31)  # no tree came there


class GraphForest(NamedTuple):
    """The sites of a forest, parents before children, and their links.

    For each site the place of its parent (-1 for roots), its link to it, its first child, and the next child of the
    same parent (-1 where there is none). The trees lie one after the other, from ``trees[t]`` to ``trees[t + 1]``.
    """

    sites: np.ndarray
    parents: np.ndarray
    links: np.ndarray
    first_children: np.ndarray
    next_siblings: np.ndarray
    trees: np.ndarray


@kernel
def grow_forest(starts, neighbours, order, roots, seen):
    """Take each site in turn that closes no cycle with those taken; returns how many are taken.

    `roots`, one for each site, is then -1 for those left out; `seen` is workspace. O(neighbours) per site.
    """
    for i in range(len(roots)):
        roots[i] = -1
        seen[i] = -1
    count = 0
    for i in order:
        is_acyclic = True
        for k in range(starts[i], starts[i + 1]):
            j = neighbours[k]
            if roots[j] < 0:
                continue
            while roots[j] != j:
                roots[j] = roots[roots[j]]
                j = roots[j]
            if seen[j] == i:
                is_acyclic = False
                break
            seen[j] = i
        if not is_acyclic:
            continue
        roots[i] = i
        root = np.int64(i)
        for k in range(starts[i], starts[i + 1]):
            if roots[neighbours[k]] >= 0:
                root, _ = join(roots, root, np.int64(neighbours[k]))
        count += 1
    return count


@inline_helper
def _append(forest, tail, i, parent, link):
    """Put a site, with the place of its parent and its link to it (-1 for a root), at the end of a forest."""
    forest.sites[tail], forest.parents[tail], forest.links[tail] = i, parent, link
    forest.first_children[tail], forest.next_siblings[tail] = -1, -1
    if parent >= 0:
        forest.next_siblings[tail] = forest.first_children[parent]
        forest.first_children[parent] = tail


@kernel
def split_into_trees(graph, order, limit, is_reversed, forest, stack, place):
    """Cut the sites into induced trees of up to `limit` sites; returns the number of trees.

    A tree grows around each site of `order` that is in none yet: along a branch to its end, then back from where it
    came. Neighbours are tried in reverse order if `is_reversed`: on a grid, columns before rows.

    Fills the arrays of `forest`; work space: `stack`, one for each end of an edge and one more, and for each site its
    `place`: before it has one, -1 - 2 t if it is next to one site of tree t, -2 - 2 t if next to more, where t is
    the last tree that reached it.
    """
    for i in range(len(place)):
        place[i] = _NOWHERE
    tail, count = 0, 0
    for root in order:
        if place[root] >= 0:
            continue
        begin = tail
        forest.trees[count] = begin
        next_to_one, next_to_more = -1 - 2 * count, -2 - 2 * count
        stack[0], top = root, 1
        while top > 0 and tail - begin < limit:
            top -= 1
            i = stack[top]
            if place[i] >= 0 or place[i] == next_to_more:  # a second edge to the tree would close a cycle
                continue
            parent, link = -1, -1
            first, last = graph.starts[i], graph.starts[i + 1] - 1
            for step in range(last - first + 1):
                k = last - step if is_reversed else first + step
                j = graph.neighbours[k]
                if place[j] >= begin:
                    parent, link = place[j], graph.links[k]
                elif place[j] == next_to_one:
                    place[j] = next_to_more
                elif place[j] < 0 and place[j] != next_to_more:
                    place[j] = next_to_one
                    stack[top] = j
                    top += 1
            _append(forest, tail, i, parent, link)
            place[i] = tail
            tail += 1
        count += 1
    forest.trees[count] = tail
    return count


@kernel
def plan_graph_forest(graph, wanted, forest, stack, place):
    """Order the sites of a forest tree by tree; returns the number of trees, or -1 if there is a cycle.

    The sites are those whose number in `wanted` is not negative. Each tree is ordered along its branches: parents come
    before children, and neighbours close to each other. Fills the arrays of `forest`; `stack`, two for each of its
    sites, and `place`, one for each of the graph, are workspace.
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
                j = graph.neighbours[k]
                if wanted[j] < 0 or graph.links[k] == link:
                    continue
                if place[j] >= 0 or top + 1 >= len(stack):
                    return -1
                stack[top], stack[top + 1] = j, k
                top += 2
    forest.trees[count] = tail
    return count
