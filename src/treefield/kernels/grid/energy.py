"""A grid in the layout of the kernels: shapes, strides and edges as flat arrays; and the energy of a labelling.

The edges of all axes are numbered one after the other, axis by axis, each axis in the raster order of its first sites.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.rules.rule import edge_cost
from treefield.kernels.simd.jit import helper, inline_helper, kernel
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    cast,
    int_to_mask,
    lane,
    lane_numbers,
    load,
    mask_to_int,
    minimum,
    reduce_sum,
    where,
)


class Grid(NamedTuple):
    """Shapes, strides and edge weights of a grid, as flat arrays.

    `shape` and site `strides` are per axis; `edge_offsets` per axis and `edge_strides` [axis][axis] give an edge's
    number from its first site.

    `weights` has one weight per edge, or (`uniform`) one per axis.
    """

    shape: np.ndarray
    strides: np.ndarray
    edge_offsets: np.ndarray
    edge_strides: np.ndarray
    weights: np.ndarray
    uniform: bool


@helper
def neighbour(grid, site, direction):
    """The site next to `site` in a direction, and their edge; (-1, 0) beyond the border.

    Direction 2 a is before the site along axis a, 2 a + 1 after it.
    """
    axis = direction // 2
    number = grid.edge_offsets[axis]
    for a in range(len(grid.shape)):
        coordinate = site // grid.strides[a] % grid.shape[a]
        if a == axis:
            if direction % 2 == 0:
                coordinate -= 1
            if coordinate < 0 or coordinate >= grid.shape[a] - 1:
                return -1, 0
        number += coordinate * grid.edge_strides[axis * len(grid.shape) + a]
    return site + (grid.strides[axis] if direction % 2 == 1 else -grid.strides[axis]), number


@inline_helper
def edge_weight(grid, axis, number):
    """The weight of an edge along `axis`."""
    return grid.weights[axis if grid.uniform else number]


@kernel
def unary_energy(x, unary, labels, forbidden_cost):
    """The finite part of the unary costs of a labelling, in float64, and the number of forbidden ones.

    Forbidden costs are those of at least `forbidden_cost`.
    """
    total = 0.0
    forbidden = 0
    for i in range(len(x)):
        cost = np.float64(unary[i * labels + x[i]])
        if cost >= forbidden_cost:
            forbidden += 1
        else:
            total += cost
    return total, forbidden


@inline_helper
def fetch(array, i, count, otherwise, work):
    """The eight values of a flat array from `i` on; `otherwise` beyond `count` of them, which may lie outside."""
    if count >= LANES:
        return load(array, i)
    for k in range(LANES):
        work[k] = array[i + k] if k < count else otherwise
    return load(work, 0)


@inline_helper
def fetch_weights(grid, axis, number, count, work):
    """The weights of eight edges along an axis, from `number` on, in float64; 0 beyond `count` of them."""
    if grid.uniform:
        inside = int_to_mask((np.int64(1) << min(count, LANES)) - 1)
        return where(inside, broadcast(np.float64(grid.weights[axis])), broadcast(0.0))
    return cast(fetch(grid.weights, number, count, grid.weights.dtype.type(0), work), np.float64)


@inline_helper
def edge_numbers(number, count):
    """The numbers of eight edges that follow each other; beyond `count` of them, which may not exist, the last one."""
    return broadcast(number) + cast(minimum(lane_numbers(), broadcast(np.int32(min(count, LANES) - 1))), np.int64)


@kernel
def pairwise_energy(x, labels, grid, kind, forbidden_cost, work, weights):
    """The finite part of the pairwise costs of a labelling, in float64, and the number of forbidden ones.

    `work` (int32) and `weights` (of the dtype of the grid's) are workspace for eight values. O(1) per edge.
    """
    total = 0.0
    forbidden = 0
    number = 0
    for axis in range(len(grid.shape)):
        stride = grid.strides[axis]
        run = (grid.shape[axis] - 1) * stride  # edges whose first sites follow each other
        for start in range(0, len(x), run + stride):
            for i in range(start, start + run, LANES):
                count = start + run - i
                a, b = fetch(x, i, count, 0, work), fetch(x, i + stride, count, 0, work)
                weight = fetch_weights(grid, axis, number + i - start, count, weights)
                cost = edge_cost(kind, weight, edge_numbers(number + i - start, count), a, b, labels)
                if mask_to_int(broadcast(forbidden_cost) <= cost) == 0:
                    total += reduce_sum(cost)
                    continue
                for k in range(LANES):
                    if lane(cost, k) >= forbidden_cost:
                        forbidden += 1
                    else:
                        total += lane(cost, k)
            number += run
    return total, forbidden
