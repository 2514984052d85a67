"""Dual-guided T-ILS: the search of ``minimize(method="auto")``.

The dual (tree-reweighted messages) and the primal (jumps, swept and merged) work side by side, in rounds. In each round
the dual does a fixed number of iterations; meanwhile the primal sweeps and merges the labelling that the dual decoded
in the round before, then jumps. Both do about the same amount of work, in two threads if there are two. The number of
threads does not change the answer.

Decoded labellings are merged into a separate one, `_suggested`, which jumps do not change, and that is merged into the
best labelling. Jumps lead the best labelling away from the dual's; the more the two differ, the larger and fewer are
the components in which one can be better than the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from treefield.moves.accept import PerComponent
from treefield.protocols import Dual, Limits, Model, Seed, StartOrResult, TreeSet
from treefield.results import MAPResult, Status, amend_result
from treefield.solvers.checkpoint import as_saved_labelling, compact_labellings, open_checkpoint
from treefield.solvers.run import Run, begin, split_start
from treefield.solvers.steps import Steps, choose_wide_trees, usual_steps
from treefield.validation import as_count, as_fields, as_non_negative, as_real_scalar, as_thread_count

_DUAL_ITERATIONS = 4  # in a round
_FIRST_SWEEPS = 8.0  # before the dual starts, wide trees whose sweep takes at most so many usual ones
_DUAL, _SWEEP, _JUMP = 0.8, 0.6, 10.0  # nanoseconds per site: of an iteration and a sweep by label, of jump and merge
_WINDOW = 5  # rounds: if within these the dual has not closed
_CLOSER = 0.005  # of the gap, it is refined, or rests
_LONGEST_REST = 64  # rounds
_FEWEST_IDLE = 10  # rounds without any gain, where nothing else limits them, if all steps have been tried
_LEAST_IDLE_WORK = 1e8  # and so much work, about a tenth of a second
_PATIENCE = 100  # such rounds in any case
_PROGRESS = 0.01  # no new best, and a gap that has closed by less than this share of itself


def search_auto(
    mrf: Model,
    x0: StartOrResult,
    rng: Seed,
    limits: Limits,
    *,
    threads: int | None,
    memory: str,
    arithmetic: str | None,
    room: float,
    checkpoint: str | None,
    keep_messages: bool,
) -> MAPResult:
    """Minimise within checked limits; without an `arithmetic` for the dual by jumps alone.

    Wide trees may use as many bytes as there is `room`.
    """
    x0, messages = split_start(x0)
    is_unlimited = all(limits[name] is None for name in ("maxiter", "time_limit", "patience"))
    workers = as_thread_count(threads)
    wide_trees = choose_wide_trees(mrf, room, workers)
    widths = [wide.width for wide, _ in wide_trees]
    settings: dict[str, object] = {"memory": memory, "arithmetic": arithmetic, "widths": widths}
    file, saved = open_checkpoint(checkpoint, "auto", mrf, settings, {"suggested": 1, "decoded": 1}, ["messages"])
    run, generator = begin("auto", mrf, x0, rng, limits, saved)
    dual = None
    with run:
        dual = None if arithmetic is None else mrf.backend.dual(arithmetic)
        if dual is not None and messages is not None and saved is None:
            dual.start_from(messages)
        trees = mrf.backend.tree_set(mrf.backend.search_trees, memory=memory, threads=threads)
        steps = Steps(usual_steps(mrf, trees, wide_trees, spares_memory=room < math.inf))
        search = _AutoSearch(run, dual, trees, steps, generator)
        if saved is not None:
            run.resume(saved, generator, search.restore)
        with ThreadPoolExecutor(1, thread_name_prefix="treefield") as pool:
            while run.should_continue():
                search.round(pool if workers > 1 else None)
                if is_unlimited and search.is_stuck and run.should_continue():
                    run.stop(Status.CONVERGED, f"no improvement in energy or bound for {search.idle} rounds")
                run.save(file, generator, search.state)
        run.save(file, generator, search.state)
    result = run.result()
    return amend_result(result, messages=dual.get_messages()) if keep_messages and dual is not None else result


class _AutoSearch:
    """The state of the search between its rounds."""

    def __init__(self, run: Run, dual: Dual | None, trees: TreeSet, steps: Steps, rng: np.random.Generator) -> None:
        self._run, self._mrf, self._trees, self._steps, self._rng = run, run.mrf, trees, steps, rng
        self._accept = PerComponent()
        self._sweeps = 0
        self.idle = 0  # rounds since the energy or the bound improved
        self._gap = math.inf  # when the bound last did
        self._work_at_gain = 0.0
        self._dual = None if dual is None else _DualSide(dual, self._mrf, yields=len(steps.steps) > 1)
        self._budget = _JumpBudget(self._mrf)
        dual_work = self._mrf.backend.dual_work
        per_iteration = self._mrf.size * self._mrf.n_labels if dual_work is None else dual_work
        self._dual_work = _DUAL_ITERATIONS * per_iteration
        self._suggested = run.x if dual is None else run.x.copy()  # all that the dual has suggested, merged

    def round(self, pool: ThreadPoolExecutor | None) -> None:
        """One round of both sides; the first is a few sweeps."""
        run, dual = self._run, self._dual
        if run.nit == 0:
            run.record(self._begin())
            return
        if dual is not None and not dual.is_due(run.nit):
            dual = None
        iterations = None
        if dual is not None and pool is not None:
            iterations = pool.submit(dual.iterate, run.should_truncate)
        self._trees.has_all_cores = iterations is None
        suggested = 0.0
        if self._dual is not None and self._dual.decoded is not None:
            suggested = self._merge_decoded(self._dual.decoded)
            self._dual.decoded = None
        jumped = 0.0
        while self._budget.allows_another() and not run.should_truncate():
            jumped += self._take_step(is_shared=dual is not None)
        change = suggested + jumped
        if dual is not None:
            run.bound = dual.iterate(run.should_truncate) if iterations is None else iterations.result()
            run.margin = dual.margin
            dual.learn(run.energy + change, run.nit, -suggested, -jumped)
            self._steps.total += self._dual_work
            if run.would_converge(run.energy + change) and dual.decoded is not None:
                change += self._merge_decoded(dual.decoded)
                dual.decoded = None
        run.record(change)
        self.idle += 1
        if run.has_gained or self._has_gap_closed():
            self.idle, self._work_at_gain = 0, self._steps.total

    @property
    def is_stuck(self) -> bool:
        """Whether many rounds, or half of the work with all steps tried, have brought nothing."""
        wasted = self._steps.total - self._work_at_gain
        is_exhausted = self._steps.all_tried and wasted > max(self._work_at_gain, _LEAST_IDLE_WORK)
        has_wide_trees = len(self._steps.steps) > 1
        return self.idle >= _PATIENCE or (has_wide_trees and self.idle >= _FEWEST_IDLE and is_exhausted)

    def state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        """The numbers and arrays that a checkpoint keeps in addition to the run."""
        numbers = {
            "sweeps": self._sweeps,
            "idle": self.idle,
            "gap": self._gap,
            "work_at_gain": self._work_at_gain,
            "steps": self._steps.get_state(),
        }
        if self._dual is None:
            decoded, messages = None, np.zeros(0, np.uint8)
        else:
            decoded = self._dual.decoded
            numbers["dual"], messages = self._dual.state()
        numbers["has_decoded"] = decoded is not None
        labellings = {"suggested": self._suggested, "decoded": self._suggested if decoded is None else decoded}
        arrays = {name: compact_labellings([x], self._mrf) for name, x in labellings.items()}
        return numbers, arrays | {"messages": messages}

    def restore(self, numbers: object, arrays: dict[str, np.ndarray]) -> None:
        """Restore a state that `state` returned, or raise an error."""
        names = ["sweeps", "idle", "gap", "work_at_gain", "steps", "has_decoded"]
        if self._dual is None:
            sweeps, idle, gap, work_at_gain, steps, has_decoded = as_fields(numbers, "search", *names)
        else:
            sweeps, idle, gap, work_at_gain, steps, has_decoded, dual = as_fields(numbers, "search", *names, "dual")
            self._dual.restore(dual, arrays["messages"], self._run.nit)
            decoded = as_saved_labelling(arrays["decoded"][0], self._mrf, "decoded")
            self._dual.decoded = decoded if has_decoded is True else None
            np.copyto(self._suggested, as_saved_labelling(arrays["suggested"][0], self._mrf, "suggested"))
        self._sweeps, self.idle = as_count(sweeps, "sweeps"), as_count(idle, "idle")
        self._gap = as_real_scalar(gap, "gap", infinite=True)
        self._work_at_gain = as_non_negative(work_at_gain, "work_at_gain")
        self._steps.set_state(steps)

    def _has_gap_closed(self) -> bool:
        """Whether the gap has closed by a share since the last time it had: a bound may creep for ever."""
        gap = self._run.best - self._run.bound
        closed = gap <= (1 - _PROGRESS) * self._gap and gap < self._gap
        if closed:
            self._gap = gap
        return closed

    def _descend(self, x: np.ndarray) -> float:
        self._sweeps += 1
        return self._trees.sweep(x, self._rng, reverse=self._sweeps % 2 == 0)

    def _merge_decoded(self, decoded: np.ndarray) -> float:
        """Sweep the labelling that the dual has decoded and merge it; returns the change of the energy."""
        self._descend(decoded)
        self._accept(self._mrf, self._suggested, decoded, self._rng)
        return self._accept(self._mrf, self._run.x, self._suggested, self._rng) or 0.0

    def _begin(self) -> float:
        """The first sweeps, before the dual has started: usual trees, then wider ones if these are cheap."""
        change = self._descend(self._run.x)
        self._steps.total += self._mrf.backend.sweep_work
        for number, step in enumerate(self._steps.steps):
            if (
                step.jump is None
                and step.work <= _FIRST_SWEEPS * self._mrf.backend.sweep_work
                and not self._run.should_truncate()
            ):
                change += self._take(number)
        return change

    def _take_step(self, *, is_shared: bool) -> float:
        """Take the step that seems to pay most; returns the change of the energy."""
        most_work = self._run.work_left(self._steps.total)
        number = self._steps.choose(self._rng, is_shared=is_shared, most_work=most_work)
        change = self._take(number)
        self._budget.record(self._steps.steps[number].work)
        return change

    def _take(self, number: int) -> float:
        self._sweeps += 1
        change = self._steps.steps[number].take(
            self._run.x, self._rng, reverse=self._sweeps % 2 == 0, has_all_cores=self._trees.has_all_cores
        )
        self._steps.learn(number, max(0.0, -change))
        return change


class _JumpBudget:
    """How many jumps a round has: as many as take the time of the dual's iterations, at least one."""

    def __init__(self, mrf: Model) -> None:
        dual_work = mrf.backend.dual_work
        if dual_work is not None:
            self._most, self._work = math.inf, _DUAL_ITERATIONS * dual_work
        else:
            jump = _SWEEP + _JUMP / mrf.n_labels
            self._most, self._work = max(1, round((_DUAL_ITERATIONS * _DUAL - jump) / jump)), math.inf
        self._reset()

    def _reset(self) -> None:
        self._count, self._spent = 0, 0.0

    def allows_another(self) -> bool:
        """Whether there is another jump in this round; if not, the next round begins."""
        is_allowed = self._count == 0 or (self._count < self._most and self._spent < self._work)
        if not is_allowed:
            self._reset()
        return is_allowed

    def record(self, spent: float) -> None:
        """Count a jump that took this much work."""
        self._count += 1
        self._spent += spent


