"""Dual-guided T-ILS: the search that `minimize` makes.

The dual (tree-reweighted messages) and the primal (jumps, swept and merged) work side by side, in rounds. A round is so
many iterations of the dual on one side; on the other the labelling that the dual suggested in the round before is swept
and merged, and so many jumps are made. Both sides do about the same work, in two threads where there are two: who does
it does not change the answer.

What the dual suggests is merged into a labelling of its own, which jumps do not touch, and that into the best one:
jumps lead the best labelling away from the dual's, and the more the two differ, the larger and the fewer are the
components in which one can be better than the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from treefield.moves.accept import PerComponent
from treefield.moves.mixed import MixedJump
from treefield.moves.protocol import work
from treefield.results import MAPResult
from treefield.solvers.run import CONVERGED, Run, begin
from treefield.validation import thread_count

_BURST = 4  # iterations of the dual in a round
_DUAL, _SWEEP, _JUMP = 0.8, 0.6, 10.0  # nanoseconds per site: of an iteration and a sweep by label, of jump and merge
_WINDOW = 5  # rounds in which the bound must have come so much closer,
_CLOSER = 0.005  # as a share of the gap, or the dual is refined, or rests
_LONGEST_REST = 64  # rounds
_PATIENCE = 100  # rounds without any gain, where nothing else limits them:
_PROGRESS = 0.01  # no new best, and a gap that has closed by less than this share of itself


def search_auto(
    mrf: Any, x0: Any, rng: Any, limits: dict[str, Any], threads: int | None, memory: str, arithmetic: str | None
) -> MAPResult:
    """Minimise within checked limits; without any `arithmetic` for the dual by jumps alone."""
    unlimited = all(limits[name] is None for name in ("maxiter", "time_limit", "patience"))
    run, rng = begin("auto", mrf, x0, rng, limits)
    workers = thread_count(threads)
    with run:
        dual = None if arithmetic is None else mrf.dual(arithmetic)
        search = _AutoSearch(run, dual, mrf.tree_set(mrf.search_trees, memory=memory, threads=threads), rng)
        with ThreadPoolExecutor(1, thread_name_prefix="treefield") as pool:
            while run.should_continue():
                search.round(pool if workers > 1 else None)
                if unlimited and search.idle >= _PATIENCE and run.should_continue():
                    run.stop(CONVERGED, f"no improvement in energy or bound for {_PATIENCE} rounds")
    return run.result()


class _AutoSearch:
    """The state of the search between its rounds."""

    def __init__(self, run: Run, dual: Any, trees: Any, rng: np.random.Generator) -> None:
        self._run, self._mrf, self._trees, self._rng = run, run.mrf, trees, rng
        self._jump, self._accept = MixedJump(), PerComponent()
        self._sweeps = 0
        self.idle = 0  # rounds since the energy or the bound has gained
        self._gap = math.inf  # when the bound last did
        self._dual = None if dual is None else _DualSide(dual, self._mrf)
        self._jumps = _Jumps(self._mrf)
        self._suggested = run.x if dual is None else run.x.copy()  # all that the dual has led to, merged

    def round(self, pool: ThreadPoolExecutor | None) -> None:
        """One round of both sides."""
        run, dual = self._run, self._dual
        if dual is not None and not dual.is_due(run.nit):
            dual = None
        burst = None
        if dual is not None and pool is not None:
            burst = pool.submit(dual.iterate, run.out_of_time)
        self._trees.alone = burst is None
        change = 0.0 if run.nit > 0 else self._descend(run.x)
        suggested = 0.0
        if self._dual is not None and self._dual.decoded is not None:
            suggested = self._take(self._dual.decoded)
            self._dual.decoded = None
        jumped = 0.0
        while self._jumps.go_on() and not run.out_of_time():
            jumped += self._jump_once()
        change += suggested + jumped
        if dual is not None:
            run.bound = dual.iterate(run.out_of_time) if burst is None else burst.result()
            dual.learn(run.energy + change, run.nit, -suggested, -jumped)
        run.record(change)
        self.idle = 0 if run.gained or self._closed() else self.idle + 1

    def _closed(self) -> bool:
        """Whether the gap is much smaller than when this was last so: a bound may creep for ever."""
        gap = self._run.best - self._run.bound
        closed = gap <= (1 - _PROGRESS) * self._gap and gap < self._gap
        if closed:
            self._gap = gap
        return closed

    def _descend(self, x: np.ndarray) -> float:
        self._sweeps += 1
        return self._trees.sweep(x, self._rng, reverse=self._sweeps % 2 == 0)

    def _take(self, decoded: np.ndarray) -> float:
        """Sweep what the dual suggests and merge it; returns the change of the energy."""
        self._descend(decoded)
        self._accept(self._mrf, self._suggested, decoded, self._rng)
        return self._accept(self._mrf, self._run.x, self._suggested, self._rng) or 0.0

    def _jump_once(self) -> float:
        """Jump, sweep and accept; returns the change of the energy."""
        y = self._jump(self._run.x, self._mrf, self._rng)
        self._descend(y)
        change = self._accept(self._mrf, self._run.x, y, self._rng) or 0.0
        spent = work(self._jump, self._mrf, 1)
        self._jump.learn(max(0.0, -change), spent)
        self._jumps.made(spent)
        return change


class _Jumps:
    """As many in a round as take the time of the dual's side, at least one."""

    def __init__(self, mrf: Any) -> None:
        if hasattr(mrf, "dual_work"):
            self._most, self._work = math.inf, _BURST * mrf.dual_work
        else:
            jump = _SWEEP + _JUMP / mrf.labels
            self._most, self._work = max(1, round((_BURST * _DUAL - jump) / jump)), math.inf
        self._begin()

    def _begin(self) -> None:
        self._count, self._spent = 0, 0.0

    def go_on(self) -> bool:
        """Whether there is another one in this round; if not, the next begins."""
        another = self._count == 0 or (self._count < self._most and self._spent < self._work)
        if not another:
            self._begin()
        return another

    def made(self, spent: float) -> None:
        """Told of each."""
        self._count += 1
        self._spent += spent


