"""Alpha-expansion by other libraries, on treefield's models: what its users would else run.

Each function returns the labelling, its energy by treefield's own count and the seconds of the library's call alone
(imports and the change of dtype left out), started and stopped as the library does by default; None, with a word, where
the library is not installed. A model that the library cannot take is refused: expansion needs a metric, and gco ends
the whole process where it meets what it does not like.
"""

import importlib
import importlib.metadata

import numpy as np

from treefield.paper.expansion import alpha_expansion, edge_weights, metric, timed, whole

LARGEST_IN_GCO = 10**7  # a greater cost makes it abort


def pymaxflow_expansion(mrf):
    """PyMaxflow, for a metric shared by all edges."""
    if imported("maxflow", "PyMaxflow") is None:
        return None
    return alpha_expansion(mrf)


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
    arrays = [array.astype(np.int32) for array in arrays]
    return timed(lambda: gco.cut_grid_graph(*arrays), mrf)


PEERS = {"PyMaxflow": pymaxflow_expansion, "gco-wrapper": gco_expansion}


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
