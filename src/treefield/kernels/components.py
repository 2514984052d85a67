"""Two labellings differ on a set of sites: its connected components, and what each of them changes."""

import numpy as np

from treefield.kernels.grid import edge_weight
from treefield.kernels.jit import inlined, kernel
from treefield.kernels.lanes import LANES, lane, load
from treefield.kernels.rules import pair


@inlined
def _root(parents, i):
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i


@kernel
def label_components(x, y, shape, strides, numbers):
    """Number the connected components of the sites where flat labellings differ; -1 elsewhere. Returns how many.

    Neighbours along any axis are connected. The lowest site of a component comes first. About O(1) per site.
    """
    for i in range(len(x)):
        if x[i] == y[i]:
            numbers[i] = -1
            continue
        numbers[i] = i
        for axis in range(len(shape)):
            before = i - strides[axis]
            if i // strides[axis] % shape[axis] > 0 and numbers[before] >= 0:
                a, b = _root(numbers, before), _root(numbers, i)
                numbers[max(a, b)] = min(a, b)
    count = 0
    for i in range(len(x)):  # a root is the lowest site of its component: those before it are numbered already
        if numbers[i] == i:
            numbers[i] = -2 - count
            count += 1
        elif numbers[i] >= 0:
            root = numbers[i]
            while numbers[root] >= 0:
                root = numbers[root]
            numbers[i] = numbers[root]
    for i in range(len(x)):
        if numbers[i] < -1:
            numbers[i] = -2 - numbers[i]
    return count


@inlined
def _add(cost, sign, number, big, finite, forbidden):
    if cost >= big:
        forbidden[number] += sign
    else:
        finite[number] += sign * cost


@kernel
def unary_changes(x, y, unary, labels, numbers, big, finite, forbidden):
    """Add to each component's `finite` and `forbidden` what going from x to y changes in its unary costs."""
    for i in range(len(x)):
        number = numbers[i]
        if number < 0:
            continue
        _add(np.float64(unary[i * labels + x[i]]), -1, number, big, finite, forbidden)
        _add(np.float64(unary[i * labels + y[i]]), 1, number, big, finite, forbidden)


@kernel
def pairwise_changes(x, y, labels, grid, kind, numbers, big, finite, forbidden, labels_of, weights, edges, owners):
    """The same for the pairwise costs: an edge belongs to the component of whichever end differs.

    `labels_of` (x and y at both ends), `weights`, `edges` and `owners` are work space for eight edges.
    """
    number = 0
    for axis in range(len(grid.shape)):
        stride = grid.strides[axis]
        run = (grid.shape[axis] - 1) * stride  # edges whose first sites follow each other
        for start in range(0, len(x), run + stride):
            filled = 0
            for i in range(start, start + run):
                owner = max(numbers[i], numbers[i + stride])
                if owner >= 0:
                    labels_of[filled] = x[i]
                    labels_of[LANES + filled] = x[i + stride]
                    labels_of[2 * LANES + filled] = y[i]
                    labels_of[3 * LANES + filled] = y[i + stride]
                    weights[filled] = edge_weight(grid, axis, number + i - start)
                    edges[filled] = number + i - start
                    owners[filled] = owner
                    filled += 1
                if filled == LANES or (filled > 0 and i == start + run - 1):
                    weight, edge = load(weights, 0), load(edges, 0)
                    before = pair(kind, weight, edge, load(labels_of, 0), load(labels_of, LANES), labels)
                    after = pair(kind, weight, edge, load(labels_of, 2 * LANES), load(labels_of, 3 * LANES), labels)
                    for k in range(filled):
                        _add(lane(before, k), -1, owners[k], big, finite, forbidden)
                        _add(lane(after, k), 1, owners[k], big, finite, forbidden)
                    filled = 0
            number += run
