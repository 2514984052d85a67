"""Balls of a graph: sites near a centre, and what jumps do to them."""

from treefield.kernels.graph.edge_rules import absorb, edge_cost
from treefield.kernels.graph.energy import first_label, label_count
from treefield.kernels.shared.union_find import join, number_roots
from treefield.kernels.simd.jit import kernel
from treefield.kernels.simd.random import below, bits64


@kernel
def draw_balls(graph, centres, sizes, ends, sites, seen):
    """Grow a ball around each centre, nearest sites first, up to its size; returns their total number of sites.

    Ball b is ``sites[ends[b - 1]:ends[b]]``; `seen`, one for each site and all -1, is workspace. O(neighbours) per site
    of a ball.
    """
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
                j = graph.neighbours[k]
                if seen[j] != ball and tail - begin < sizes[ball]:
                    seen[j] = ball
                    sites[tail] = j
                    tail += 1
        ends[ball] = tail
    return tail


@kernel
def scramble_sites(graph, y, sites, seed):
    """Give each of the `sites` a random label. O(1) per site."""
    for p in range(len(sites)):
        y[sites[p]] = below(label_count(graph, sites[p]), seed, p)


@kernel
def fill_balls(graph, y, ends, sites, labels):
    """Give all sites of each ball its label, except sites that have too few labels. O(1) per site."""
    begin = 0
    for ball in range(len(ends)):
        for i in sites[begin : ends[ball]]:
            if labels[ball] < label_count(graph, i):
                y[i] = labels[ball]
        begin = ends[ball]


@kernel
def best_balls(graph, y, ends, sites, seen, costs):
    """Give all sites of each ball the one label that costs least, given the sites around it and the balls before.

    `seen`, one for each site and all -1, and `costs`, one for each label, are workspace. O(neighbours x L) per site of
    a ball.
    """
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
                j, link = graph.neighbours[k], graph.links[k]
                if seen[j] != ball:
                    absorb(graph, link, y[j], 1.0, None, costs, 0, count)
                elif link & 1 == 0:
                    for s in range(count):
                        costs[s] += edge_cost(graph, link >> 1, s, s)
        best = 0
        for s in range(1, count):
            if costs[s] < costs[best]:
                best = s
        for i in sites[begin : ends[ball]]:
            y[i] = best
        begin = ends[ball]


@kernel
def join_segments(x, graph, numbers):
    """Number the segments of a labelling, connected sites of one label; returns how many there are.

    About O(neighbours) per site.
    """
    for i in range(len(x)):
        root = -1
        for k in range(graph.starts[i], graph.starts[i + 1]):
            j = graph.neighbours[k]
            if j < i and x[j] == x[i]:
                root, _ = join(numbers, root, j)
        numbers[i] = i if root < 0 else root
    return number_roots(numbers)


@kernel
def labels_across(x, graph, numbers, seed, keys, across):
    """For each segment the label across a random edge of its border; `across` is left unchanged where there is none.

    `keys` [segment], zeros, is workspace: the edge of the greatest random key wins. O(1) per edge.
    """
    for edge in range(len(graph.edges) // 2):
        i, j = graph.edges[2 * edge], graph.edges[2 * edge + 1]
        if x[i] == x[j]:
            continue
        key = bits64(seed, edge)
        for own, other in ((i, j), (j, i)):
            if key > keys[numbers[own]]:
                keys[numbers[own]] = key
                across[numbers[own]] = x[other]
