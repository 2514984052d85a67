"""Graph models among the .npz files of `treefield.io.models.npz_models`.

- `edges`: (m, 2), the sites of each edge; it tells that the file is a graph's;
- `unary`: (n, L); or all sites' costs one after the other, and `label_counts`, (n,), how many are each site's;
- one of
  - `potts`, `linear`, `quadratic` (and `values`), `table`: as for grids, `table` (La, Lb);
  - `tables`: (m, La, Lb); or all edges' tables one after the other, each [label of the first site][of the second];
- optionally `weights`: (m,), a factor for each edge; `offset`: a constant; `auxiliary`: how many of the last sites
  stand for costs of three and more sites.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treefield.models.graph import GraphMRF
from treefield.models.pairwise import Pairwise, Table

GRAPH_ONLY = ("edges", "label_counts", "tables", "weights", "offset", "auxiliary")


def graph_arrays(mrf: GraphMRF, pairwise_arrays: Callable[[Pairwise], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays of a graph's file."""
    arrays = {"edges": mrf.edges}
    unaries = mrf.unaries
    if (mrf.label_counts == mrf.n_labels).all():
        arrays["unary"] = np.array(unaries)
    else:
        arrays |= {"unary": np.concatenate(unaries), "label_counts": mrf.label_counts}
    if mrf.pairwise is None or len(mrf.edges) == 0:
        tables = [mrf.edge_costs(edge).reshape(-1) for edge in range(len(mrf.edges))]
        arrays["tables"] = np.concatenate(tables) if tables else np.zeros(0)
    else:
        arrays |= _shared(mrf.pairwise, np.asarray(mrf.weights), pairwise_arrays)
    if mrf.offset:
        arrays["offset"] = np.array(mrf.offset)
    if mrf.auxiliary:
        arrays["auxiliary"] = np.array(mrf.auxiliary)
    return arrays


def _shared(pairwise: Pairwise, weights: np.ndarray, pairwise_arrays: Callable) -> dict[str, np.ndarray]:
    """A shared cost and the weights of the edges."""
    arrays = {"table": pairwise.V} if isinstance(pairwise, Table) else pairwise_arrays(pairwise)
    return arrays if (weights == 1).all() else {**arrays, "weights": weights}


def graph_in(arrays: dict[str, np.ndarray], pairwise: Pairwise | None) -> GraphMRF:
    """The graph of a file's arrays; `pairwise` is the cost that all edges share."""
    edges, unary = arrays["edges"], arrays["unary"]
    if edges.dtype.kind not in "ui" or edges.ndim != 2 or edges.shape[1] != 2:
        raise ValueError(f"edges has shape {edges.shape} and dtype {edges.dtype}, expected (m, 2) integers")
    unaries: Any = unary
    counts = np.full(len(unary), unary.shape[-1])
    if "label_counts" in arrays:
        counts = arrays["label_counts"]
        if counts.ndim != 1 or counts.dtype.kind not in "ui" or counts.size == 0 or counts.min() < 1:
            raise ValueError("label_counts must be the number of labels of each site, at least 1")
        if unary.shape != (int(counts.sum(dtype=object)),):
            raise ValueError(f"unary has shape {unary.shape}, but label_counts add up to {counts.sum()}")
        unaries = np.split(unary, np.cumsum(counts)[:-1])
    elif unary.ndim != 2:
        raise ValueError(f"unary has shape {unary.shape}, expected (sites, labels), or a list and label_counts")
    costs: Any = _split(arrays["tables"], edges, counts) if pairwise is None else pairwise
    weights = arrays.get("weights")
    offset = _as_scalar(arrays, "offset", "uif", 0.0)
    auxiliary = _as_scalar(arrays, "auxiliary", "ui", 0)
    if not 0 <= auxiliary < max(1, len(counts)):
        raise ValueError(f"auxiliary is {auxiliary}, but there are {len(counts)} sites")
    mrf = GraphMRF(unaries, edges.astype(np.int64), costs, weights=weights, offset=float(offset))
    if auxiliary:
        mrf.auxiliary = int(auxiliary)
    return mrf


def _split(tables: np.ndarray, edges: np.ndarray, counts: np.ndarray) -> Any:
    """Each edge's table."""
    if tables.ndim == 3:
        return tables
    if edges.size and not 0 <= edges.min() <= edges.max() < len(counts):
        raise ValueError(f"edges name sites {edges.min()} to {edges.max()}, but there are {len(counts)}")
    shapes = counts[edges.astype(np.int64)].astype(np.int64).reshape(-1, 2)
    if tables.shape != (sum((shapes[:, 0] * shapes[:, 1]).tolist()),):
        raise ValueError(f"tables has shape {tables.shape}, which does not match the edges' numbers of labels")
    ends = np.cumsum(shapes[:, 0] * shapes[:, 1])
    parts = np.split(tables, ends[:-1]) if len(shapes) else []
    return [part.reshape(shape) for part, shape in zip(parts, shapes.tolist(), strict=True)]


def _as_scalar(arrays: dict[str, np.ndarray], name: str, kinds: str, default: Any) -> Any:
    value = arrays.get(name)
    if value is None:
        return default
    if value.ndim or value.dtype.kind not in kinds:
        raise ValueError(f"{name} has shape {value.shape} and dtype {value.dtype}, expected a number")
    return value[()]
