"""The costs of a graph's labels given the labels around them, and the searches that use them.

These are single-site search, sampling, and exact search on forests.
"""

from __future__ import annotations

import abc
import contextlib
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from treefield.backends.graph.costs import GraphCosts
from treefield.backends.grid.schedules import LANES
from treefield.validation import as_flat_labels, as_non_negative

if TYPE_CHECKING:
    from treefield.kernels.graph.forests import GraphForest
    from treefield.kernels.graph.label_costs import ConditionalCosts, LabelWorkspace
    from treefield.kernels.graph.spins import Spins, SpinWorkspace

MAX_CACHED = 31  # forests of a tree set that are solved only where something has changed
_NEGLIGIBLE = 64.0  # a probability of two to minus that


def site_costs(costs: GraphCosts) -> SiteCosts:
    """The conditional costs of a graph, with the kernels for spins if every site has two labels."""
    return _SpinCosts(costs) if costs.n_labels == 2 and costs.has_uniform_labels else _LabelCosts(costs)


class PlannedForests:
    """Forests in the layout of the kernels: the trees of all forests, and where each forest begins.

    A `number` below `MAX_CACHED`, different for each forest of a tree set, lets the solver cache messages here and
    recompute them only where labels have changed.
    """

    def __init__(self, forests: list[GraphForest], number: int = -1) -> None:
        from treefield.kernels.graph.forests import GraphForest

        sizes = np.cumsum([0, *(len(forest.sites) for forest in forests)])
        counts = np.cumsum([0, *(len(forest.trees) - 1 for forest in forests)])

        def joined(name: str, end: int | None = None) -> np.ndarray:
            arrays = [getattr(forest, name)[:end] for forest in forests]
            if name in ("sites", "links") or len(forests) == 1:
                return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
            moved = [np.where(array < 0, -1, array + size) for array, size in zip(arrays, sizes, strict=False)]
            return np.concatenate(moved).astype(np.int32)

        arrays = {name: joined(name) for name in ("sites", "parents", "links", "first_children", "next_siblings")}
        self.forest = GraphForest(**arrays, trees=np.append(joined("trees", -1), np.int32(sizes[-1])))
        self.firsts = counts.astype(np.int64)
        self.is_cached = 0 <= number < MAX_CACHED
        self.dirty_bit = np.uint32(1 << (number if self.is_cached else MAX_CACHED))
        self.workspace: LabelWorkspace | SpinWorkspace | None = None
        self.places: tuple[np.ndarray, np.ndarray] | None = None  # offsets of costs and of messages in the workspace

    @property
    def sites(self) -> np.ndarray:
        """The sites of all forests."""
        return self.forest.sites


