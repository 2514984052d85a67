"""Grid models: every site of a 2-D or 3-D grid is joined to its neighbours, along each axis or all around."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from treefield.kernels.kinds import CappedEdgeTablesRule, EdgeTablesRule, Rule
from treefield.models.engines import EngineModel, GraphEngine, PlainEngine
from treefield.models.lattice import checked_unary, checked_weights, lattice, masked_weights
from treefield.models.pairwise import (
    EdgeTables,
    Pairwise,
    WeightRange,
    are_integers,
    as_pairwise,
    finite_range,
    largest_finite,
)
from treefield.validation import as_labelling

if TYPE_CHECKING:
    from treefield.models.graph import GraphMRF

_EXACT_IN_FLOAT32 = 2.0**24
_LARGEST = 1e304  # what all costs may add up to, so that nothing overflows


class GridMRF(EngineModel):
    """A Markov random field on a grid: a cost for each label of each site, and a cost for each pair of neighbouring
    labels.

    Parameters
    ----------
    unary : (M, N, L) or (P, M, N, L) array
        The cost of each label at each site, labels along the last axis. Any real or integer dtype; uint8, uint16,
        float32 and float64 are kept (and not copied if contiguous), others become the smallest of these that holds
        every value exactly. +inf forbids a label.
    pairwise : Potts, TruncatedLinear, TruncatedQuadratic, Table, EdgeTables or function
        The cost of two neighbouring labels. A function of two labels is tabulated. The edge goes from the lower to the
        higher index.
    weights : sequence, optional
        One factor or array of factors per direction, of any sign: for (M, N) sites the shapes are (M-1, N) and
        (M, N-1), with connectivity 2 twice (M-1, N-1) more. An edge of weight 0 is no edge.
    connectivity : 1 or 2
        1 joins a site to its neighbours along the axes, 4 in 2-D and 6 in 3-D; 2 to all that touch it, 8 or 26. The
        directions are those along the axes, then the diagonals, down to the right, (1, 1), and down to the left,
        (1, -1). In 3-D they are (1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1), (1, 1, 1),
        (1, 1, -1), (1, -1, 1), (1, -1, -1). An edge's first site is the one from which such a step leads to the other.
    periodic : bool, or one bool per axis
        Whether the last site along an axis is joined to the first, by an edge from the last to the first. Arrays of
        weights then have as many entries along that axis as there are sites: entry k is for k and k + 1, the last for
        the last and the first. At least 3 sites are needed.
    mask : bool array of the grid's shape, optional
        True where there is a site. Elsewhere costs do not matter, there are no edges, and labels are 0 in results.

    Attributes
    ----------
    shape : the grid's shape.
    scale : the greatest cost, but for forbidden ones.
    labels : the number of labels L.
    unary, pairwise, weights : as given, checked; the unary 0 where there is no site.
    mask : as given, None if every site exists.
    periodic : one bool per axis.
    plain : whether neighbours are those along the axes, and no axis is periodic.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.array([[[0, 3], [2, 1]]]), tf.Potts(5))
    >>> mrf
    GridMRF(shape=(1, 2), labels=2, dtype=uint8, pairwise=Potts(5))
    >>> mrf.energy(np.array([[0, 0]])), mrf.energy(np.array([[0, 1]]))
    (2.0, 6.0)

    Eight neighbours, diagonal ones less close, on a disc:

    >>> i, j = np.indices((9, 9)) - 4
    >>> weights = (1, 1, 0.75, 0.75)
    >>> disc = tf.GridMRF(np.zeros((9, 9, 3)), tf.Potts(2), weights=weights, connectivity=2, mask=i**2 + j**2 <= 16)
    >>> disc
    GridMRF(shape=(9, 9), labels=3, dtype=float64, pairwise=Potts(2), weighted, 8 neighbours, 49 of 81 sites)
    >>> disc.energy(i > 0)
    35.0
    """

    def __init__(
        self,
        unary: Any,
        pairwise: Any,
        *,
        weights: Any = None,
        connectivity: int = 1,
        periodic: Any = False,
        mask: Any = None,
    ) -> None:
        self.unary, self.mask = checked_unary(unary, mask)
        self.shape: tuple[int, ...] = self.unary.shape[:-1]
        self.labels: int = self.unary.shape[-1]
        self.pairwise: Pairwise = as_pairwise(pairwise, self.labels)
        self._lattice = lattice(self.shape, connectivity, periodic)
        self.periodic = self._lattice.periodic
        self.weights = checked_weights(weights, self._lattice)
        self._tables = None
        if isinstance(self.pairwise, EdgeTables):
            self._tables = self.pairwise.flat(self._lattice, self.labels)
        self._edge_weights, self._uniform = self._effective_weights()
        self._measure()
        self._graph_engine = None if self.plain else GraphEngine(self)

    def __repr__(self) -> str:
        weights = "" if self.weights is None else ", weighted"
        joined = "" if self.plain else f", {self.joined_by}"
        mask = "" if self.mask is None else f", {np.count_nonzero(self.mask)} of {self.size} sites"
        sites = f"shape={self.shape}, labels={self.labels}, dtype={self.unary.dtype}"
        return f"GridMRF({sites}, pairwise={self.pairwise!r}{weights}{joined}{mask})"

    @property
    def _engine(self) -> Any:
        # created on each access: storing it would form a reference cycle and delay freeing the model
        return PlainEngine(self) if self._graph_engine is None else self._graph_engine

    @property
    def plain(self) -> bool:
        """Whether neighbours are those along the axes, and no axis is periodic: then everything has a kernel of its
        own."""
        return self._lattice.plain

    @property
    def connectivity(self) -> int:
        """1 for neighbours along the axes, 2 for all that touch."""
        return 1 if len(self._lattice.steps) == len(self.shape) else 2

    @property
    def joined_by(self) -> str:
        """Which neighbours a site has, in words."""
        rings = [str(axis) for axis, ring in enumerate(self.periodic) if ring]
        words = f", periodic along {' and '.join(rings)}" if rings else ""
        return f"{2 * len(self._lattice.steps)} neighbours{words}"

    @property
    def label_counts(self) -> np.ndarray:
        """The number of labels of every site."""
        return np.broadcast_to(np.int32(self.labels), self.shape)

    same_count = True  # of labels, for all sites

    @property
    def size(self) -> int:
        """The number of sites."""
        return math.prod(self.shape)

    def energy(self, x: Any) -> float:
        """The energy of a labelling, summed in float64; inf if a forbidden cost is in it.

        Examples
        --------
        >>> import numpy as np, treefield as tf
        >>> tf.GridMRF(np.zeros((2, 2, 3)), tf.TruncatedLinear(1.5, cutoff=2)).energy([[0, 1], [2, 2]])
        6.0
        """
        finite, forbidden = self.energy_parts(as_labelling(x, self, copy=False))
        return math.inf if forbidden else finite

    def best_labels(self) -> np.ndarray:
        """Each site's label of the least unary cost."""
        x = np.empty(self.shape, np.int32)
        for i, costs in enumerate(self.unary):
            x[i] = costs.argmin(axis=-1)
        return x

    def random_labels(self, rng: np.random.Generator, sites: np.ndarray | None = None) -> np.ndarray:
        """A random label for each site, or for each of the given ones."""
        x = rng.integers(self.labels, size=self.shape if sites is None else len(sites), dtype=np.int32)
        if self.mask is not None:
            x[~(self.mask if sites is None else self.mask.reshape(-1)[sites])] = 0
        return x

    def with_unary(self, unary: Any) -> GridMRF:
        """The same model but for the unary, which has the same shape."""
        lattice: dict[str, Any] = {"connectivity": self.connectivity, "periodic": self.periodic, "mask": self.mask}
        return GridMRF(unary, self.pairwise, weights=self.weights, **lattice)

    def to_graph(self) -> GraphMRF:
        """The same model as a graph: site (i, j) of an (M, N) grid is number i * N + j, and energies are the same.

        Examples
        --------
        >>> import numpy as np, treefield as tf
        >>> mrf = tf.GridMRF(np.zeros((2, 3, 4)), tf.Potts(1))
        >>> mrf.to_graph()
        GraphMRF(sites=6, edges=7, labels=4, pairwise=Potts(1))
        """
        from treefield.models.graph import GraphMRF

        edges = [np.stack(self._lattice.ends(number), axis=-1) for number in range(len(self._lattice.steps))]
        joined = np.concatenate([pairs.reshape(-1, 2) for pairs in edges])
        weights = np.concatenate([weight.reshape(-1) for weight in self._factors()])
        unaries = self.unary.reshape(-1, self.labels)
        if self._tables is None:
            return GraphMRF(unaries, joined, self.pairwise, weights=weights)
        tables = self._tables[: len(joined) * self.labels**2].reshape(-1, self.labels, self.labels)
        return GraphMRF(unaries, joined, tables, weights=weights)

    def edges_of(self, site: int) -> list[tuple[int, np.ndarray]]:
        """The neighbours of a site, and what the edge to each costs: [label of the site, label of the neighbour]."""
        found = []
        size, edges = self.labels**2, 0
        for number, weight in enumerate(self.edge_weights()):
            first, second = (ends.reshape(-1) for ends in self._lattice.ends(number))
            for edge in np.flatnonzero((first == site) | (second == site)).tolist():
                factor = weight.reshape(-1)[edge]
                if self._tables is None:
                    costs = self.pairwise.table(self.labels)
                else:
                    start = (edges + edge) * size
                    costs = self._tables[start : start + size].reshape(self.labels, self.labels).astype(np.float64)
                table = factor * costs if factor != 0 else np.zeros_like(costs)
                found.append((int(second[edge]), table) if first[edge] == site else (int(first[edge]), table.T))
            edges += weight.size
        return found

    def fingerprint_parts(self) -> list[Any]:
        """Everything that makes the model, arrays and what `repr` tells: two models of equal parts are the same."""
        table = self._tables if self._tables is not None else self.pairwise.table(self.labels)
        lattice = [] if self.plain else [self.joined_by]
        return [self.unary, type(self.pairwise).__name__, table, self._edge_weights, *lattice]

    # What the tree sets and kernels need to know.

    @property
    def flat_unary(self) -> np.ndarray:
        """The unary as the kernels read it: [site][label], flat."""
        return self.unary.reshape(-1)

    @property
    def dtype(self) -> np.dtype:
        """The arithmetic of messages: float32 where that is exact enough, else float64. Energies are always float64."""
        return self._dtype

    @property
    def big(self) -> float:
        """What stands in for a forbidden cost in messages: more than all finite costs can differ by. inf if nothing is
        forbidden."""
        return self._big

    @functools.cached_property
    def is_whole(self) -> bool:
        """Whether all costs, and so all energies, are integers."""
        factors = [np.array(self.pairwise.weight), *(self.weights or [])]  # rounding may make their product whole
        arrays = (*factors, *self.unary)
        return self.pairwise.is_whole() and all(are_integers(array) for array in arrays)

    @property
    def rounding(self) -> float:
        """How far rounding can raise the energy of a labelling that an exact method finds above the exact minimum."""
        finite = sum(float(np.abs(np.where(np.isinf(row), 0, row)).sum(dtype=np.float64)) for row in self.unary)
        costs = self._tables if self._tables is not None else self.pairwise.costs(self.labels)
        factors = sum(float(np.abs(weight).sum()) for weight in self.edge_weights())
        total = finite + factors * largest_finite(costs)
        terms = self.size + sum(weight.size for weight in self.edge_weights()) + self.labels
        table = np.zeros((0, 0)) if self._tables is not None else self.pairwise.table(self.labels)
        error = self.rule(np.float64).message_error(table)
        eps = float(np.finfo(np.float64).eps)
        return 8 * terms * eps * total + 2 * (error.relative * total + error.absolute * factors)

    @property
    def has_edge_tables(self) -> bool:
        """Whether every edge has a table of its own."""
        return self._tables is not None

    @property
    def has_diagonal(self) -> bool:
        """Whether equal neighbouring labels may cost something."""
        return self._tables is not None or bool(np.diagonal(self.pairwise.table(self.labels)).any())

    def rule(self, dtype: Any = None) -> Rule:
        """The message rule of the pairwise cost, for kernels; created on each call, since it may hold a workspace."""
        dtype = self._dtype if dtype is None else np.dtype(dtype)
        if self._tables is not None:
            zero = np.zeros(1, dtype)
            if not self._has_forbidden_pairs:
                return EdgeTablesRule(self._tables, zero)
            largest = np.array([np.finfo(dtype).max], dtype)
            return CappedEdgeTablesRule(self._tables, zero, np.array([self._big], dtype), largest)
        return self.pairwise.rule(self.labels, dtype, self._weight_range)

    def kernel_grid(self) -> Any:
        """Shapes, strides and edge weights for kernels. The first directions are the axes; those that know of no others
        see the edges along the axes, and not those from the last site to the first."""
        from treefield.kernels.grid import Grid

        axes = range(len(self.shape))
        strides = [math.prod(self.shape[a + 1 :]) for a in axes]
        edges = self._lattice.edge_shapes
        offsets = np.cumsum([0, *(math.prod(shape) for shape in edges)])[:-1]
        edge_strides = [[math.prod(shape[a + 1 :]) for a in axes] for shape in edges]
        return Grid(
            np.array(self.shape),
            np.array(strides),
            offsets,
            np.array(edge_strides).reshape(-1),
            self._edge_weights,
            self._uniform,
        )

    def edge_weights(self) -> list[np.ndarray]:
        """The weight of every edge, the pairwise cost's own included, in float64: an array for each direction."""
        return [self.pairwise.weight * factor for factor in self._factors()]

    @property
    def steps(self) -> list[tuple[int, ...]]:
        """The directions of the edges, as steps along the axes."""
        return self._lattice.steps

    def _factors(self) -> list[np.ndarray]:
        """The weight of every edge without the pairwise cost's own, in float64: an array for each direction."""
        given = [1.0] * len(self._lattice.steps) if self.weights is None else self.weights
        if self.mask is not None:
            return masked_weights(given, self._lattice, self.mask)
        shapes = self._lattice.edge_shapes
        return [
            np.broadcast_to(np.asarray(weight, np.float64), shape) for weight, shape in zip(given, shapes, strict=True)
        ]

    def _effective_weights(self) -> tuple[np.ndarray, bool]:
        """The pairwise weight times the edge weights, float64: one per direction if they are uniform, else one per
        edge."""
        uniform = self.mask is None and self._same_weights
        if not uniform:
            flat = np.concatenate([weight.reshape(-1) for weight in self._factors()])
        else:
            flat = np.array([1.0] * len(self._lattice.steps) if self.weights is None else self.weights, np.float64)
        with np.errstate(over="ignore"):  # `_measure` refuses what is too large
            return self.pairwise.weight * flat, uniform

    @property
    def _same_weights(self) -> bool:
        """Whether all edges of a direction, but for those that a mask takes away, have the same weight."""
        return self.weights is None or all(weight.ndim == 0 for weight in self.weights)

    def _measure(self) -> None:
        """Ranges of the costs: which arithmetic is exact enough, and what can stand in for a forbidden cost."""
        low, high, forbidden = finite_range(self.unary)
        weights = self._edge_weights
        costs = self._tables if self._tables is not None else self.pairwise.costs(self.labels)
        table_low, table_high, forbidden_pairs = finite_range(costs)
        if forbidden_pairs and bool(weights.size and weights.min() < 0):
            raise ValueError(
                "a negative weight times a forbidden (+inf) pairwise cost would be -inf; make the weights at least 0"
            )
        largest = float(np.abs(weights).max()) if weights.size else 0.0
        # a shared table is used up to a constant, tables per edge as they are
        spread = table_high - table_low if self._tables is None else max(abs(table_low), abs(table_high))
        steepest = largest * max(abs(table_low), abs(table_high))
        total = self.size * (max(abs(low), abs(high)) + len(self._lattice.steps) * steepest)
        if not total < _LARGEST:
            raise ValueError(f"costs are too large: over {self.size} sites they may add up to {total:g}; scale them")
        with np.errstate(over="ignore"):
            narrow = weights.astype(np.float32)
        same = np.array_equal(narrow, weights)
        self.scale = max(abs(low), abs(high), largest * spread)
        small = self.scale <= _EXACT_IN_FLOAT32
        exact = self.unary.dtype != np.float64 and small and (self._same_weights or same)
        self._dtype = np.dtype(np.float32 if exact and not (forbidden or forbidden_pairs) else np.float64)
        self._edge_weights = narrow if self._dtype == np.float32 and same else weights
        self._big = math.inf
        if forbidden or forbidden_pairs:
            self._big = 2.0 ** math.ceil(math.log2(max(total, 1.0)) + 2)
            if self.unary.dtype == np.float32 and self._big > float(np.finfo(np.float32).max):
                self.unary = self.unary.astype(np.float64)
        used = weights[weights != 0] if forbidden_pairs else weights
        least, most = (float(used.min()), float(used.max())) if used.size else (1.0, 1.0)
        if forbidden_pairs and not 8 * self._big < least * _LARGEST:
            raise ValueError(f"a weight of {least:g} is too small beside a forbidden (+inf) pair; use 0 for no edge")
        self._weight_range = WeightRange(least, most, self._big)
        self._has_forbidden_pairs = forbidden_pairs
