"""Graph models from NetworkX graphs and SciPy sparse matrices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from treefield.validation import as_real_array

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

    from treefield.models.graph import EdgeCosts

NodeCosts = str | Mapping[Hashable, ArrayLike] | Callable[[Hashable], ArrayLike] | ArrayLike | Sequence[ArrayLike]
NodeEdge = tuple[Hashable, Hashable, Mapping[str, object]]  # the two nodes, and the edge's attributes

_ROUNDING = 1e-12  # relative: two weights that differ by less are one


class FromGraphs:
    """Constructors of `GraphMRF` from other libraries."""

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph,
        unary: NodeCosts = "unary",
        pairwise: str | EdgeCosts = "pairwise",
        *,
        weight: str | None = "weight",
        offset: float = 0.0,
    ) -> Self:
        """The model of a NetworkX graph; site i is ``list(graph)[i]``.

        So ``dict(zip(graph, x))`` gives the label of each node.

        Parameters
        ----------
        graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
            Nodes of any name. An edge of a directed graph goes as written, one of an undirected graph from the node
            that comes first in ``graph.nodes``. Parallel edges are merged.
        unary : str, dict, function or array
            The costs of each node's labels: the name of a node attribute that holds them, a dict from nodes to them, a
            function of a node, or `unaries` as in `GraphMRF`, in the order of ``graph.nodes``.
        pairwise : str, Potts, table, ...
            The name of an edge attribute that holds a table [first label, second label], or a cost for all edges as in
            `GraphMRF`.
        weight : str or None
            The name of an edge attribute, a factor of the edge's cost; 1 where an edge has none. None: no factors.

        Examples
        --------
        >>> import networkx as nx, treefield as tf
        >>> graph = nx.Graph()
        >>> graph.add_weighted_edges_from([("a", "b", 2), ("b", "c", 1)])
        >>> mrf = tf.GraphMRF.from_networkx(graph, {"a": [0, 3], "b": [1, 0], "c": [5, 0]}, tf.Potts(1))
        >>> {node: int(label) for node, label in zip(graph, tf.t_icm(mrf, rng=0).x)}
        {'a': 0, 'b': 0, 'c': 1}
        """
        unaries, edges, costs, weights = _read_networkx(graph, unary, pairwise, weight)
        model: Any = cls
        return model(unaries, edges, costs, weights=weights, offset=offset)

    @classmethod
    def from_scipy_sparse(
        cls,
        matrix: scipy.sparse.sparray | scipy.sparse.spmatrix,
        unaries: ArrayLike | Sequence[ArrayLike],
        pairwise: EdgeCosts,
        *,
        offset: float = 0.0,
    ) -> Self:
        """The model of an adjacency matrix (n, n) of edge weights, a sparse array or matrix of SciPy.

        A symmetric matrix gives each edge once, from the lower site to the higher; a triangle, upper or lower, gives
        edges from row to column. Any other matrix is refused: ``triu(matrix + matrix.T, 1)`` adds both directions.
        Stored zeros are no edges, the diagonal holds edges from sites to themselves. `unaries`, `pairwise` and `offset`
        are those of `GraphMRF`.

        Examples
        --------
        >>> import scipy.sparse, treefield as tf
        >>> weights = scipy.sparse.coo_array(([2, 2, 1, 1], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
        >>> mrf = tf.GraphMRF.from_scipy_sparse(weights, [[0, 3], [1, 0], [5, 0]], tf.Potts(1))
        >>> mrf.edges.tolist(), mrf.weights.tolist()
        ([[0, 1], [1, 2]], [2.0, 1.0])
        """
        edges, weights = _read_sparse(matrix, unaries)
        model: Any = cls
        return model(unaries, edges, pairwise, weights=weights, offset=offset)


def _read_networkx(
    graph: networkx.Graph, unary: NodeCosts, pairwise: str | EdgeCosts, weight: object
) -> tuple[ArrayLike | Sequence[ArrayLike], np.ndarray, EdgeCosts, np.ndarray | None]:
    """Unaries, edges, pairwise and weights for a `GraphMRF`, from a NetworkX graph; site i is ``list(graph)[i]``."""
    if isinstance(graph, type) or not all(hasattr(graph, name) for name in ("nodes", "edges", "is_multigraph")):
        raise TypeError(f"graph must be a networkx graph, got {type(graph).__name__}")
    if weight is not None and not isinstance(weight, str):
        raise TypeError(f"weight must be the name of an edge attribute, or None for no weights, got {weight!r}")
    sites = {node: site for site, node in enumerate(graph.nodes)}
    if not sites:
        raise ValueError("graph has no nodes; a model needs at least one site")
    edges = list(graph.edges(data=True))
    ends = np.array([(sites[u], sites[v]) for u, v, _ in edges], np.int64).reshape(-1, 2)
    if isinstance(pairwise, str):
        tables = [
            as_real_array(_attribute(data, pairwise, u, v), f"{pairwise!r} of edge {u!r}, {v!r}")
            for u, v, data in edges
        ]
        for (u, v, _), table in zip(edges, tables, strict=True):
            _check_table(table, pairwise, u, v)
        pairwise = tables if tables else np.zeros((0, 1, 1))
    elif isinstance(pairwise, Mapping):
        raise TypeError(
            "pairwise must be a cost for all edges, the name of an edge attribute that holds a table, or a list with a "
            "table for each of graph.edges; a dict goes into the graph: nx.set_edge_attributes(graph, tables, name)"
        )
    return _networkx_unaries(graph, unary), ends, pairwise, _networkx_weights(edges, weight)


def _networkx_unaries(graph: networkx.Graph, unary: NodeCosts) -> ArrayLike | Sequence[ArrayLike]:
    of: Mapping[Hashable, ArrayLike]
    if isinstance(unary, str):
        nodes = dict(graph.nodes(data=True))
        lacking = [node for node, data in nodes.items() if unary not in data]
        where, of = f"attribute {unary!r}", {node: data.get(unary) for node, data in nodes.items()}
    elif isinstance(unary, Mapping):
        lacking = [node for node in graph.nodes if node not in unary]
        where, of = "entry in unary", unary
    elif callable(unary) and not isinstance(unary, type):
        lacking, where, of = [], "", {node: unary(node) for node in graph.nodes}
    elif isinstance(unary, type):
        raise TypeError(f"unary must give costs for each of the graph's nodes, got the class {unary.__name__}")
    else:  # arrays, in the order of the nodes
        rows = len(unary) if isinstance(unary, Sized) else -1
        if rows != len(graph.nodes):
            came = f"{rows} rows" if rows >= 0 else f"a {type(unary).__name__}"
            raise ValueError(f"unary must give costs for each of the graph's {len(graph.nodes)} nodes, got {came}")
        return unary
    if lacking:
        more = f" (nor have {len(lacking) - 1} others)" if len(lacking) > 1 else ""
        raise ValueError(f"node {lacking[0]!r} has no {where}{more}; unary must give the costs of every node's labels")
    costs = [as_real_array(of[node], f"unary of node {node!r}") for node in graph.nodes]
    for node, array in zip(graph.nodes, costs, strict=True):
        if array.ndim != 1 or not array.size:
            raise ValueError(f"unary of node {node!r} must be the costs of its labels, got shape {array.shape}")
        if np.isnan(array).any():
            raise ValueError(f"unary of node {node!r} holds NaN; every cost must be a number (+inf forbids a label)")
    return costs


def _networkx_weights(edges: list[NodeEdge], weight: str | None) -> np.ndarray | None:
    if weight is None:
        return None
    weights = np.ones(len(edges))
    for number, (u, v, data) in enumerate(edges):
        value = as_real_array(data.get(weight, 1), f"{weight!r} of edge {u!r}, {v!r}")
        if value.ndim or not np.isfinite(value):
            given = f"shape {value.shape}" if value.ndim else str(value)
            raise ValueError(f"{weight!r} of edge {u!r}, {v!r} must be a finite number, got {given}")
        weights[number] = value
    return weights


def _attribute(data: Mapping[str, object], name: str, u: Hashable, v: Hashable) -> object:
    if name not in data:
        raise ValueError(f"edge {u!r}, {v!r} has no attribute {name!r}; pairwise names the table of every edge")
    return data[name]


def _check_table(table: np.ndarray, name: str, u: Hashable, v: Hashable) -> None:
    if table.ndim != 2:
        hint = f'; for one cost and weights give pairwise=Potts(1), weight="{name}"' if table.ndim == 0 else ""
        raise ValueError(
            f"{name!r} of edge {u!r}, {v!r} must be a table (labels, labels), got shape {table.shape}{hint}"
        )


def _read_sparse(
    matrix: scipy.sparse.sparray | scipy.sparse.spmatrix, unaries: ArrayLike | Sequence[ArrayLike]
) -> tuple[np.ndarray, np.ndarray]:
    """The edges and weights of an adjacency matrix, symmetric or one triangle, row by row."""
    if isinstance(matrix, type) or not hasattr(matrix, "tocoo"):
        raise TypeError(f"matrix must be a scipy.sparse array, such as coo_array(matrix), got {type(matrix).__name__}")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix has shape {matrix.shape}, expected (sites, sites)")
    is_scalar = isinstance(unaries, np.ndarray) and not unaries.ndim  # it has a __len__, which raises
    sites = len(unaries) if isinstance(unaries, Sized) and not is_scalar else matrix.shape[0]
    if matrix.shape[0] != sites:
        raise ValueError(f"matrix has shape {matrix.shape}, expected {(sites, sites)}: unaries has {sites} sites")
    if matrix.dtype.kind not in "buif":
        raise TypeError(f"matrix must hold real numbers, got dtype {matrix.dtype}")
    entries = matrix.astype(np.float64).tocsr(copy=True)
    entries.sum_duplicates()
    if not np.isfinite(entries.data).all():
        raise ValueError("matrix holds NaN or infinity; weights must be finite")
    entries.eliminate_zeros()
    coo = entries.tocoo()
    row, column, weights = coo.row.astype(np.int64), coo.col.astype(np.int64), coo.data
    upper, lower = row < column, row > column
    kept = np.ones(len(row), bool)
    if upper.any() and lower.any():
        _check_symmetric(row, column, weights, upper, lower)
        kept = ~lower
    order = np.lexsort((column[kept], row[kept]))
    return np.stack([row[kept], column[kept]], axis=1)[order], weights[kept][order]


def _check_symmetric(
    row: np.ndarray, column: np.ndarray, weights: np.ndarray, upper: np.ndarray, lower: np.ndarray
) -> None:
    """Refuse two triangles that differ: whether an edge is the one, the other or the sum is not ours to guess."""
    there = np.lexsort((column[upper], row[upper]))
    back = np.lexsort((row[lower], column[lower]))
    same_places = len(there) == len(back) and bool(
        np.array_equal(row[upper][there], column[lower][back])
        and np.array_equal(column[upper][there], row[lower][back])
    )
    if same_places:
        first, second = weights[upper][there], weights[lower][back]
        if bool((np.abs(first - second) <= _ROUNDING * np.maximum(np.abs(first), np.abs(second))).all()):
            return
    raise ValueError(
        "matrix is neither symmetric nor triangular: give one triangle, scipy.sparse.triu(matrix), or the sum of both, "
        "scipy.sparse.triu(matrix + matrix.T, 1)"
    )
