"""Balls of a graph: sites near a centre, and what jumps do to them."""

from treefield.kernels.components import join, number_roots
from treefield.kernels.graph import absorb, cost, first_label, label_count
from treefield.kernels.jit import kernel
from treefield.kernels.random import below, bits64


@kernel
def draw_balls(graph, centres, sizes, ends, sites, seen):
    """Grow a ball around each centre, nearest sites first, up to its size; returns how many sites all of them have.
    Ball b is ``sites[ends[b - 1]:ends[b]]``; `seen`, one for each site and all -1, is work space."""
    tail = 0
    for ball in range(len(centres)):
        begin = head = tail
        sites[tail] = centres[ball]
        seen[centres[ball]] = ball
        tail += 1
        while head < tail and tail - begin < sizes[ball]:
            i = sites[head]
            head += 1
            for k in range(graph.starts[i], graph.starts[i + 1]):
                j = graph.beside[k]
                if seen[j] != ball and tail - begin < sizes[ball]:
                    seen[j] = ball
                    sites[tail] = j
                    tail += 1
        ends[ball] = tail
    return tail


@kernel
def scramble_sites(graph, y, sites, seed):
    """Give each of some sites a random label."""
    for p in range(len(sites)):
        y[sites[p]] = below(label_count(graph, sites[p]), seed, p)


@kernel
def fill_balls(graph, y, ends, sites, labels):
    """Give all sites of each ball one label; those that do not have it keep theirs."""
    begin = 0
    for ball in range(len(ends)):
        for i in sites[begin : ends[ball]]:
            if labels[ball] < label_count(graph, i):
                y[i] = labels[ball]
        begin = ends[ball]


@kernel
def best_balls(graph, y, ends, sites, seen, costs):
    """Give all sites of each ball the label that costs least there, if all had it, given the sites around, with the
    balls before in place. `seen`, one for each site and all -1, and `costs`, one for each label, are work space."""
    begin = 0
    for ball in range(len(ends)):
        count = len(costs)
        for i in sites[begin : ends[ball]]:
            seen[i] = ball
            count = min(count, label_count(graph, i))
        for s in range(count):
            costs[s] = 0.0
        for i in sites[begin : ends[ball]]:
            for s in range(count):
                costs[s] += graph.unary[first_label(graph, i) + s]
            for k in range(graph.starts[i], graph.starts[i + 1]):
                j, link = graph.beside[k], graph.links[k]
                if seen[j] != ball:
                    absorb(graph, link, y[j], 1.0, costs, 0, count)
                elif link & 1 == 0:
                    for s in range(count):
                        costs[s] += cost(graph, link >> 1, s, s)
        best = 0
        for s in range(1, count):
            if costs[s] < costs[best]:
                best = s
        for i in sites[begin : ends[ball]]:
            y[i] = best
        begin = ends[ball]


@kernel
def join_segments(x, graph, numbers):
    """Number the segments of a labelling: connected sites of one label. Returns how many."""
    for i in range(len(x)):
        root = -1
        for k in range(graph.starts[i], graph.starts[i + 1]):
            j = graph.beside[k]
            if j < i and x[j] == x[i]:
                root, _ = join(numbers, root, j)
        numbers[i] = i if root < 0 else root
    return number_roots(numbers)


@kernel
def labels_across(x, graph, numbers, seed, keys, beside):
    """For each segment the label across a random edge of its border; `beside` is left alone where there is none.

    `keys`, zeros, is work space: the edge of the greatest random key wins.
    """
    for edge in range(len(graph.edges) // 2):
        i, j = graph.edges[2 * edge], graph.edges[2 * edge + 1]
        if x[i] == x[j]:
            continue
        key = bits64(seed, edge)
        for own, other in ((i, j), (j, i)):
            if key > keys[numbers[own]]:
                keys[numbers[own]] = key
                beside[numbers[own]] = x[other]
