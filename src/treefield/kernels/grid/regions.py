"""Regions of a labelling, for jumps: boxes of sites, and segments (connected sites of one label).

Boxes are rows [low, high) of three axes each; a 2-D grid is taken as one plane of a 3-D one.
"""

import numpy as np

from treefield.kernels.grid.components import rows_before
from treefield.kernels.grid.energy import edge_weight
from treefield.kernels.rules.rule import edge_cost
from treefield.kernels.shared.union_find import join, number_roots
from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import LANES, broadcast, cast, lane_numbers, load, minimum, store
from treefield.kernels.simd.random import below, bits64


@inline_helper
def _fill(y, shape, low, high, box, label):
    for a in range(low[box * 3], high[box * 3]):
        for b in range(low[box * 3 + 1], high[box * 3 + 1]):
            row = (a * shape[1] + b) * shape[2]
            for c in range(low[box * 3 + 2], high[box * 3 + 2]):
                y[row + c] = label


@kernel
def fill_boxes(y, shape, low, high, labels):
    """Set each box to its label. O(1) per site."""
    for box in range(len(labels)):
        _fill(y, shape, low, high, box, labels[box])


@kernel
def scramble_boxes(y, shape, low, high, labels, seed):
    """Set every site of the boxes to a random label. O(1) per site."""
    for box in range(len(low) // 3):
        for a in range(low[box * 3], high[box * 3]):
            for b in range(low[box * 3 + 1], high[box * 3 + 1]):
                row = (a * shape[1] + b) * shape[2]
                for c in range(low[box * 3 + 2], high[box * 3 + 2]):
                    y[row + c] = below(labels, seed, row + c)


@inline_helper
def _add_unary(unary, labels, forbidden_cost, shape, low, high, box, costs):
    at = box * 3
    for a in range(low[at], high[at]):
        for b in range(low[at + 1], high[at + 1]):
            row = (a * shape[1] + b) * shape[2]
            first, last = (row + low[at + 2]) * labels, (row + high[at + 2]) * labels
            for s in range(0, labels - labels % LANES, LANES):
                total = load(costs, s)
                for i in range(first + s, last, labels):
                    total += minimum(cast(load(unary, i), np.float64), broadcast(forbidden_cost))
                store(costs, s, total)
            for s in range(labels - labels % LANES, labels):
                for i in range(first + s, last, labels):
                    costs[s] += min(np.float64(unary[i]), forbidden_cost)


@inline_helper
def _add_edge(kind, weight, edge, neighbour_label, outside, costs, labels):
    """Add an edge to the cost of every label of the box.

    `outside` says which of its ends is not in the box and has the `neighbour_label`: 0 the first, 1 the second, 2 none.
    """
    for s in range(0, labels, LANES):
        own = minimum(broadcast(np.int32(s)) + lane_numbers(), broadcast(np.int32(labels - 1)))
        first = broadcast(np.int32(neighbour_label)) if outside == 0 else own
        second = broadcast(np.int32(neighbour_label)) if outside == 1 else own
        store(
            costs,
            s,
            load(costs, s) + edge_cost(kind, broadcast(np.float64(weight)), broadcast(edge), first, second, labels),
        )


@inline_helper
def _add_edges_along(y, grid, kind, each, axis, low, high, box, coordinate, outside, costs, sums, labels):
    """Add the edges along `axis` whose first site has that `coordinate` and is otherwise in the box.

    If `each`, they are added one by one to `costs`; if not, their weights to `sums`, by `outside` and the label there.
    """
    at, skipped = box * 3, 3 - len(grid.shape)  # a 2-D grid lacks the first axis
    stride = grid.strides[axis]
    box_axis = axis + skipped
    low0, high0 = (coordinate, coordinate + 1) if box_axis == 0 else (low[at], high[at])
    low1, high1 = (coordinate, coordinate + 1) if box_axis == 1 else (low[at + 1], high[at + 1])
    low2, high2 = (coordinate, coordinate + 1) if box_axis == 2 else (low[at + 2], high[at + 2])
    last = len(grid.shape) - 1
    row = axis * len(grid.shape)
    for a in range(low0, high0):
        for b in range(low1, high1):
            site = b * grid.strides[last - 1]
            edge = grid.edge_offsets[axis] + b * grid.edge_strides[row + last - 1]
            if skipped == 0:
                site += a * grid.strides[0]
                edge += a * grid.edge_strides[row]
            for c in range(low2, high2):
                neighbour_label = 0
                if outside < 2:
                    neighbour_label = y[site + c + (stride if outside == 1 else 0)]
                weight = edge_weight(grid, axis, edge + c)
                if each:
                    _add_edge(kind, weight, edge + c, neighbour_label, outside, costs, labels)
                else:
                    sums[outside * labels + neighbour_label] += weight


@kernel
def best_boxes(y, unary, labels, grid, kind, forbidden_cost, each, diagonal, shape, low, high, costs, sums):
    """Set each box in turn to the constant label that costs least there, given the labels around it.

    `costs` is workspace for the labels and eight more, `sums` for three times the labels: weights of edges are summed
    by the label outside, unless `each` edge has its own table. Without `diagonal` equal labels cost nothing together,
    and edges within the box are skipped. About O(L) per site.
    """
    for box in range(len(low) // 3):
        for s in range(len(costs)):
            costs[s] = 0.0
        for s in range(len(sums)):
            sums[s] = 0.0
        _add_unary(unary, labels, forbidden_cost, shape, low, high, box, costs)
        for axis in range(len(grid.shape)):
            at = box * 3 + 3 - len(grid.shape) + axis
            for coordinate in range(max(low[at] - 1, 0), min(high[at], grid.shape[axis] - 1)):
                outside = 0 if coordinate < low[at] else (1 if coordinate == high[at] - 1 else 2)
                if outside == 2 and not diagonal:
                    continue
                _add_edges_along(y, grid, kind, each, axis, low, high, box, coordinate, outside, costs, sums, labels)
        for s in range(len(sums)):
            if sums[s] != 0:
                _add_edge(kind, sums[s], 0, s % labels, s // labels, costs, labels)
        best = 0
        for s in range(1, labels):
            if costs[s] < costs[best]:
                best = s
        _fill(y, shape, low, high, box, best)


@kernel
def label_segments(x, shape, strides, numbers):
    """Number the segments of a flat labelling: connected sites of one label. Returns how many. About O(1) per site."""
    width = shape[len(shape) - 1]
    for start in range(0, len(x), width):
        above, behind = rows_before(shape, strides, start // width)
        root = -1
        for i in range(start, start + width):
            continues_left = i > start and x[i] == x[i - 1]
            if not continues_left:
                root = -1
            # where the sites before both are joined already, so are these
            if above > 0 and x[i] == x[i - above] and not (continues_left and x[i] == x[i - above - 1]):
                root, _ = join(numbers, root, i - above)
            if behind > 0 and x[i] == x[i - behind] and not (continues_left and x[i] == x[i - behind - 1]):
                root, _ = join(numbers, root, i - behind)
            if root < 0:
                root = i
            numbers[i] = root
    return number_roots(numbers)


@kernel
def describe_segments(x, numbers, sizes, labels):
    """The number of sites of each segment (`sizes` starts at 0), and its label. O(1) per site."""
    for i in range(len(numbers)):
        sizes[numbers[i]] += 1
        labels[numbers[i]] = x[i]


@kernel
def labels_across(x, strides, shape, numbers, seed, keys, across):
    """For each segment the label across a random edge of its border; `across` is left unchanged where there is none.

    `keys` [segment], zeros, is workspace: the edge of the greatest random key wins. O(directions) per site.
    """
    for axis in range(len(shape)):
        stride = strides[axis]
        run = (shape[axis] - 1) * stride
        for start in range(0, len(x), run + stride):
            for i in range(start, start + run):
                if x[i] == x[i + stride]:
                    continue
                key = bits64(seed, i * len(shape) + axis)
                a, b = numbers[i], numbers[i + stride]
                if key > keys[a]:
                    keys[a] = key
                    across[a] = x[i + stride]
                if key > keys[b]:
                    keys[b] = key
                    across[b] = x[i]


@kernel
def relabel(y, numbers, labels):
    """Give each site the label of its segment. O(1) per site."""
    for i in range(len(y)):
        y[i] = labels[numbers[i]]