class SiteCosts(abc.ABC):
    """Conditional costs that are kept between labellings: only what has changed is computed again.

    The result does not depend on earlier labellings: all sums are exact, of multiples of the model's unit.
    """

    _state: ConditionalCosts | Spins

    def __init__(self, costs: GraphCosts) -> None:
        self._costs, self._graph = costs, costs.kernel_graph
        self._rounder = 1.5 * 2.0**52 * costs.unit
        self._x = np.zeros(costs.size, np.int32)
        self._dirty, self._pending_labels = np.empty(costs.size, np.uint32), np.full(costs.size, -1, np.int32)
        self._buffers: dict[str, np.ndarray] = {}
        self._has_begun = False

    @contextlib.contextmanager
    def for_labelling(self, x: np.ndarray) -> Iterator[SiteCosts]:
        """Work on a labelling, which is changed in place when the work is done."""
        flat = as_flat_labels(x, self._costs)
        if self._has_begun:
            self._follow(flat)
        else:
            self._begin(flat)
            self._has_begun = True
        yield self
        np.copyto(flat, self._x)

    @abc.abstractmethod
    def _begin(self, x: np.ndarray) -> None: ...

    @abc.abstractmethod
    def _new_workspace(
        self, forests: PlannedForests, buffer: Callable[..., np.ndarray]
    ) -> LabelWorkspace | SpinWorkspace: ...

    def _load(self) -> None:
        """Have the kernels ready."""
        from treefield.kernels.simd.jit import as_compile_time

        none, no_heats, seed = np.zeros(0, np.int32), np.zeros(0), np.uint64(0)
        with as_compile_time():
            self._follow(none)
            self.update(none)
            self._draw(none, no_heats, no_heats, seed)
            self._solve(_no_forest(), no_heats, seed)

    def _follow(self, x: np.ndarray) -> None:
        from treefield.kernels.graph.site_costs import update_costs

        update_costs(self._graph, self._state, x)

    def update(self, order: np.ndarray) -> float:
        """Give each site in turn its cheapest label, the lowest among equals; returns the energy change."""
        from treefield.kernels.graph.site_costs import icm_sweep

        return icm_sweep(self._graph, self._state, order)

    def _draw(self, order: np.ndarray, heats: np.ndarray, limits: np.ndarray, seed: np.uint64) -> float:
        from treefield.kernels.graph.site_costs import sample_sweeps

        return sample_sweeps(self._graph, self._state, order, heats, limits, seed)

    def _solve(
        self,
        forests: PlannedForests,
        temperatures: np.ndarray,
        seed: np.uint64,
        check: bool = True,
        reverse: bool = False,
    ) -> float:
        from treefield.kernels.graph.site_costs import solve_trees

        work = forests.forest, forests.firsts, forests.dirty_bit, self._workspace(forests)
        return solve_trees(self._graph, self._state, *work, temperatures, seed, check, reverse)

    def _workspace(self, forests: PlannedForests) -> LabelWorkspace | SpinWorkspace:
        """The kernel's workspace: that of the forests, or a shared scratch buffer."""
        if forests.workspace is not None:
            return forests.workspace
        if forests.is_cached:
            forests.workspace = self._new_workspace(forests, lambda name, size, dtype=np.float64: np.zeros(size, dtype))
            return forests.workspace
        return self._new_workspace(forests, self._buffer)

    def _buffer(self, name: str, size: int, dtype: DTypeLike = np.float64) -> np.ndarray:
        if name not in self._buffers or len(self._buffers[name]) < size:
            self._buffers[name] = np.zeros(size, dtype)
        return self._buffers[name]

    def solve(self, forest: PlannedForests, check: bool = True, reverse: bool = False) -> float:
        """Solve every tree of a forest exactly; returns the energy change, never positive with `check`.

        With `reverse` the last tree comes first.
        """
        if not forest.is_cached:
            self._dirty[forest.sites] |= forest.dirty_bit
        return self._solve(forest, np.zeros(1), np.uint64(0), check, reverse)

    def draw_trees(self, forests: PlannedForests, temperatures: np.ndarray, seed: int) -> float:
        """Solve a random one of the forests for each temperature, with noise on its costs; returns the energy change.

        The noise is such that labels are drawn about as at that temperature.
        """
        return self._solve(forests, np.asarray(temperatures, np.float64), np.uint64(seed))

    def draw(self, order: np.ndarray, temperatures: np.ndarray, seed: int) -> float:
        """Draw each site in turn, once for each of the temperatures; returns the energy change.

        The probability of a label is proportional to exp(-cost / temperature); no temperature is 0.
        """
        heats = math.log2(math.e) / np.asarray(temperatures, np.float64)
        with np.errstate(divide="ignore"):
            limits = _NEGLIGIBLE / heats
        # of finite costs no two differ by half of what stands in for infinity
        return self._draw(order, heats, np.minimum(limits, self._costs.forbidden_cost / 2), np.uint64(seed))


