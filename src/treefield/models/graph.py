"""Graph models: sites with their own numbers of labels, joined by any edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from treefield.backends.graph.backend import GraphBackend
from treefield.backends.graph.edges import Edges, number_pairs, own_edges, shared_edges
from treefield.models.edge_weights import as_weights
from treefield.models.from_graphs import FromGraphs
from treefield.models.pairwise import Pairwise, Table, as_pairwise, check_no_nan
from treefield.validation import as_labelling, as_real_array, as_real_scalar, smallest_dtype

EdgeCosts = Pairwise | ArrayLike | Sequence[ArrayLike] | Sequence[Table] | Callable[[int, int], float]


class GraphMRF(FromGraphs):
    """A Markov random field on any graph.

    Each label of each site has a cost, and so has each pair of labels of two sites that an edge joins.

    Parameters
    ----------
    unaries : (n, L) array, or a list of n 1-D arrays
        The cost of each label at each site; in a list every site has its own number of labels. +inf forbids a label.
    edges : (m, 2) integer array
        The sites that each edge joins, from 0 on. Parallel edges are merged into one, an edge from a site to itself
        becomes part of its unary cost.
    pairwise : (La, Lb) array, (m, La, Lb) array, list of m 2-D arrays, Potts, TruncatedLinear, TruncatedQuadratic,
               Table or function
        The costs of an edge's two labels, [label of the first site, label of the second]: one table for all edges, or
        one for each. +inf forbids a pair. A function of two labels is tabulated.
    weights : (m,) array, optional
        A factor for each edge, of any sign. An edge of weight 0 is no edge.
    offset : float
        A constant that is added to every energy.

    Attributes
    ----------
    shape : ``(n,)``, the shape of a labelling.
    label_counts : the number of labels of each site.
    n_labels : the greatest of these.
    edges : (m, 2), the first and second site of each edge, merged.
    pairwise, weights : the pairwise cost and the weight of each edge; None where each edge has its own table, which
        `edge_costs` returns.
    offset : as given.
    auxiliary : how many of the last sites stand for costs of three or more sites, and are not sites of the problem.
    backend : what answers the questions of solvers and moves, a `treefield.protocols.Backend`.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GraphMRF([[0, 3], [2, 1, 4], [0, 0]], [(0, 1), (1, 2), (2, 0)], tf.Potts(5))
    >>> mrf
    GraphMRF(sites=3, edges=3, labels=2..3, pairwise=Potts(5))
    >>> mrf.energy([0, 0, 0]), mrf.energy([0, 2, 0])
    (2.0, 14.0)
    >>> tf.minimize(mrf).x
    array([0, 0, 0], dtype=int32)
    """

    auxiliary: int = 0

    def __init__(
        self,
        unaries: ArrayLike | Sequence[ArrayLike],
        edges: ArrayLike,
        pairwise: EdgeCosts,
        *,
        weights: ArrayLike | None = None,
        offset: float = 0.0,
    ) -> None:
        unary, self.label_counts = as_unaries(unaries)
        self.offset = as_real_scalar(offset, "offset")
        joined = as_edges(edges, pairwise, weights, self.label_counts)
        self.edges = joined.sites
        self.pairwise = cast(Pairwise | None, joined.shared)
        self.weights = joined.factors
        self.backend = GraphBackend(unary, self.label_counts, joined, offset=self.offset)

    def __repr__(self) -> str:
        least, most = int(self.label_counts.min()), self.n_labels
        labels = str(most) if least == most else f"{least}..{most}"
        pairwise = "tables of their own" if self.pairwise is None else f"{self.pairwise!r}"
        weights = "" if self.weights is None or bool(np.all(self.weights == 1)) else ", weighted"
        return f"GraphMRF(sites={self.size}, edges={len(self.edges)}, labels={labels}, pairwise={pairwise}{weights})"

    @property
    def size(self) -> int:
        """The number of sites."""
        return len(self.label_counts)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a labelling."""
        return (self.size,)

    @property
    def n_labels(self) -> int:
        """The largest number of labels of a site."""
        return self.backend.n_labels

    @property
    def unaries(self) -> list[np.ndarray]:
        """The cost of each label, a float64 array for each site; +inf where forbidden."""
        return self.backend.unaries

    def edge_costs(self, edge: int) -> np.ndarray:
        """The costs of an edge, weight included: float64, [label of the first site, label of the second]."""
        return self.backend.edge_costs(edge)

    def energy(self, x: ArrayLike) -> float:
        """The energy of a labelling, summed in float64; inf if it contains a forbidden cost."""
        finite, forbidden = self.backend.energy_parts(as_labelling(x, self.backend, copy=False))
        return math.inf if forbidden else finite


