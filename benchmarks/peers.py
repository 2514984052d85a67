"""Alpha-expansion by other libraries, on treefield's models: what its users would else run.

Each function returns the labelling, its energy by treefield's own count and the seconds of the library's call alone
(imports and the change of dtype left out), started and stopped as the library does by default; None, with a word, where
the library is not installed. A model that the library cannot take is refused: expansion needs a metric, and gco ends
the whole process where it meets what it does not like.
"""

import importlib
import importlib.metadata
import time

import numpy as np

from treefield.models.pairwise import edge_shape

LARGEST_IN_GCO = 10**7  # a greater cost makes it abort


def alpha_expansion(mrf):
    """PyMaxflow, for a metric shared by all edges."""
    maxflow = imported("maxflow", "PyMaxflow")
    if maxflow is None:
        return None
    weights = np.unique(np.concatenate([np.ravel(weight) for weight in edge_weights(mrf)]))
    if len(weights) != 1:
        raise ValueError(f"PyMaxflow gives all edges one weight, but the model has {len(weights)}")
    table = weights[0] * metric(mrf)
    dtype = np.int64 if whole(mrf.unary) and whole(table) else np.float64  # it knows no other; integers are faster
    return timed(maxflow.fastmin.aexpansion_grid, mrf, mrf.unary.astype(dtype), table.astype(dtype))


def gco_expansion(mrf):
    """gco-wrapper, for a metric and any whole edge weights on a 2-D grid. Whole costs only: it would round others."""
    gco = imported("gco", "gco-wrapper")
    if gco is None:
        return None
    if len(mrf.shape) != 2:
        raise ValueError(f"gco-wrapper takes 2-D grids, but the model's shape is {mrf.shape}")
    arrays = [mrf.unary, metric(mrf), *edge_weights(mrf)]
    if not all(whole(array) for array in arrays):
        raise ValueError("gco-wrapper would round the costs, which are no whole numbers; scale them")
    largest = max(np.abs(mrf.unary).max(), arrays[1].max() * max(weight.max(initial=0) for weight in arrays[2:]))
    if largest > LARGEST_IN_GCO:
        raise ValueError(f"gco-wrapper takes costs up to {LARGEST_IN_GCO}, but the largest is {largest:g}")
    return timed(gco.cut_grid_graph, mrf, *(array.astype(np.int32) for array in arrays))


PEERS = {"PyMaxflow": alpha_expansion, "gco-wrapper": gco_expansion}


def version(package):
    """A peer's version, to print beside what it found."""
    return importlib.metadata.version(package)


def imported(module, package):
    """The module, or None with a word if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        print(f"\nSkipped: {package} is not installed (pip install {package})")
        return None


def timed(solve, mrf, *arrays):
    """A peer's labelling, its energy and how long the peer took."""
    start = time.perf_counter()
    found = solve(*arrays)
    seconds = time.perf_counter() - start
    labelling = found.reshape(mrf.shape).astype(np.int32)
    return labelling, mrf.energy(labelling), seconds


def edge_weights(mrf):
    """The weight of every edge, an array per axis."""
    given = [1.0] * len(mrf.shape) if mrf.weights is None else mrf.weights
    weights = [np.broadcast_to(weight, edge_shape(mrf.shape, axis)) for axis, weight in enumerate(given)]
    if any((weight < 0).any() for weight in weights):
        raise ValueError("expansion needs weights of at least 0, but some are negative")
    return weights


def metric(mrf):
    """The pairwise cost as a table, its own weight included, if expansion can take it."""
    table = mrf.pairwise.weight * mrf.pairwise.table(mrf.labels)
    triangles = all((table <= table[:, [c]] + table[c]).all() for c in range(mrf.labels))
    if not (triangles and (table == table.T).all() and (table >= 0).all() and not np.diagonal(table).any()):
        raise ValueError(f"expansion needs a metric, which {mrf.pairwise} is not")
    return table


def whole(costs):
    """Whether all costs are integers."""
    return costs.dtype.kind in "ui" or bool(np.isfinite(costs).all() and (costs == np.rint(costs)).all())
