"""The costs of a graph's labels given the labels around them, and what can be done by them: single-site search,
sampling, exact search on forests."""

from __future__ import annotations

import abc
import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from treefield.trees.schedules import LANES
from treefield.validation import as_flat_labels, as_real_scalar

KEPT = 31  # forests of a tree set that are solved only where something has changed
_NEGLIGIBLE = 64.0  # a probability of two to minus that


def site_costs(mrf: Any) -> SiteCosts:
    """Those of a graph, by the kernels that suit it."""
    return _SpinCosts(mrf) if mrf.labels == 2 and mrf.same_count else _LabelCosts(mrf)


class Forests:
    """Forests planned for search, as the kernel knows them: all their trees one after the other, and which of them are
    the first of a forest.

    With a `number`, below `KEPT`, that no other forest of a tree set has, whoever solves them keeps here what need not
    be computed again while it is the same.
    """

    def __init__(self, forests: list[Any], number: int = -1) -> None:
        from treefield.kernels.induced import Forest

        sizes = np.cumsum([0, *(len(forest.sites) for forest in forests)])
        counts = np.cumsum([0, *(len(forest.trees) - 1 for forest in forests)])

        def joined(name: str, end: int | None = None) -> np.ndarray:
            arrays = [getattr(forest, name)[:end] for forest in forests]
            if name in ("sites", "links") or len(forests) == 1:
                return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
            moved = [np.where(array < 0, -1, array + size) for array, size in zip(arrays, sizes, strict=False)]
            return np.concatenate(moved).astype(np.int32)

        arrays = {name: joined(name) for name in ("sites", "parents", "links", "kids", "siblings")}
        self.forest = Forest(**arrays, trees=np.append(joined("trees", -1), np.int32(sizes[-1])))
        self.firsts = counts.astype(np.int64)
        self.kept = 0 <= number < KEPT
        self.bit = np.uint32(1 << (number if self.kept else KEPT))
        self.space: Any = None
        self.places: Any = None  # where in such a space each place has its costs and its message

    @property
    def sites(self) -> np.ndarray:
        """The sites of all forests."""
        return self.forest.sites


class SiteCosts(abc.ABC):
    """Kept from one labelling to the next: what is equal need not be computed again. Nor does it matter which have been
    before, since all sums are exact, of multiples of the model's unit."""

    def __init__(self, mrf: Any) -> None:
        self._mrf, self._graph = mrf, mrf.kernel_graph()
        self._rounder = 1.5 * 2.0**52 * mrf.unit
        self._x = np.zeros(mrf.size, np.int32)
        self._dirty, self._aims = np.empty(mrf.size, np.uint32), np.full(mrf.size, -1, np.int32)
        self._state: Any = None
        self._rooms: dict[str, np.ndarray] = {}
        self._begun = False

    @contextlib.contextmanager
    def of(self, x: np.ndarray) -> Iterator[SiteCosts]:
        """Work on a labelling, which is changed in place when the work is done."""
        flat = as_flat_labels(x, self._mrf)
        if self._begun:
            self._follow(flat)
        else:
            self._begin(flat)
            self._begun = True
        yield self
        np.copyto(flat, self._x)

    @abc.abstractmethod
    def _begin(self, x: np.ndarray) -> None: ...

    @abc.abstractmethod
    def _new_space(self, forests: Forests, room: Callable[..., np.ndarray]) -> Any: ...

    def _load(self) -> None:
        """Have the kernels ready."""
        from treefield.kernels.jit import as_compile_time

        none, no_heats, seed = np.zeros(0, np.int32), np.zeros(0), np.uint64(0)
        with as_compile_time():
            self._follow(none)
            self.update(none)
            self._draw(none, no_heats, no_heats, seed)
            self._solve(_no_forest(), no_heats, seed)

    def _follow(self, x: np.ndarray) -> None:
        from treefield.kernels.site_costs import follow

        follow(self._graph, self._state, x)

    def update(self, order: np.ndarray) -> float:
        """Give each site in turn its cheapest label, the lowest among equals; returns the energy change."""
        from treefield.kernels.site_costs import icm_sweep

        return icm_sweep(self._graph, self._state, order)

    def _draw(self, order: np.ndarray, heats: np.ndarray, limits: np.ndarray, seed: np.uint64) -> float:
        from treefield.kernels.site_costs import sample_sweeps

        return sample_sweeps(self._graph, self._state, order, heats, limits, seed)

    def _solve(self, forests: Forests, temperatures: np.ndarray, seed: np.uint64) -> float:
        from treefield.kernels.site_costs import solve_trees

        work = forests.forest, forests.firsts, forests.bit, self._space(forests)
        return solve_trees(self._graph, self._state, *work, temperatures, seed)

    def _space(self, forests: Forests) -> Any:
        """The kernel's workspace: that of the forests, or a shared scratch buffer."""
        if forests.space is not None:
            return forests.space
        if forests.kept:
            forests.space = self._new_space(forests, lambda name, size, dtype=np.float64: np.zeros(size, dtype))
            return forests.space
        return self._new_space(forests, self._room)

    def _room(self, name: str, size: int, dtype: Any = np.float64) -> np.ndarray:
        if name not in self._rooms or len(self._rooms[name]) < size:
            self._rooms[name] = np.zeros(size, dtype)
        return self._rooms[name]

    def solve(self, forest: Forests) -> float:
        """Solve every tree of a forest exactly; returns the energy change, never positive."""
        if not forest.kept:
            self._dirty[forest.sites] |= forest.bit
        return self._solve(forest, np.zeros(1), np.uint64(0))

    def draw_trees(self, forests: Forests, temperatures: np.ndarray, seed: int) -> float:
        """Solve one of the forests, drawn anew, for each of the temperatures: with noise on every cost, as if its
        labels were drawn at that temperature; returns the energy change."""
        return self._solve(forests, np.asarray(temperatures, np.float64), np.uint64(seed))

    def draw(self, order: np.ndarray, temperatures: np.ndarray, seed: int) -> float:
        """For each of the temperatures, none of them 0, draw each site in turn with probabilities proportional to
        exp(-cost / temperature); returns the energy change."""
        heats = math.log2(math.e) / np.asarray(temperatures, np.float64)
        with np.errstate(divide="ignore"):
            limits = _NEGLIGIBLE / heats
        # of finite costs no two differ by half of what stands in for infinity
        return self._draw(order, heats, np.minimum(limits, self._mrf.big / 2), np.uint64(seed))


