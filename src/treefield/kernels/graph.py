"""What a graph is to a kernel: labels, costs and edges as flat arrays; what its edges cost; and the energy of a
labelling on it.

Sums are in float64. The kind of the pairwise cost is a number, looked at once per edge: a graph's kernels are compiled
once for all kinds.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.components import add_change, join, number_roots
from treefield.kernels.jit import inline_helper, kernel
from treefield.kernels.lanes import (
    LANES,
    broadcast,
    cast,
    load,
    lowest_set_bit,
    mask_to_int,
    minimum,
    reduce_min,
    store,
)
from treefield.kernels.sums import add_exactly

POTTS, LINEAR = 0, 1  # other kinds are tables


class Graph(NamedTuple):
    """Flat arrays. Site i has the labels of `unary` from ``label_starts[i]`` to ``label_starts[i + 1]``; `labels` is
    how many every site has, or 0. It has the neighbours `beside` from ``starts[i]`` to ``starts[i + 1]``; `links`,
    beside them, are 2 * edge + (1 if the site is the edge's second).

    `edges` has the first and the second site of each edge. An edge costs its weight times [a != b] (POTTS), the
    distance of the labels' `positions` cut off at the last of these (LINEAR), or ``tables[table_starts[edge] + a *
    stride + b]``; a stride of 0 is the second site's number of labels. Costs of `big` and more are forbidden.
    """

    kind: int
    labels: int
    label_starts: np.ndarray
    unary: np.ndarray
    starts: np.ndarray
    beside: np.ndarray
    links: np.ndarray
    edges: np.ndarray
    tables: np.ndarray
    table_starts: np.ndarray
    stride: int
    weights: np.ndarray
    positions: np.ndarray
    big: float


@kernel
def list_neighbours(edges, starts, beside, links):
    """Fill `beside` and `links`; `starts`, with a 0 before the numbers of neighbours added up, is moved by one."""
    for edge in range(len(edges) // 2):
        for end in range(2):
            site = edges[2 * edge + end]
            at = starts[site + 1]
            starts[site + 1] = at + 1
            beside[at] = edges[2 * edge + 1 - end]
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
def row_length(graph, edge):
    """How far apart the rows of an edge's table are."""
    return graph.stride if graph.stride > 0 else label_count(graph, graph.edges[2 * edge + 1])


@inline_helper
def cost(graph, edge, a, b):
    """What an edge costs; `a` is the label of its first site."""
    if graph.kind == POTTS:
        return graph.weights[edge] if a != b else 0.0
    if graph.kind == LINEAR:
        apart = abs(graph.positions[a] - graph.positions[b])
        return graph.weights[edge] * min(apart, graph.positions[len(graph.positions) - 1])
    return graph.weights[edge] * graph.tables[graph.table_starts[edge] + a * row_length(graph, edge) + b]


@inline_helper
def link_cost(graph, link, own, other):
    """The same, by a link; `own` is the label of the site that has it."""
    return cost(graph, link >> 1, other, own) if link & 1 else cost(graph, link >> 1, own, other)


@inline_helper
def absorb(graph, link, label, sign, h, at, count):
    """Add `sign` times what a neighbour of that label costs each of the `count` labels to `h` from `at` on, up to a
    constant that is the same for any label of the neighbour (Eq. 8)."""
    edge = link >> 1
    weight = sign * graph.weights[edge]
    if graph.kind == POTTS:
        if label < count:
            h[at + label] -= weight
        return
    if graph.kind == LINEAR:
        cutoff = graph.positions[len(graph.positions) - 1]
        for s in range(count):
            h[at + s] += weight * min(abs(graph.positions[s] - graph.positions[label]), cutoff)
        return
    row = row_length(graph, edge)
    start = graph.table_starts[edge]
    if link & 1:
        for s in range(count):
            h[at + s] += weight * graph.tables[start + label * row + s]
    else:
        for s in range(count):
            h[at + s] += weight * graph.tables[start + s * row + label]


@inline_helper
def least(h, at, count):
    """The least of `count` numbers from `at` on; after them there must be infinity up to the next multiple of eight."""
    low = load(h, at)
    for s in range(LANES, count, LANES):
        low = minimum(load(h, at + s), low)
    return reduce_min(low)


@inline_helper
def _send_potts(weight, h, at, count, low, out, others):
    if weight >= 0:
        most = broadcast(low + weight)
        for s in range(0, others, LANES):
            store(out, s, minimum(load(h, at + s), most) if s < count else most)
        return
    second, best = np.inf, -1
    for s in range(count):
        if h[at + s] == low and best < 0:
            best = s
        elif h[at + s] < second:
            second = h[at + s]
    for s in range(others):
        other = (second if s == best else low) + weight
        out[s] = h[at + s] if s < count and h[at + s] < other else other