class _DualSide:
    """The dual, what it suggests, and when it works."""

    def __init__(self, dual: Any, mrf: Any) -> None:
        self._dual = dual
        self.decoded: np.ndarray | None = None
        self._x = np.empty(mrf.shape, np.int32)
        self._bound = -math.inf
        self._won: list[tuple[float, float]] = []  # by the dual and by jumps, in its last rounds
        self._rest = self._resume_round = 0

    def is_due(self, round_number: int) -> bool:
        """Whether it is its turn."""
        return round_number >= self._resume_round

    def iterate(self, out_of_time: Callable[[], bool]) -> float:
        """Some iterations; returns the bound."""
        for number in range(_BURST):
            if number > 0 and out_of_time():
                break
            self._dual.iterate(self._x)
        return self._dual.bound

    def learn(self, energy: float, round_number: int, suggested: float, jumped: float) -> None:
        """After a round in which suggestions and jumps have won so much energy: hand out what the dual suggests.

        Its messages are refined when neither the bound's rise nor the suggestions bring the two ends of the gap much
        closer any more; and it rests, for longer each time, while jumps do better.
        """
        self.decoded = self._x.copy()
        rise = self._dual.bound - self._bound if self._bound > -math.inf else math.inf
        self._bound = self._dual.bound
        self._won = [*self._won[1 - _WINDOW :], (rise + suggested, jumped)]
        own, other = (sum(column) for column in zip(*self._won, strict=True))
        if len(self._won) < _WINDOW or math.isinf(energy) or own >= _CLOSER * (energy - self._bound):
            self._rest = 0
        elif self._dual.refine():
            self._won.clear()
        elif own >= other:
            self._rest = 0
        else:
            self._rest = min(max(1, 2 * self._rest), _LONGEST_REST)
            self._resume_round = round_number + 1 + self._rest
