"""Graph models: sites with their own numbers of labels, joined by any edges."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from treefield.models.edges import CODES, as_edges
from treefield.models.from_graphs import FromGraphs
from treefield.models.model import Model
from treefield.models.pairwise import Pairwise, are_integers, finite_range, is_float32, largest_finite, refuse_nan
from treefield.validation import as_flat_input, as_labelling, as_real_array, as_real_scalar, smallest_dtype

_LARGEST = 1e304  # what all costs may add up to, so that nothing overflows
_NO_COST = 2.0**20  # taken for that where nothing costs anything, so that what is forbidden costs more than noise


class GraphMRF(FromGraphs, Model):
    """A Markov random field on any graph: a cost for each label of each site, and a cost for each pair of labels of
    two sites that an edge joins.

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
    labels : the greatest of these.
    edges : (m, 2), the first and second site of each edge, merged.
    pairwise, weights : what the edges cost: a pairwise cost and the weight of each edge; None where edges have tables
        of their own, which `edge_costs` gives.
    offset : as given.
    scale : the greatest cost, but for forbidden ones.
    auxiliary : how many of the last sites stand for costs of three or more sites, and are no sites of the problem.

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
    paper_trees, search_trees = "trees", "trees"  # those of T-ILS, and the best for any search

    def __init__(self, unaries: Any, edges: Any, pairwise: Any, *, weights: Any = None, offset: float = 0.0) -> None:
        unary, self.label_counts = _checked_unaries(unaries)
        self.size: int = len(self.label_counts)
        self.shape: tuple[int, ...] = (self.size,)
        self.labels: int = int(self.label_counts.max())
        self.offset = as_real_scalar(offset, "offset")
        self._starts = np.concatenate([[0], np.cumsum(self.label_counts, dtype=np.int64)])
        joined = as_edges(edges, pairwise, weights, self.label_counts)
        self._has_whole_costs = joined.is_whole and are_integers(unary)
        if len(joined.loop_sites):
            unary = unary.astype(np.float64)
            places, costs = joined.loops(self._starts, self.label_counts)
            joined.rounding += _rounding_of_sums(unary, places, costs)
            np.add.at(unary, places, costs)
        self.edges = joined.sites
        self.pairwise: Pairwise | None = joined.shared
        self.weights: np.ndarray | None = joined.factors
        self._joined = joined
        self._unary = unary
        self._measure()
        dtype = np.result_type(self._unary, joined.tables)  # one for all costs: kernels are compiled for each
        self._unary, joined.tables = self._unary.astype(dtype, copy=False), joined.tables.astype(dtype, copy=False)

    def __repr__(self) -> str:
        least, most = int(self.label_counts.min()), self.labels
        labels = str(most) if least == most else f"{least}..{most}"
        pairwise = "tables of their own" if self.pairwise is None else f"{self.pairwise!r}"
        weights = "" if self.weights is None or bool(np.all(self.weights == 1)) else ", weighted"
        return f"GraphMRF(sites={self.size}, edges={len(self.edges)}, labels={labels}, pairwise={pairwise}{weights})"

    @property
    def same_count(self) -> bool:
        """Whether all sites have the same number of labels."""
        return bool(self._starts[-1] == self.size * self.labels)

    @property
    def unaries(self) -> list[np.ndarray]:
        """The cost of each label, a float64 array for each site; +inf where forbidden."""
        costs = self._unary.astype(np.float64)
        costs[costs >= self._big] = math.inf
        return np.split(costs, self._starts[1:-1])

    def edge_costs(self, edge: int) -> np.ndarray:
        """The costs of an edge, weight included: float64, [label of the first site, label of the second]."""
        table = self._joined.costs(edge, self.label_counts)
        return np.where(table >= self._big, math.inf, table)

    def energy(self, x: Any) -> float:
        """The energy of a labelling, summed in float64; inf if a forbidden cost is in it."""
        finite, forbidden = self.energy_parts(as_labelling(x, self, copy=False))
        return math.inf if forbidden else finite

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        """The finite part of a checked labelling's energy, and how many forbidden costs it holds."""
        from treefield.kernels.graph import graph_energy

        finite, forbidden = graph_energy(x, self.kernel_graph())
        return finite + self.offset, int(forbidden)

    def components(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The connected components of the sites where two int32 labellings differ, and what each changes from x to y.

        Returns the component of every site (-1 where x and y agree), and per component the change of the finite costs
        and of the number of forbidden ones.
        """
        from treefield.kernels.graph import component_changes, join_differing

        flat, graph = (as_flat_input(x, self), as_flat_input(y, self, "y")), self.kernel_graph()
        numbers = np.empty(self.size, np.int32)
        count = join_differing(*flat, graph, numbers)
        finite, forbidden = np.zeros(count), np.zeros(count, np.int64)
        component_changes(*flat, graph, numbers, finite, forbidden)
        return numbers.reshape(x.shape), finite, forbidden

    def tree_set(
        self,
        trees: Any = None,
        *,
        order: str = "fixed",
        bands: int | None = None,
        memory: str = "auto",
        threads: int | None = None,
    ) -> Any:
        """Trees prepared for exact search: an object whose `sweep(x, rng)` solves each in turn, in place, and returns
        the energy change.

        See `treefield.t_icm` for the parameters.
        """
        from treefield.trees.induced import tree_set

        return tree_set(self, trees, order=order, bands=bands, memory=memory, threads=threads)

    def check_tree_set(self, trees: Any, **options: Any) -> None:
        """Refuse what `tree_set` would, without any work."""
        from treefield.trees.induced import check_options

        check_options(self, trees, **options)

    @property
    def sweep_work(self) -> float:
        """What a sweep over the trees takes, in sites x labels."""
        return 4.0 * len(self._unary) * max(1.0, self.labels / 16 if self._joined.kind == "tables" else 1.0)

    @property
    def dual_work(self) -> float:
        """What an iteration of the dual takes, likewise."""
        labels = self.label_counts[self.edges].astype(np.float64)
        costs = labels.prod(axis=1) / 8 if self._joined.kind == "tables" else labels.sum(axis=1)
        return float(16.0 * len(self._unary) + 8 * costs.sum())

    def whole_tree(self) -> Any:
        """All sites as one tree set, solved exactly by one `sweep`; a `CycleError` if the graph has a cycle."""
        from treefield.trees.induced import InducedForests

        return InducedForests(self, trees=[np.arange(self.size)])

    def beliefs(self) -> Any:
        """Messages between all neighbours, for belief propagation."""
        from treefield.trees.graph_messages import GraphBeliefs

        return GraphBeliefs(self)

    def dual(self, arithmetic: str = "auto") -> Any:
        """Tree-reweighted messages: an object whose `iterate(x)` tightens a lower bound on the energy, returns it, and
        writes the labelling that the messages suggest to `x`."""
        from treefield.trees.graph_messages import GraphDual

        return GraphDual(self, arithmetic)

    @property
    def has_few_edges(self) -> bool:
        """Whether the edges are few enough for a tree, or several."""
        return len(self.edges) < self.size

    @property
    def tree_bytes(self) -> int:
        """The memory that `whole_tree` needs, at most."""
        padded = 8 * int((-(-self.label_counts.astype(np.int64) // 8)).sum())
        return 2 * 8 * padded + 48 * (self.size + len(self.edges))

    def search_bytes(self) -> dict[tuple[str, str | None], int]:
        """The memory that tree sets and the dual need, roughly: by (memory, arithmetic), the best first."""
        from treefield.trees.graph_messages import message_bytes

        trees = 2 * self.tree_bytes  # and as much for jumps
        return {("auto", "auto"): trees + message_bytes(self), ("auto", None): trees}

    def tree_sampler(self) -> Any:
        """The same for the trees of a random forest."""
        from treefield.trees.induced import ForestSampler

        return ForestSampler(self)

    def sampler(self) -> Any:
        """Every site in turn: an object whose `sample(x, temperature, rng)` draws each site's label given its
        neighbours, in place, and returns the energy change."""
        from treefield.trees.conditional import SiteSampler

        return SiteSampler(self)

    def segments(self, flat: np.ndarray) -> tuple[np.ndarray, int]:
        """Number the segments of a flat labelling, connected sites of one label: each site's, and how many."""
        from treefield.kernels.balls import join_segments

        numbers = np.empty(flat.size, np.int32)
        return numbers, join_segments(flat, self.kernel_graph(), numbers)

    def labels_across(self, flat: np.ndarray, numbers: np.ndarray, seed: np.uint64, out: np.ndarray) -> None:
        """Write each segment's label across a random edge of its border to `out`."""
        from treefield.kernels.balls import labels_across

        if len(self.edges):
            labels_across(flat, self.kernel_graph(), numbers, seed, np.zeros(len(out), np.uint64), out)

    def best_labels(self) -> np.ndarray:
        """Each site's label of the least unary cost."""
        from treefield.kernels.graph import best_labels

        x = np.empty(self.shape, np.int32)
        best_labels(self.kernel_graph(), x)
        return x

    def random_labels(self, rng: np.random.Generator, sites: np.ndarray | None = None) -> np.ndarray:
        """A random label for each site, or for each of the given ones."""
        counts = self.label_counts if sites is None else self.label_counts[sites]
        return rng.integers(counts, dtype=np.int32)

    def fingerprint_parts(self) -> list[Any]:
        """Everything that makes the model, arrays and what `repr` tells: two models of equal parts are the same."""
        graph = self.kernel_graph()
        return [*graph, self.offset]

    @property
    def big(self) -> float:
        """What stands in for a forbidden cost: more than all finite costs can differ by. inf if nothing is
        forbidden."""
        return self._big

    @property
    def is_whole(self) -> bool:
        """Whether every energy is an integer."""
        return self._has_whole_costs and float(self.offset).is_integer()

    @functools.cached_property
    def message_error(self) -> float:
        """How far rounding can raise the sum of all messages of one pass, in float64, and that of merged edges any
        energy."""
        return self._joined.message_error() + self._joined.rounding

    @property
    def rounding(self) -> float:
        """How far rounding can raise the energy of a labelling that an exact method finds above the exact minimum."""
        terms = self.size + len(self.edges) + self.labels
        roundings = self._unit + 2 * float(np.finfo(np.float64).eps) * (self._total + abs(self.offset))
        return 4 * terms * roundings + 2 * self.message_error

    def independent_sites(self, rng: np.random.Generator) -> np.ndarray:
        """Random sites of which no edge joins two."""
        rank = rng.permutation(self.size)
        least = np.full(self.size, self.size)
        np.minimum.at(least, self.edges, rank[self.edges[:, ::-1]])
        return np.flatnonzero(rank < least)

    @property
    def unit(self) -> float:
        """A power of 2 so small that it does not matter, and so great that sums of its multiples are exact."""
        return self._unit

    def kernel_graph(self) -> Any:
        """Labels, costs and edges for kernels."""
        return self._kernel_graph

    @functools.cached_property
    def _kernel_graph(self) -> Any:
        from treefield.kernels.graph import Graph, list_neighbours

        sites, joined = self.edges, self._joined
        starts = np.zeros(self.size + 2, np.int64)
        counts = np.bincount(sites.reshape(-1), minlength=self.size)
        starts[2:] = np.cumsum(counts)
        beside, links = np.zeros((2, max(1, 2 * len(sites))), np.int32)
        list_neighbours(sites.reshape(-1), starts, beside, links)
        return Graph(
            kind=CODES[joined.kind],
            labels=self.labels if self.same_count else 0,
            label_starts=self._starts,
            unary=self._unary,
            starts=starts[:-1],
            beside=beside,
            links=links,
            edges=np.ascontiguousarray(sites.reshape(-1)) if len(sites) else np.zeros(2, np.int32),
            tables=joined.tables,
            table_starts=joined.table_starts,
            stride=joined.stride,
            weights=joined.weights,
            positions=joined.positions,
            big=self._big,
        )

    def _measure(self) -> None:
        """Ranges of the costs; forbidden ones get a finite cost, beyond what all others can differ by."""
        joined = self._joined
        low, high, forbidden = finite_range(self._unary)
        steepest, forbidden_pairs, total = joined.measure(self.label_counts)
        total += self.size * max(abs(low), abs(high))
        if not total < _LARGEST:
            raise ValueError(f"costs are too large: over {self.size} sites they may add up to {total:g}; scale them")
        self._total = total
        total = max(total, 1e-290) if total else _NO_COST
        self.scale = max(abs(low), abs(high), steepest)
        self._big = math.inf
        self._unit = 2.0 ** (math.ceil(math.log2(total)) - 50)
        if not (forbidden or forbidden_pairs):
            return
        self._big = 2.0 ** math.ceil(math.log2(total) + 2)
        # a site may have as many forbidden costs as neighbours
        degree = int(np.bincount(self.edges.reshape(-1), minlength=1).max())
        self._unit = 2.0 ** (math.ceil(math.log2(self._big * (degree + 2))) - 52)
        if not is_float32(self._big):
            self._unary = self._unary.astype(np.float64)
        self._unary = np.minimum(self._unary, self._unary.dtype.type(self._big))
        if forbidden_pairs:
            joined.forbid(self._big)


def _rounding_of_sums(unary: np.ndarray, places: np.ndarray, costs: np.ndarray) -> float:
    """How far rounding can move the energy of a labelling where costs, some at the same places, are added."""
    finite = np.abs(np.where(np.isfinite(costs), costs, 0.0)).sum() + largest_finite(unary) * len(np.unique(places))
    return float(np.finfo(np.float64).eps * len(places) * finite)


def _checked_unaries(unaries: Any) -> tuple[np.ndarray, np.ndarray]:
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
    refuse_nan(flat, "unaries")
    return flat, counts
