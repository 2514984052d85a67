"""How a wide tree grows through a graph: along a front of a few sites, its profile.

A site enters next to one that is there, and leaves when all of its neighbours have entered or are left out. Sites enter
in the order of their ranks, so that the front stays together. Where it has no room, neighbours are left out of this
tree, and another tree takes them.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.simd.jit import inline_helper, kernel

UNSOLVED, IN_PROFILE, SOLVED = 0, 1, 2  # where a site is


class Front(NamedTuple):
    """The front of the tree that grows, and what a sweep knows of all sites. Flat arrays:

    places  [site] UNSOLVED, IN_PROFILE, or SOLVED: has left the profile
    trees   [site] the number of the last tree that it is in, or was left out of
    ranks   [site] which of several sites enters first
    open    [site] how many neighbours of a site in the profile may still enter
    sites   [position] the profile, the oldest site first
    sizes   [position] their numbers of labels
    links   [position] workspace: the links from the site that enters to them, -1 where there is no edge
    """

    places: np.ndarray
    trees: np.ndarray
    ranks: np.ndarray
    open: np.ndarray
    sites: np.ndarray
    sizes: np.ndarray
    links: np.ndarray


@kernel
def rank_sites(graph, root, is_reversed, ranks, order):
    """Rank the sites by their distance from a root, those of one distance by the rank of their first neighbour.

    `order` gets the sites by rank. Neighbours are tried in reverse order if `is_reversed`. O(neighbours) per site.
    """
    ranks[:] = -1
    tail = 0
    for step in range(len(ranks)):
        first = (root + step) % len(ranks)
        if ranks[first] >= 0:
            continue
        ranks[first], order[tail], head = tail, first, tail
        tail += 1
        while head < tail:
            begin, end = graph.starts[order[head]], graph.starts[order[head] + 1]
            head += 1
            for number in range(end - begin):
                j = graph.neighbours[end - 1 - number if is_reversed else begin + number]
                if ranks[j] < 0:
                    ranks[j], order[tail] = tail, j
                    tail += 1


@inline_helper
def is_open(front, j, tree):
    """Whether a site may enter the tree."""
    return front.places[j] == UNSOLVED and front.trees[j] != tree


@inline_helper
def is_inside(front, j, tree):
    """Whether a site has entered the tree."""
    return front.places[j] != UNSOLVED and front.trees[j] == tree


@inline_helper
def leave_out(graph, front, j, tree):
    """Leave a site out of the tree."""
    front.trees[j] = tree
    for k in range(graph.starts[j], graph.starts[j + 1]):
        front.open[graph.neighbours[k]] -= 1


@inline_helper
def append(graph, front, j, size, count, tree):
    """Let a site enter the profile, which has `count` sites."""
    leave_out(graph, front, j, tree)  # its neighbours wait for it no longer
    front.places[j] = IN_PROFILE
    front.sites[count], front.sizes[count], front.open[j] = j, size, 0
    for k in range(graph.starts[j], graph.starts[j + 1]):
        if is_open(front, graph.neighbours[k], tree):
            front.open[j] += 1


@inline_helper
def remove(front, position, count):
    """Let the site at a position of the profile leave."""
    front.places[front.sites[position]] = SOLVED
    for later in range(position + 1, count):
        front.sites[later - 1], front.sizes[later - 1] = front.sites[later], front.sizes[later]


@inline_helper
def find_links(graph, front, j, count):
    """Find the links from a site to those of the profile."""
    front.links[:count] = -1
    for k in range(graph.starts[j], graph.starts[j + 1]):
        if front.places[graph.neighbours[k]] == IN_PROFILE:
            for position in range(count):
                if front.sites[position] == graph.neighbours[k]:
                    front.links[position] = graph.links[k]


@inline_helper
def leaving_position(front, count):
    """The position of the oldest site of the profile whose neighbours are all decided; -1 if there is none."""
    for position in range(count):
        if front.open[front.sites[position]] == 0:
            return position
    return -1


@inline_helper
def next_site(graph, front, count, tree):
    """The open neighbour of the profile that has the lowest rank."""
    best = -1
    for position in range(count):
        i = front.sites[position]
        for k in range(graph.starts[i], graph.starts[i + 1]):
            j = graph.neighbours[k]
            if is_open(front, j, tree) and (best < 0 or front.ranks[j] < front.ranks[best]):
                best = j
    return best


@inline_helper
def frees(graph, front, j):
    """Whether a site of the profile can leave when j has entered."""
    for k in range(graph.starts[j], graph.starts[j + 1]):
        i = graph.neighbours[k]
        if front.places[i] == IN_PROFILE and front.open[i] == 1:
            return True
    return False
