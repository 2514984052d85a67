"""Small and narrow grids as graphs: exact search by elimination, one site after the other."""

from __future__ import annotations

import math

import numpy as np

from treefield.backends.graph.backend import GraphBackend
from treefield.backends.graph.edges import own_edges, shared_edges
from treefield.backends.graph.elimination import eliminate_in_order
from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.schedules import cross_shape

_LARGEST = 2.0**22  # entries of one table


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


def eliminate_grid(costs: GridCosts, max_entries: float) -> np.ndarray | None:
    """The labelling of least energy; None if its tables would have more than `max_entries` entries in all."""
    axis = min(range(len(costs.shape)), key=lambda axis: _profile_size(costs, axis))
    entries = float(costs.n_labels) ** min(_profile_size(costs, axis) + 1, 60)
    if entries > _LARGEST or entries * costs.size > max_entries:
        return None
    sites = np.moveaxis(np.arange(costs.size).reshape(costs.shape), axis, 0)
    return eliminate_in_order(graph_of(costs), sites.reshape(-1).tolist()).reshape(costs.shape)


def _profile_size(costs: GridCosts, axis: int) -> int:
    """How many neighbours a site can have when the sites are eliminated one slice across an axis after the other."""
    across = cross_shape(costs.shape, axis)
    closed = 2 if costs.periodic[axis] else 1  # the first slice is eliminated last
    ahead = math.prod(across[1:]) + 2 if costs.lattice.connectivity > 1 else 0  # a line of the next slice
    return closed * math.prod(across) + ahead
