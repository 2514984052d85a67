"""Small and narrow grids as graphs: exact search by elimination, one site after the other."""

from __future__ import annotations

import math

import numpy as np

from treefield.backends.graph.backend import GraphBackend
from treefield.backends.graph.edges import own_edges, shared_edges
from treefield.backends.graph.elimination import run_best_plan, sweeping_order
from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.schedules import cross_shape

_MOST_SITES = 2**14
_LARGEST = 30  # the binary logarithm of the labellings of a slice: beyond, no order will do
_SAVING = 3  # the binary logarithm of how much smaller the tables of the better order may be


def graph_of(costs: GridCosts) -> GraphBackend:
    """The graph of the same sites and edges."""
    sites, weights, tables = costs.graph_edges()
    counts = np.full(costs.size, costs.n_labels, np.int32)
    sites = np.ascontiguousarray(sites, np.int32)
    if tables is None:
        edges = shared_edges(sites, weights, costs.pairwise, counts)
    else:
        edges = own_edges(sites, weights, list(tables), counts)
    dtype = np.result_type(np.float32, costs.unary.dtype)
    unary = np.ascontiguousarray(costs.flat_unary, dtype)
    return GraphBackend(unary, counts, edges, shape=costs.shape)


def eliminate_grid(
    costs: GridCosts, max_entries: float, max_bytes: float = math.inf, threads: int = 1
) -> np.ndarray | None:
    """The labelling of least energy; None if the tables would have more entries, or take more memory, than that.

    The grid is swept slice by slice along its longest axis, or diagonally from a corner.
    """
    axis = min(range(len(costs.shape)), key=lambda axis: _profile_size(costs, axis))
    bits = _profile_size(costs, axis) * math.log2(max(costs.n_labels, 1))
    if costs.size > _MOST_SITES or bits > _LARGEST or costs.size * 2.0 ** (bits - _SAVING) > max_entries:
        return None
    slices = np.moveaxis(np.arange(costs.size).reshape(costs.shape), axis, 0).reshape(-1).tolist()
    graph = graph_of(costs)
    x = run_best_plan(graph, [slices, sweeping_order(graph)], max_entries, max_bytes, threads)
    return None if x is None else x.reshape(costs.shape)


def _profile_size(costs: GridCosts, axis: int) -> int:
    """How many neighbours most sites have when one slice across an axis is eliminated after the other."""
    across = cross_shape(costs.shape, axis)
    closed = 2 if costs.periodic[axis] and costs.shape[axis] > 2 else 1  # the first slice is eliminated last
    return min(closed * math.prod(across), costs.size - 1)
