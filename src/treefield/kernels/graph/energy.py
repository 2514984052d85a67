"""A graph as the kernels see it, labels, costs and edges as flat arrays; and the energy of a labelling, in float64."""

from typing import NamedTuple

import numpy as np

from treefield.kernels.graph.edge_rules import edge_cost, link_cost
from treefield.kernels.shared.differences import add_change
from treefield.kernels.shared.union_find import join, number_roots
from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import LANES, load, minimum, reduce_min
from treefield.kernels.simd.sums import add_exactly


class Graph(NamedTuple):
    """A graph as flat arrays.

    Site i has the labels of `unary` from ``label_starts[i]`` to ``label_starts[i + 1]``; `labels` is how many every
    site has, or 0. It has the `neighbours` from ``starts[i]`` to ``starts[i + 1]``; `links` are, in the same order, 2 *
    edge + (1 if the site is the edge's second).

    `edges` has the first and the second site of each edge. `kind` is the code of the rule that says what an edge costs:
    its weight times a cost computed from `positions`, or ``tables[table_starts[edge] + a * stride + b]`` (a stride of 0
    is the second site's number of labels). Costs of `forbidden_cost` and more are forbidden.
    """

    kind: int
    labels: int
    label_starts: np.ndarray
    unary: np.ndarray
    starts: np.ndarray
    neighbours: np.ndarray
    links: np.ndarray
    edges: np.ndarray
    tables: np.ndarray
    table_starts: np.ndarray
    stride: int
    weights: np.ndarray
    positions: np.ndarray
    forbidden_cost: float


@kernel
def list_neighbours(edges, starts, neighbours, links):
    """Fill `neighbours` and `links`, two per edge. O(1) per edge.

    On entry `starts` is a 0 and the cumulative numbers of neighbours [site]; on return it is shifted by one, as in
    `Graph`.
    """
    for edge in range(len(edges) // 2):
        for end in range(2):
            site = edges[2 * edge + end]
            at = starts[site + 1]
            starts[site + 1] = at + 1
            neighbours[at] = edges[2 * edge + 1 - end]
            links[at] = 2 * edge + end


@inline_helper
def label_count(graph, site):
    """How many labels a site has."""
    return graph.labels if graph.labels > 0 else graph.label_starts[site + 1] - graph.label_starts[site]


@inline_helper
def first_label(graph, site):
    """Where a site's labels begin."""
    return site * graph.labels if graph.labels > 0 else graph.label_starts[site]


@inline_helper
def least_cost(h, at, count):
    """The minimum of h[at : at + count]; infinity must follow it up to the next multiple of eight. O(L)."""
    low = load(h, at)
    for s in range(LANES, count, LANES):
        low = minimum(load(h, at + s), low)
    return reduce_min(low)


@inline_helper
def lowest_label(h, at, count):
    """The label of lowest cost, the lowest among equals."""
    best = 0
    for s in range(1, count):
        if h[at + s] < h[at + best]:
            best = s
    return best


@kernel
def best_labels(graph, x):
    """Set x [site] to each site's label of lowest unary cost, the lowest among equals. O(L) per site."""
    for i in range(len(x)):
        x[i] = lowest_label(graph.unary, first_label(graph, i), label_count(graph, i))


@kernel
def graph_energy(x, graph):
    """The finite part of the energy of a labelling x [site], and the number of forbidden costs.

    O(1) per site and edge.
    """
    total = carried = 0.0
    forbidden = 0
    size = len(x)
    for n in range(size + graph.starts[size] // 2):
        if n < size:
            value = np.float64(graph.unary[first_label(graph, n) + x[n]])
        else:
            edge = n - size
            value = edge_cost(graph, edge, x[graph.edges[2 * edge]], x[graph.edges[2 * edge + 1]])
        if value >= graph.forbidden_cost:
            forbidden += 1
            continue
        total, carried = add_exactly(total, carried, value)
    return total + carried, forbidden


@kernel
def join_differing(x, y, graph, numbers):
    """Number the connected components of the sites where two labellings differ; returns how many there are.

    `numbers` [site] is -1 elsewhere. About O(neighbours) per site.
    """
    for i in range(len(x)):
        root = -1
        if x[i] != y[i]:
            for k in range(graph.starts[i], graph.starts[i + 1]):
                j = graph.neighbours[k]
                if j < i and numbers[j] >= 0:
                    root, _ = join(numbers, root, j)
            if root < 0:
                root = i
        numbers[i] = root
    return number_roots(numbers)


@kernel
def component_changes(x, y, graph, numbers, finite, forbidden):
    """Add up the change of each component in `finite` and `forbidden` [component].

    An edge belongs to the component of whichever end differs. O(neighbours) per site that differs.
    """
    for i in range(len(x)):
        if numbers[i] < 0:
            continue
        at = first_label(graph, i)
        before, after = np.float64(graph.unary[at + x[i]]), np.float64(graph.unary[at + y[i]])
        add_change(before, after, numbers[i], graph.forbidden_cost, finite, forbidden)
        for k in range(graph.starts[i], graph.starts[i + 1]):
            j = graph.neighbours[k]
            if numbers[j] >= 0 and j < i:
                continue
            link = graph.links[k]
            before, after = link_cost(graph, link, x[i], x[j]), link_cost(graph, link, y[i], y[j])
            add_change(before, after, numbers[i], graph.forbidden_cost, finite, forbidden)