class _LabelCosts(SiteCosts):
    """Costs of any labels. Memory: a float64 for each label, rounded up to eight, and again for each cached forest."""

    _state: ConditionalCosts

    def __init__(self, costs: GraphCosts) -> None:
        from treefield.kernels.graph.label_costs import ConditionalCosts

        super().__init__(costs)
        starts = padded(costs.label_counts)
        step = int(starts[1]) if costs.has_uniform_labels else 0
        own = self._x, self._dirty, self._pending_labels
        self._state = ConditionalCosts(np.empty(starts[-1]), step, starts, *own, self._rounder)
        self._load()

    def _begin(self, x: np.ndarray) -> None:
        from treefield.kernels.graph.label_costs import start_costs

        start_costs(self._graph, self._state, x)

    def _new_workspace(self, forests: PlannedForests, buffer: Callable[..., np.ndarray]) -> LabelWorkspace:
        from treefield.kernels.graph.label_costs import LabelWorkspace

        counts, forest = self._costs.label_counts, forests.forest
        if forests.places is None:
            if self._costs.has_uniform_labels:
                forests.places = (self._state.step * np.arange(len(forest.sites) + 1),) * 2
            else:
                parents = forest.sites[np.maximum(forest.parents, 0)]
                forests.places = padded(counts[forest.sites]), padded(counts[parents])
        places, starts = forests.places
        largest = np.diff(forest.trees).max(initial=0), np.diff(places[forest.trees]).max(initial=0)
        return LabelWorkspace(
            places=places,
            h=self._buffer("h", largest[1]),
            lows=self._buffer("lows", largest[0]),
            starts=starts,
            messages=buffer("messages", starts[-1]),
            old=self._buffer("old", len(forest.sites), np.int32),
            new=self._buffer("new", len(forest.sites), np.int32),
            out=self._buffer("out", self._costs.n_labels + LANES),
        )


class _SpinCosts(SiteCosts):
    """Costs of two labels at each site. Memory: three float64 for each site, one for each edge and two for its ends."""

    _state: Spins

    def __init__(self, costs: GraphCosts) -> None:
        from treefield.kernels.graph.spins import Spins

        super().__init__(costs)
        couplings, link_couplings = np.empty(len(costs.edges)), np.empty(len(self._graph.neighbours))
        self._state = Spins(np.empty(costs.size), self._x, self._dirty, self._pending_labels, couplings, link_couplings)
        self._load()

    def _begin(self, x: np.ndarray) -> None:
        from treefield.kernels.graph.spins import start_spins

        start_spins(self._graph, self._state, self._rounder)
        self._follow(x)

    def _new_workspace(self, forests: PlannedForests, buffer: Callable[..., np.ndarray]) -> SpinWorkspace:
        from treefield.kernels.graph.spins import SpinWorkspace

        size, known = len(forests.sites), self._state.couplings
        couplings = known[forests.forest.links >> 1] if len(known) else np.empty(size)
        labels = (buffer(name, size, np.int32) for name in ("old", "new"))
        return SpinWorkspace(couplings, buffer("rises", size), buffer("messages", size), *labels)


class SiteSampler:
    """Every site of a graph in turn, drawn given its neighbours."""

    def __init__(self, costs: GraphCosts) -> None:
        self._site_costs = site_costs(costs)
        self._order = np.arange(costs.size, dtype=np.int32)

    def sample(self, x: np.ndarray, temperature: float, rng: np.random.Generator) -> float:
        """Draw every site once given its neighbours, in place on an int32 labelling; returns the energy change.

        A temperature of 0 takes the cheapest label, that of infinity any that is not forbidden.
        """
        temperature = as_non_negative(temperature, "temperature", infinite=True)
        if temperature > 0:
            return self.cool(x, np.array([temperature]), rng)
        with self._site_costs.for_labelling(x) as costs:
            return costs.update(self._order)

    def cool(self, x: np.ndarray, temperatures: np.ndarray, rng: np.random.Generator) -> float:
        """The same for one temperature above 0 after the other."""
        with self._site_costs.for_labelling(x) as costs:
            return costs.draw(self._order, temperatures, int(rng.integers(2**63)))


def _no_forest() -> PlannedForests:
    from treefield.kernels.graph.forests import GraphForest

    none = np.zeros(0, np.int32)
    return PlannedForests([GraphForest(none, none, none, none, none, np.zeros(1, np.int32))])


def padded(counts: np.ndarray) -> np.ndarray:
    """Offsets of blocks padded to a multiple of LANES, and the end of the last."""
    return np.concatenate([[0], np.cumsum(-(-counts.astype(np.int64) // LANES) * LANES)])
