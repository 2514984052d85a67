"""The costs of a graph's labels given the labels around them, and what can be done by them: single-site search,
sampling, exact search on forests."""

from __future__ import annotations

import abc
import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from treefield.trees.schedules import LANES
from treefield.validation import in_place, real_scalar

_NEGLIGIBLE = 64.0  # a probability of two to minus that


def site_costs(mrf: Any) -> SiteCosts:
    """Those of a graph, by the kernels that suit it."""
    return _SpinCosts(mrf) if mrf.labels == 2 and mrf.same_count else _LabelCosts(mrf)


class SiteCosts(abc.ABC):
    """Kept from one labelling to the next: what is equal need not be computed again. Nor does it matter which have been
    before, since all sums are exact, of multiples of the model's unit."""

    def __init__(self, mrf: Any) -> None:
        self._mrf, self._graph = mrf, mrf.kernel_graph()
        self._rounder = 1.5 * 2.0**52 * mrf.unit
        self._x = np.zeros(mrf.size, np.int32)

    @contextlib.contextmanager
    def of(self, x: np.ndarray) -> Iterator[SiteCosts]:
        """Work on a labelling, which is changed in place when the work is done."""
        flat = in_place(x, self._mrf)
        self._follow(flat)
        yield self
        np.copyto(flat, self._x)

    @abc.abstractmethod
    def _follow(self, x: np.ndarray) -> None: ...

    @abc.abstractmethod
    def update(self, order: np.ndarray) -> float:
        """Give each site in turn its cheapest label, the lowest among equals; returns the energy change."""

    @abc.abstractmethod
    def solve(self, forest: Any) -> float:
        """Solve every tree of a forest exactly; returns the energy change, never positive."""

    @abc.abstractmethod
    def _draw(self, order: np.ndarray, heat: float, limit: float, seed: np.uint64) -> float: ...

    def draw(self, order: np.ndarray, temperature: float, seed: int) -> float:
        """Draw each site in turn with probabilities proportional to exp(-cost / temperature); returns the energy
        change. A temperature of 0 takes the cheapest label."""
        if temperature == 0:
            return self.update(order)
        heat = math.log2(math.e) / temperature
        # of finite costs no two differ by half of what stands in for infinity
        limit = min(_NEGLIGIBLE / heat if heat > 0 else math.inf, self._mrf.big / 2)
        return self._draw(order, heat, limit, np.uint64(seed))


class _LabelCosts(SiteCosts):
    """For any labels. Memory: a float64 for each label, rounded up to eight, and the same for those of a forest."""

    def __init__(self, mrf: Any) -> None:
        from treefield.kernels import conditional, induced
        from treefield.kernels.jit import loading

        super().__init__(mrf)
        starts = padded(mrf.label_counts)
        self._state = conditional.Conditional(np.empty(starts[-1]), starts, self._x, self._rounder)
        self._h, self._old, self._new = np.empty(0), np.empty(0, np.int32), np.empty(0, np.int32)
        self._out = np.zeros(mrf.labels + LANES)
        none = np.zeros(0, np.int32)
        with loading():
            conditional.follow(self._graph, self._state, none)
            conditional.icm_sweep(self._graph, self._state, none)
            conditional.sample_sweep(self._graph, self._state, none, 1.0, 1.0, np.uint64(0))
            nothing = induced.Forest(none, none, none, np.zeros(1, np.int32))
            places, work = np.zeros(0, np.int64), (self._h, self._old, self._new, self._out)
            induced.solve_trees(self._graph, self._state, nothing, places, *work)
        conditional.begin_costs(self._graph, self._state)

    def _follow(self, x: np.ndarray) -> None:
        from treefield.kernels.conditional import follow

        follow(self._graph, self._state, x)

    def update(self, order: np.ndarray) -> float:
        from treefield.kernels.conditional import icm_sweep

        return icm_sweep(self._graph, self._state, order)

    def _draw(self, order: np.ndarray, heat: float, limit: float, seed: np.uint64) -> float:
        from treefield.kernels.conditional import sample_sweep

        return sample_sweep(self._graph, self._state, order, heat, limit, seed)

    def solve(self, forest: Any) -> float:
        from treefield.kernels.induced import solve_trees

        places = padded(self._mrf.label_counts[forest.sites])
        if len(self._h) < places[-1]:
            self._h = np.empty(places[-1])
        if len(self._old) < len(forest.sites):
            self._old, self._new = np.empty((2, len(forest.sites)), np.int32)
        work = self._h, self._old, self._new, self._out
        return solve_trees(self._graph, self._state, forest, places, *work)


class _SpinCosts(SiteCosts):
    """For two labels at every site. Memory: three float64 for each site, one for each edge and two for its ends."""

    def __init__(self, mrf: Any) -> None:
        from treefield.kernels import induced, spins
        from treefield.kernels.jit import loading

        super().__init__(mrf)
        couplings, beside = np.empty(len(mrf.edges)), np.empty(len(self._graph.beside))
        self._spins = spins.Spins(np.empty(mrf.size), self._x, couplings, beside)
        self._d, self._old, self._new = np.empty(0), np.empty(0, np.int32), np.empty(0, np.int32)
        none = np.zeros(0, np.int32)
        with loading():
            spins.follow_spins(self._graph, self._spins, none)
            spins.update_spins(self._graph, self._spins, none)
            spins.sample_spins(self._graph, self._spins, none, 1.0, 1.0, np.uint64(0))
            nothing = induced.Forest(none, none, none, np.zeros(1, np.int32))
            spins.solve_spins(self._graph, self._spins, nothing, couplings[:0], self._d, self._old, self._new)
        spins.begin_spins(self._graph, self._spins, self._rounder)

    def _follow(self, x: np.ndarray) -> None:
        from treefield.kernels.spins import follow_spins

        follow_spins(self._graph, self._spins, x)

    def update(self, order: np.ndarray) -> float:
        from treefield.kernels.spins import update_spins

        return update_spins(self._graph, self._spins, order)

    def _draw(self, order: np.ndarray, heat: float, limit: float, seed: np.uint64) -> float:
        from treefield.kernels.spins import sample_spins

        return sample_spins(self._graph, self._spins, order, heat, limit, seed)

    def solve(self, forest: Any) -> float:
        from treefield.kernels.spins import solve_spins

        if len(self._d) < len(forest.sites):
            self._d, (self._old, self._new) = np.empty(len(forest.sites)), np.empty((2, len(forest.sites)), np.int32)
        couplings = self._spins.couplings[forest.links >> 1] if len(self._spins.couplings) else self._d
        return solve_spins(self._graph, self._spins, forest, couplings, self._d, self._old, self._new)


class SiteSampler:
    """Every site of a graph in turn, drawn given its neighbours."""

    def __init__(self, mrf: Any) -> None:
        self._costs = site_costs(mrf)
        self._order = np.arange(mrf.size, dtype=np.int32)

    def sample(self, x: np.ndarray, temperature: float, rng: np.random.Generator) -> float:
        """Draw every site once given its neighbours, in place on an int32 labelling; returns the energy change."""
        temperature = real_scalar(temperature, "temperature", infinite=True)
        if temperature < 0:
            raise ValueError(f"temperature must be at least 0, got {temperature:g}")
        with self._costs.of(x) as costs:
            return costs.draw(self._order, temperature, int(rng.integers(2**63)))


def padded(counts: np.ndarray) -> np.ndarray:
    """Where each of so many numbers start, if each lot begins at a multiple of eight; and where the last ends."""
    return np.concatenate([[0], np.cumsum(-(-counts.astype(np.int64) // LANES) * LANES)])
