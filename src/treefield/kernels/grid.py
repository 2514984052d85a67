"""What a grid is to a kernel: shapes, strides and edges as flat arrays; and the energy of a labelling on it.

The edges of all axes are numbered one after the other, axis by axis, each axis in the raster order of its first sites.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.jit import called, inlined, kernel
from treefield.kernels.lanes import LANES, lane, load
from treefield.kernels.rules import pair


class Grid(NamedTuple):
    """`shape` and site `strides` per axis; `edge_offsets` per axis and `edge_strides` [axis][axis] give an edge's
    number from its first site.

    `weights` has one weight per edge, or (`uniform`) one per axis.
    """

    shape: np.ndarray
    strides: np.ndarray
    edge_offsets: np.ndarray
    edge_strides: np.ndarray
    weights: np.ndarray
    uniform: bool


@called
def neighbour(grid, site, direction):
    """The site next to `site` in a direction (2 a: before it along axis a, 2 a + 1: after it), and their edge; (-1, 0)
    beyond the border."""
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


@inlined
def edge_weight(grid, axis, number):
    """The weight of an edge along `axis`."""
    return grid.weights[axis if grid.uniform else number]


@kernel
def unary_energy(x, unary, labels, big):
    """The finite part of the unary costs of a labelling, in float64, and the number of forbidden ones (of at least
    `big`)."""
    total = 0.0
    forbidden = 0
    for i in range(len(x)):
        cost = np.float64(unary[i * labels + x[i]])
        if cost >= big:
            forbidden += 1
        else:
            total += cost
    return total, forbidden


@kernel
def pairwise_energy(x, labels, grid, kind, big, a, b, weights, edges):
    """The same of the pairwise costs. `a`, `b`, `weights` and `edges` are work space for eight values each."""
    total = 0.0
    forbidden = 0
    number = 0
    for axis in range(len(grid.shape)):
        stride = grid.strides[axis]
        run = (grid.shape[axis] - 1) * stride  # edges whose first sites follow each other
        for start in range(0, len(x), run + stride):
            for i in range(start, start + run, LANES):
                for k in range(LANES):
                    inside = i + k < start + run
                    site = i + k if inside else i
                    a[k] = x[site]
                    b[k] = x[site + stride]
                    weights[k] = edge_weight(grid, axis, number + site - start) if inside else 0.0
                    edges[k] = number + site - start
                cost = pair(kind, load(weights, 0), load(edges, 0), load(a, 0), load(b, 0), labels)
                for k in range(LANES):
                    if lane(cost, k) >= big:
                        forbidden += 1
                    else:
                        total += lane(cost, k)
            number += run
    return total, forbidden