class _DualSide:
    """The dual, the labelling that it decoded last, and the rounds in which it rests.

    If it `yields`, it rests whenever it hardly closes the gap; otherwise only while jumps do better.
    """

    def __init__(self, dual: Dual, mrf: Model, *, yields: bool) -> None:
        self._dual, self._yields = dual, yields
        self.decoded: np.ndarray | None = None
        self._x = np.empty(mrf.shape, np.int32)
        self._bound = -math.inf
        self._won: list[tuple[float, float]] = []  # by the dual and by jumps, in its last rounds
        self._rest = self._resume_round = 0

    @property
    def margin(self) -> float:
        """How much of the gap rounding may account for."""
        return self._dual.margin

    def state(self) -> tuple[dict[str, object], np.ndarray]:
        """The numbers and the messages that a checkpoint keeps."""
        arithmetic, messages = self._dual.get_state()
        numbers = {"arithmetic": arithmetic, "bound": self._dual.bound, "margin": self._dual.margin}
        return numbers | {"won": self._won, "rest": self._rest, "resume_round": self._resume_round}, messages

    def restore(self, numbers: object, messages: np.ndarray, nit: int) -> None:
        """Restore a state that `state` returned, or raise an error."""
        names = "arithmetic", "bound", "margin", "won", "rest", "resume_round"
        arithmetic, bound, margin, won, rest, resume_round = as_fields(numbers, "dual", *names)
        if not isinstance(won, list) or len(won) > _WINDOW or any(len(pair) != 2 for pair in won):
            raise ValueError(f"won must be at most {_WINDOW} pairs of numbers")
        first, second = ([as_real_scalar(pair[k], "won", infinite=True) for pair in won] for k in (0, 1))
        self._won = list(zip(first, second, strict=True))
        self._rest, self._resume_round = as_count(rest, "rest"), as_count(resume_round, "resume_round")
        if self._rest > _LONGEST_REST or self._resume_round > nit + 1 + _LONGEST_REST:
            raise ValueError(f"the dual rests {rest} rounds until round {resume_round}, which no search does")
        self._bound = as_real_scalar(bound, "bound", infinite=True)
        self._dual.set_state(str(arithmetic), messages, self._bound)
        self._dual.margin = as_real_scalar(margin, "margin")

    def is_due(self, round_number: int) -> bool:
        """Whether the dual works in this round."""
        return round_number >= self._resume_round

    def iterate(self, should_truncate: Callable[[], bool]) -> float:
        """Do the iterations of a round; returns the bound."""
        for number in range(_DUAL_ITERATIONS):
            if number > 0 and should_truncate():
                break
            self._dual.iterate(self._x)
        return self._dual.bound

    def learn(self, energy: float, round_number: int, suggested: float, jumped: float) -> None:
        """End a round: keep the decoded labelling, and decide when the dual works again.

        `suggested` and `jumped` are what merging and jumps have taken off the energy in this round. The messages are
        refined when neither the bound nor the decoded labellings close much of the gap any more; and the dual rests,
        for longer each time, while jumps do better.
        """
        self.decoded = self._x.copy()
        rise = self._dual.bound - self._bound if self._bound > -math.inf else math.inf
        self._bound = self._dual.bound
        self._won = [*self._won[1 - _WINDOW :], (rise + suggested, jumped)]
        own, other = (sum(column) for column in zip(*self._won, strict=True))
        if len(self._won) < _WINDOW or math.isinf(energy) or own >= _CLOSER * (energy - self._bound):
            self._rest = 0
        elif self._dual.refine(energy - self._bound):
            self._won.clear()
        elif own >= other and not self._yields:
            self._rest = 0
        else:
            self._rest = min(max(1, 2 * self._rest), _LONGEST_REST)
            self._resume_round = round_number + 1 + self._rest