class _LabelCosts(SiteCosts):
    """For any labels. Memory: a float64 for each label, rounded up to eight, and the same for a forest that is kept."""

    def __init__(self, mrf: Any) -> None:
        from treefield.kernels.conditional import Conditional

        super().__init__(mrf)
        starts = padded(mrf.label_counts)
        step = int(starts[1]) if mrf.same_count else 0
        own = self._x, self._dirty, self._aims
        self._state = Conditional(np.empty(starts[-1]), step, starts, *own, self._rounder)
        self._load()

    def _begin(self, x: np.ndarray) -> None:
        from treefield.kernels.conditional import begin_costs

        begin_costs(self._graph, self._state, x)

    def _new_space(self, forests: Forests, room: Callable[..., np.ndarray]) -> Any:
        from treefield.kernels.conditional import ForestSpace

        counts, forest = self._mrf.label_counts, forests.forest
        if forests.places is None:
            if self._mrf.same_count:
                forests.places = (self._state.step * np.arange(len(forest.sites) + 1),) * 2
            else:
                parents = forest.sites[np.maximum(forest.parents, 0)]
                forests.places = padded(counts[forest.sites]), padded(counts[parents])
        places, starts = forests.places
        largest = np.diff(forest.trees).max(initial=0), np.diff(places[forest.trees]).max(initial=0)
        return ForestSpace(
            places=places,
            h=self._room("h", largest[1]),
            lows=self._room("lows", largest[0]),
            starts=starts,
            messages=room("messages", starts[-1]),
            old=self._room("old", len(forest.sites), np.int32),
            new=self._room("new", len(forest.sites), np.int32),
            out=self._room("out", self._mrf.labels + LANES),
        )


class _SpinCosts(SiteCosts):
    """For two labels at every site. Memory: three float64 for each site, one for each edge and two for its ends."""

    def __init__(self, mrf: Any) -> None:
        from treefield.kernels.spins import Spins

        super().__init__(mrf)
        couplings, beside = np.empty(len(mrf.edges)), np.empty(len(self._graph.beside))
        self._state = Spins(np.empty(mrf.size), self._x, self._dirty, self._aims, couplings, beside)
        self._load()

    def _begin(self, x: np.ndarray) -> None:
        from treefield.kernels.spins import begin_spins

        begin_spins(self._graph, self._state, self._rounder)
        self._follow(x)

    def _new_space(self, forests: Forests, room: Callable[..., np.ndarray]) -> Any:
        from treefield.kernels.spins import SpinSpace

        size, known = len(forests.sites), self._state.couplings
        couplings = known[forests.forest.links >> 1] if len(known) else np.empty(size)
        labels = (room(name, size, np.int32) for name in ("old", "new"))
        return SpinSpace(couplings, room("d", size), room("messages", size), *labels)


class SiteSampler:
    """Every site of a graph in turn, drawn given its neighbours."""

    def __init__(self, mrf: Any) -> None:
        self._costs = site_costs(mrf)
        self._order = np.arange(mrf.size, dtype=np.int32)

    def sample(self, x: np.ndarray, temperature: float, rng: np.random.Generator) -> float:
        """Draw every site once given its neighbours, in place on an int32 labelling; returns the energy change. A
        temperature of 0 takes the cheapest label, that of infinity any that is not forbidden."""
        temperature = as_real_scalar(temperature, "temperature", infinite=True)
        if temperature < 0:
            raise ValueError(f"temperature must be at least 0, got {temperature:g}")
        if temperature > 0:
            return self.cool(x, np.array([temperature]), rng)
        with self._costs.of(x) as costs:
            return costs.update(self._order)

    def cool(self, x: np.ndarray, temperatures: np.ndarray, rng: np.random.Generator) -> float:
        """The same for one temperature above 0 after the other."""
        with self._costs.of(x) as costs:
            return costs.draw(self._order, temperatures, int(rng.integers(2**63)))


def _no_forest() -> Forests:
    from treefield.kernels.induced import Forest

    none = np.zeros(0, np.int32)
    return Forests([Forest(none, none, none, none, none, np.zeros(1, np.int32))])


def padded(counts: np.ndarray) -> np.ndarray:
    """Offsets of blocks padded to a multiple of LANES, and the end of the last."""
    return np.concatenate([[0], np.cumsum(-(-counts.astype(np.int64) // LANES) * LANES)])
