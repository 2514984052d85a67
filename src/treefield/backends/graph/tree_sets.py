"""Tree sets of graphs: induced forests that cover all sites, found by themselves or named by the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treefield.backends.graph.costs import GraphCosts
from treefield.backends.graph.site_costs import PlannedForests, site_costs
from treefield.backends.graph.wide_trees import WideTreeSet, as_width
from treefield.backends.shared import Labellings, as_site_lists
from treefield.errors import CycleError
from treefield.protocols import Trees
from treefield.validation import as_choice, as_thread_count

if TYPE_CHECKING:
    from treefield.kernels.graph.forests import GraphForest

NAMES = ("trees", "random-trees", "forests", "random-forests", "wide", "sites")
_TREE = 128  # sites of a tree, at most, where all sites are cut into trees
_BLOCKS = 8  # up to 2**7 sites in a block of a random order
_POOL_SITES = 2**20  # sites of all forests of a sampler, unless that makes fewer than the fewest,
_FEWEST, _MOST = 2, 64  # or more than the most
_MOST_FORESTS = 16  # in a sweep; sites that are in none of them are trees by themselves


def check_options(
    costs: Labellings,
    trees: Trees | None,
    order: str,
    bands: int | None,
    width: int | None,
    memory: str,
    threads: int | None,
) -> None:
    """Raise for options that a tree set of a graph does not take, before any work."""
    as_choice(order, "order", ("fixed", "random"))
    as_choice(memory, "memory", ("auto", "low"))
    as_thread_count(threads)
    if isinstance(trees, str):
        if trees not in NAMES:
            names = ", ".join(map(repr, NAMES))
            raise ValueError(f"trees of a graph must be one of {names}, or a list of site-index arrays, got {trees!r}")
    elif trees is not None:
        as_site_lists(trees, costs.shape)
    if bands is not None:
        raise ValueError(f"bands={bands} goes with grids: a graph has no rows")
    if isinstance(trees, str) and trees == "wide":
        as_width(costs, width)
    elif width is not None:
        raise ValueError(f'width={width} goes with trees="wide" on a graph, got trees={trees!r}')
    if memory == "low":
        raise ValueError('memory="low" goes with grids; on a graph leave it out')


def tree_set(
    costs: GraphCosts,
    trees: Trees | None,
    *,
    order: str,
    bands: int | None,
    width: int | None,
    memory: str,
    threads: int | None,
) -> GraphTreeSet:
    """The tree set of that name, or of the given site-index arrays, for a graph model; None is "trees"."""
    trees = "trees" if trees is None else trees
    check_options(costs, trees, order, bands, width, memory, threads)
    if isinstance(trees, str) and trees == "sites":
        return GraphSites(costs, order)
    if isinstance(trees, str) and trees == "wide":
        return WideTreeSet(costs, width, order)
    return GraphForests(costs, order, trees if isinstance(trees, str) else as_site_lists(trees, costs.shape))


class GraphSites:
    """Single sites, the smallest trees: a sweep is one of ICM."""

    has_all_cores, patience = True, 1

    def __init__(self, costs: GraphCosts, order: str = "fixed") -> None:
        self.order, self._costs, self._site_costs = order, costs, site_costs(costs)

    def sweep(
        self, x: np.ndarray, rng: np.random.Generator | None = None, check: bool = True, reverse: bool = False
    ) -> float:
        """Update every site once, in place; return the change of energy. Sums are exact: there is nothing to check."""
        order = np.arange(self._costs.size, dtype=np.int32)[:: -1 if reverse else 1].copy()
        if self.order == "random" and rng is not None:
            rng.shuffle(order)
        with self._site_costs.for_labelling(x) as costs:
            return costs.update(order)


class GraphForests:
    """Induced trees and forests, solved one after the other.

    "trees" are two cuts of all sites into trees that may touch, along other ways each; "forests" are forests of as many
    sites as can be, until every site is in one. Both are kept, and solved only where something has changed. The others
    are drawn afresh for every sweep. Memory: a float64 for each label of each site, and one more for each label and
    forest that is kept.
    """

    has_all_cores, patience = True, 1

    def __init__(self, costs: GraphCosts, order: str = "fixed", trees: str | list[np.ndarray] = "trees") -> None:
        self.order, self._costs = order, costs
        self._site_costs = site_costs(costs)
        self._drawn = trees if isinstance(trees, str) else None
        self._forests: list[PlannedForests] = []
        self._rest = np.zeros(0, np.int32)  # sites in none of them
        if not isinstance(trees, str):
            self._forests = [
                PlannedForests([self._planned(sites, number)], number) for number, sites in enumerate(trees)
            ]
        elif not self._is_fresh:
            self._draw(None)

    @property
    def _is_fresh(self) -> bool:
        return self._drawn is not None and self._drawn.startswith("random")

    @property
    def shares(self) -> list[float]:
        """Which share of the sites each forest has."""
        return [len(forest.sites) / self._costs.size for forest in self._forests]

    def sweep(
        self, x: np.ndarray, rng: np.random.Generator | None = None, check: bool = True, reverse: bool = False
    ) -> float:
        """Solve every tree once, in place; returns the energy change, never positive with `check`.

        With `reverse` the last tree of the last forest comes first.
        """
        if self._is_fresh:
            self._draw(np.random.default_rng(0) if rng is None else rng)
        order = list(range(len(self._forests)))[:: -1 if reverse else 1]
        if self.order == "random" and rng is not None:
            order = rng.permutation(len(self._forests)).tolist()
        with self._site_costs.for_labelling(x) as costs:
            rest = self._rest[:: -1 if reverse else 1].copy()
            first = costs.update(rest) if reverse and len(rest) else 0.0
            change = sum(costs.solve(self._forests[number], check, reverse) for number in order)
            return first + change + (costs.update(rest) if len(rest) and not reverse else 0.0)

    def _draw(self, rng: np.random.Generator | None) -> None:
        size = self._costs.size
        if self._drawn in ("trees", "random-trees"):
            ascending = np.arange(size, dtype=np.int32)
            orders = (ascending, ascending[::-1]) if rng is None else (block_order(size, rng),) * 2
            drawn = [drawn_trees(self._costs, order.copy(), bool(turn)) for turn, order in enumerate(orders)]
        else:
            drawn = self._cover(rng)
        self._forests = [PlannedForests([forest], number if rng is None else -1) for number, forest in enumerate(drawn)]

    def _cover(self, rng: np.random.Generator | None) -> list[GraphForest]:
        """PlannedForests as large as can be, until every site is in one of them."""
        drawn: list[GraphForest] = []
        left = np.ones(self._costs.size, np.bool_)
        while left.any() and len(drawn) < _MOST_FORESTS:
            ascending = np.arange(self._costs.size, dtype=np.int32)
            order = ascending[:: 1 - 2 * (len(drawn) % 2)] if rng is None else block_order(len(left), rng)
            drawn.append(drawn_forest(self._costs, np.concatenate([order[left[order]], order[~left[order]]])))
            left[drawn[-1].sites] = False
        self._rest = np.flatnonzero(left).astype(np.int32)
        return drawn

    def _planned(self, sites: np.ndarray, number: int) -> GraphForest:
        wanted = np.full(self._costs.size, -1, np.int32)
        wanted[sites] = 0
        forest = planned_forest(self._costs, wanted)
        if forest is None:
            raise CycleError(
                f"trees[{number}] has a cycle: its {len(sites)} sites and all edges between them must form trees"
            )
        return forest


GraphTreeSet = GraphSites | GraphForests | WideTreeSet


class ForestSampler:
    """The trees of random forests, drawn given the sites around them: perturbed, and solved exactly."""

    def __init__(self, costs: GraphCosts) -> None:
        self._site_costs = site_costs(costs)
        rng = np.random.default_rng(0)  # the same forests for any search, and after any resume
        number = min(max(_POOL_SITES // costs.size, _FEWEST), _MOST)
        self._forests = PlannedForests([drawn_forest(costs, block_order(costs.size, rng)) for _ in range(number)])

    def cool(self, x: np.ndarray, temperatures: np.ndarray, rng: np.random.Generator) -> float:
        """Draw one of the forests for each temperature, in place on an int32 labelling; returns the energy change."""
        with self._site_costs.for_labelling(x) as costs:
            return costs.draw_trees(self._forests, temperatures, int(rng.integers(2**63)))


def block_order(size: int, rng: np.random.Generator) -> np.ndarray:
    """The sites in random blocks of consecutive numbers.

    Sites of near numbers are often neighbours: a forest that grows along them is larger, and drawn faster, than one
    that grows everywhere at once.
    """
    block = int(2 ** rng.integers(_BLOCKS))
    order = np.arange(size, dtype=np.int32)[:: -1 if rng.integers(2) else 1]
    whole = order[: size // block * block].reshape(-1, block)
    return np.concatenate([whole[rng.permutation(len(whole))].reshape(-1), order[whole.size :]])


def drawn_forest(costs: GraphCosts, order: np.ndarray) -> GraphForest:
    """The forest of the sites that close no cycle, taken in that order."""
    from treefield.kernels.graph.forests import grow_forest

    graph = costs.kernel_graph
    roots, seen = np.empty((2, costs.size), np.int32)
    grow_forest(graph.starts, graph.neighbours, order, roots, seen)
    forest = planned_forest(costs, roots)
    assert forest is not None  # no site that closes a cycle was taken
    return forest


def planned_forest(costs: GraphCosts, wanted: np.ndarray) -> GraphForest | None:
    """The sites that are not negative in `wanted`, ordered for search; None if they have a cycle."""
    from treefield.kernels.graph.forests import plan_graph_forest

    size = int(np.count_nonzero(wanted >= 0))
    forest = _empty_forest(size)
    stack, place = np.empty(2 * size + 2, np.int64), np.empty(costs.size, np.int32)
    count = plan_graph_forest(costs.kernel_graph, wanted, forest, stack, place)
    return None if count < 0 else forest._replace(trees=forest.trees[: count + 1])


def drawn_trees(costs: GraphCosts, order: np.ndarray, is_reversed: bool) -> GraphForest:
    """All sites cut into induced trees, around the sites in the given order.

    If `is_reversed`, neighbours are tried in reverse order.
    """
    from treefield.kernels.graph.forests import split_into_trees

    graph, forest = costs.kernel_graph, _empty_forest(costs.size)
    stack = np.empty(len(graph.neighbours) + 1, np.int32)
    count = split_into_trees(graph, order, _TREE, is_reversed, forest, stack, np.empty(costs.size, np.int32))
    return forest._replace(trees=forest.trees[: count + 1])


def _empty_forest(size: int) -> GraphForest:
    from treefield.kernels.graph.forests import GraphForest

    return GraphForest(**{name: np.empty(size + (name == "trees"), np.int32) for name in GraphForest._fields})