def as_unaries(unaries: ArrayLike | Sequence[ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
    """All unary costs one after the other, float32 if that is exact and else float64, and each site's label count."""
    if isinstance(unaries, list | tuple) and not all(np.ndim(costs) == 0 for costs in unaries):
        arrays = [as_real_array(costs, f"unaries[{site}]") for site, costs in enumerate(unaries)]
        for site, costs in enumerate(arrays):
            if costs.ndim != 1 or costs.size == 0:
                raise ValueError(f"unaries[{site}] must be the costs of at least one label, got shape {costs.shape}")
        counts = np.array([len(costs) for costs in arrays], np.int32)
        kept = {smallest_dtype(costs, f"unaries[{site}]") for site, costs in enumerate(arrays)}
        flat = np.concatenate(arrays).astype(np.result_type(np.float32, *kept))
    else:
        array = as_real_array(unaries, "unaries")
        if array.ndim != 2 or array.size == 0:
            raise ValueError(
                f"unaries has shape {array.shape}, expected (sites, labels), at least one of each, or a list with an "
                "array of costs for each site"
            )
        counts = np.full(len(array), array.shape[1], np.int32)
        dtype = np.result_type(np.float32, smallest_dtype(array, "unaries"))
        flat = np.ascontiguousarray(array, dtype=dtype).reshape(-1)
    if len(counts) >= 2**31:
        raise ValueError(f"a graph may have up to {2**31 - 1} sites, got {len(counts)}")
    check_no_nan(flat, "unaries")
    return flat, counts


def as_edges(edges: ArrayLike, pairwise: EdgeCosts, weights: ArrayLike | None, counts: np.ndarray) -> Edges:
    """The edges of a graph, checked against its sites' label counts."""
    sites = _as_sites(edges, len(counts))
    given = as_weights(1.0 if weights is None else weights, "weights", (len(sites),), ", one for each edge")
    factors = np.broadcast_to(given, len(sites)).astype(np.float64)
    if isinstance(pairwise, Pairwise):
        return _shared(sites, factors, pairwise, counts)
    if callable(pairwise) and not isinstance(pairwise, type):  # tabulated for the largest number of labels
        return _shared(sites, factors, as_pairwise(pairwise, int(counts.max())), counts, has_larger_table=True)
    if isinstance(pairwise, np.ndarray) and pairwise.ndim == 2:
        return _shared(sites, factors, _one_table(pairwise), counts)
    if isinstance(pairwise, list | tuple) and len(pairwise) and np.ndim(pairwise[0]) == 1:  # rows of one table
        return _shared(sites, factors, _one_table(pairwise), counts)
    return _own(sites, factors, pairwise, counts)


def _shared(
    sites: np.ndarray, weights: np.ndarray, pairwise: Pairwise, counts: np.ndarray, *, has_larger_table: bool = False
) -> Edges:
    if type(pairwise).table is Pairwise.table:
        raise TypeError(f"{type(pairwise).__name__} is for grids; give a graph's tables as a list, one for each edge")
    if isinstance(pairwise, Table):
        table = pairwise.V
        if bool(np.isinf(table).any()):
            _check_not_negative(weights, "pairwise")
        if not has_larger_table:
            _check_sizes(sites, counts, np.broadcast_to(table.shape, (len(sites), 2)), "pairwise")
        if not (table.shape[0] == table.shape[1] and np.array_equal(table, table.T)):
            _, first, is_flipped = number_pairs(sites)
            if len(first) < len(sites) and bool(is_flipped.any()):  # one weight cannot stand for both directions
                tables = {shape: table[: shape[0], : shape[1]] for shape in {tuple(counts[pair]) for pair in sites}}
                return _own(sites, weights, [tables[tuple(counts[pair])] for pair in sites], counts)
    return shared_edges(sites, weights, pairwise, counts)


def _own(sites: np.ndarray, weights: np.ndarray, pairwise: object, counts: np.ndarray) -> Edges:
    tables = _as_tables(pairwise, len(sites))
    shapes = np.array([table.shape for table in tables], np.int64).reshape(-1, 2)
    _check_sizes(sites, counts, shapes, "pairwise[{}]")
    for e in np.flatnonzero(weights < 0):
        if bool(np.isinf(tables[e]).any()):
            _check_not_negative(weights[e : e + 1], f"pairwise[{e}]")
    return own_edges(sites, weights, tables, counts)


def _as_sites(edges: ArrayLike, size: int) -> np.ndarray:
    try:
        sites = np.asarray(edges)
    except ValueError:
        raise ValueError("edges must be an (m, 2) array, but its rows differ in length") from None
    if sites.size == 0:
        return np.zeros((0, 2), np.int32)
    if sites.dtype.kind not in "ui":
        hint = f"; give list({type(edges).__name__}) or an array" if sites.ndim == 0 else ""
        raise TypeError(f"edges must be an (m, 2) array of integers, got dtype {sites.dtype}{hint}")
    if sites.ndim != 2 or sites.shape[1] != 2:
        raise ValueError(f"edges must be an (m, 2) array, the two sites of each edge, got shape {sites.shape}")
    if len(sites) >= 2**30:
        raise ValueError(f"a graph may have up to {2**30 - 1} edges, got {len(sites)}")
    if sites.min() < 0 or sites.max() >= size:
        raise ValueError(f"edges name sites {sites.min()} to {sites.max()}, but the model has sites 0 to {size - 1}")
    return np.ascontiguousarray(sites, np.int32)


def _one_table(pairwise: ArrayLike) -> Pairwise:
    table = as_real_array(pairwise, "pairwise")
    if table.ndim == 2 and table.shape[0] != table.shape[1]:
        return _Rectangle(table)
    return Table(table)


class _Rectangle(Table):
    """A table for edges whose two sites differ in their number of labels."""

    def __init__(self, V: np.ndarray) -> None:
        check_no_nan(V, "pairwise")
        self.V = V.astype(np.float64)


def _as_tables(pairwise: object, edges: int) -> list[np.ndarray]:
    if not isinstance(pairwise, list | tuple | np.ndarray):
        raise TypeError(
            "pairwise must be a table, a list with a table for each edge, Potts, TruncatedLinear, TruncatedQuadratic, "
            f"Table or a function of two labels, got {type(pairwise).__name__}"
        )
    if len(pairwise) != edges:
        raise ValueError(f"pairwise has {len(pairwise)} tables, but there are {edges} edges")
    if isinstance(pairwise, np.ndarray):
        if pairwise.ndim != 3:
            raise ValueError(
                f"pairwise has shape {pairwise.shape}, expected one table (labels, labels), or one for each edge "
                "(edges, labels, labels)"
            )
        as_real_array(pairwise, "pairwise")
        if pairwise.size:
            check_no_nan(pairwise, "pairwise")
        return list(pairwise)
    known: dict[int, np.ndarray] = {}  # a table that is given for many edges is looked at, and kept, once
    for number, table in enumerate(pairwise):
        if id(table) in known:
            continue
        array = as_real_array(table.V if isinstance(table, Table) else table, f"pairwise[{number}]")
        if array.ndim != 2:
            raise ValueError(f"pairwise[{number}] must be a table (labels, labels), got shape {array.shape}")
        check_no_nan(array, f"pairwise[{number}]")
        known[id(table)] = array
    return [known[id(table)] for table in pairwise]


def _check_not_negative(weights: np.ndarray, name: str) -> None:
    if bool((weights < 0).any()):
        raise ValueError(
            f"a negative weight ({weights.min():g}) times a forbidden (+inf) cost of {name} would be -inf; make the "
            "weights at least 0"
        )


def _check_sizes(sites: np.ndarray, counts: np.ndarray, shapes: np.ndarray, name: str) -> None:
    wrong = np.flatnonzero((counts[sites] != shapes).any(axis=1))
    if len(wrong):
        e = int(wrong[0])
        first, second = sites[e].tolist()
        expected = tuple(counts[sites[e]].tolist())
        raise ValueError(
            f"{name.format(e)} has shape {tuple(shapes[e].tolist())}, expected {expected}: edge {e} joins site {first} "
            f"of {expected[0]} labels and site {second} of {expected[1]}"
        )