@inline_helper
def _send_linear(graph, weight, h, at, count, low, out, others):
    positions = graph.positions
    most = low + weight * positions[len(positions) - 1]
    labels = max(count, others)
    carried = np.inf
    for s in range(labels):
        if s > 0:
            carried += weight * (positions[s] - positions[s - 1])
        if s < count and h[at + s] < carried:
            carried = h[at + s]
        out[s] = carried if carried < most else most
    for s in range(labels - 2, -1, -1):
        over = out[s + 1] + weight * (positions[s + 1] - positions[s])
        if over < out[s]:
            out[s] = over


@inline_helper
def _send_table(graph, link, weight, h, at, count, out, others):
    edge = link >> 1
    row, start = row_length(graph, edge), graph.table_starts[edge]
    if link & 1 == 0:  # the rows of the table are one's own labels
        for s in range(0, others, LANES):
            best = broadcast(np.inf)
            for t in range(count):
                costs = cast(load(graph.tables, start + t * row + s), np.float64)
                best = minimum(broadcast(h[at + t]) + broadcast(weight) * costs, best)
            store(out, s, best)
    else:
        for s in range(others):
            best = broadcast(np.inf)
            for t in range(0, count, LANES):
                costs = cast(load(graph.tables, start + s * row + t), np.float64)
                best = minimum(load(h, at + t) + broadcast(weight) * costs, best)
            out[s] = reduce_min(best)


@inline_helper
def send(graph, link, h, at, count, low, out, others):
    """out[s] = min over t of h[at + t] + cost(t, s), for each of the neighbour's `others` labels s (Eq. 5); `low` is
    the least h.

    After its `count` labels `h` must have infinity up to the next multiple of eight; `out` must have room for the
    greatest number of labels and seven more, and what is there beyond the neighbour's labels means nothing.
    """
    weight = graph.weights[link >> 1]
    if graph.kind == POTTS:
        _send_potts(weight, h, at, count, low, out, others)
    elif graph.kind == LINEAR:
        _send_linear(graph, weight, h, at, count, low, out, others)
    else:
        _send_table(graph, link, weight, h, at, count, out, others)


@inline_helper
def best_given(graph, link, h, at, count, low, label):
    """The lowest label s that minimises h[at + s] + cost(s, label); `low` is the least h."""
    weight = graph.weights[link >> 1]
    if graph.kind == POTTS and weight >= 0:
        if label < count and h[at + label] < low + weight:
            return np.int64(label)
        for s in range(0, count, LANES):
            lows = mask_to_int(load(h, at + s) == broadcast(low))
            if lows != 0:
                best = s + lowest_set_bit(lows)
                return np.int64(label) if label < best and h[at + label] == low + weight else best
    best, least_cost = np.int64(0), np.inf
    for s in range(count):
        value = h[at + s] + link_cost(graph, link, s, label)
        if value < least_cost:
            best, least_cost = s, value
    return best


@inline_helper
def lowest_label(h, at, count):
    """The label of the least cost, the lowest among equals."""
    best = 0
    for s in range(1, count):
        if h[at + s] < h[at + best]:
            best = s
    return best


@kernel
def best_labels(graph, x):
    """Each site's label of the least unary cost."""
    for i in range(len(x)):
        x[i] = lowest_label(graph.unary, first_label(graph, i), label_count(graph, i))


@kernel
def graph_energy(x, graph):
    """The finite part of the energy of a labelling, and the number of forbidden costs."""
    total = carried = 0.0
    forbidden = 0
    size = len(x)
    for n in range(size + graph.starts[size] // 2):
        if n < size:
            value = np.float64(graph.unary[first_label(graph, n) + x[n]])
        else:
            edge = n - size
            value = cost(graph, edge, x[graph.edges[2 * edge]], x[graph.edges[2 * edge + 1]])
        if value >= graph.big:
            forbidden += 1
            continue
        total, carried = add_exactly(total, carried, value)
    return total + carried, forbidden


@kernel
def join_differing(x, y, graph, numbers):
    """Number the connected components of the sites where two labellings differ; -1 elsewhere. Returns how many."""
    for i in range(len(x)):
        root = -1
        if x[i] != y[i]:
            for k in range(graph.starts[i], graph.starts[i + 1]):
                j = graph.beside[k]
                if j < i and numbers[j] >= 0:
                    root, _ = join(numbers, root, j)
            if root < 0:
                root = i
        numbers[i] = root
    return number_roots(numbers)


@kernel
def component_changes(x, y, graph, numbers, finite, forbidden):
    """Add up what each component changes: an edge belongs to the component of whichever end differs."""
    for i in range(len(x)):
        if numbers[i] < 0:
            continue
        at = first_label(graph, i)
        before, after = np.float64(graph.unary[at + x[i]]), np.float64(graph.unary[at + y[i]])
        add_change(before, after, numbers[i], graph.big, finite, forbidden)
        for k in range(graph.starts[i], graph.starts[i + 1]):
            j = graph.beside[k]
            if numbers[j] >= 0 and j < i:
                continue
            link = graph.links[k]
            before, after = link_cost(graph, link, x[i], x[j]), link_cost(graph, link, y[i], y[j])
            add_change(before, after, numbers[i], graph.big, finite, forbidden)
