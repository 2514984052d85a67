"""A search of a model in memory: its labelling, the best one so far, and what a checkpoint keeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Unpack

import numpy as np

from treefield.kernels.simd.jit import as_compile_time
from treefield.protocols import DualMessages, Limits, Model, Seed, Start, StartOrResult, TreeSet
from treefield.results import MAPResult, Status, tightened
from treefield.solvers.checkpoint import (
    Checkpoint,
    Saved,
    as_saved_labelling,
    check_stream,
    check_trace,
    compact_labellings,
)
from treefield.solvers.loop import Loop, LoopOptions, Timer
from treefield.validation import (
    as_choice,
    as_count,
    as_fields,
    as_generator,
    as_labelling,
    as_real_scalar,
    check_has_lines,
)

ROUNDING = 1e-9  # relative to the energy: changes below may be rounding
_SCAN_LINE_NU = 0.4  # the paper's
_LARGEST_ROUNDING = 1e-7  # relative gap: above, there is more than rounding


class Run(Loop):
    """One run of a solver that changes its labelling `x` in place.

    ``with run: while run.should_continue(): ...; run.record(change)``; then `result`. A solver that can raise the
    energy calls ``keep_best()``: then the best labelling is kept besides `x`. `limits` are those of `Loop`.
    """

    def __init__(self, method: str, mrf: Model, x: np.ndarray, timer: Timer, **limits: Unpack[LoopOptions]) -> None:
        super().__init__(method, timer, **limits)
        self.mrf, self.x = mrf, x
        self.energy = _energy(mrf, x)
        self.margin = 0.0  # how much of the gap rounding in float64 may account for
        self._summed = self.energy  # the last energy that was summed afresh
        self._best: np.ndarray | None = None
        self._best_rank = self._rank()
        self._is_truncated = False
        self._add_row()

    def keep_best(self) -> None:
        """From now on the energy may rise: keep the best labelling besides `x`."""
        self._best = self.x.copy()

    def _is_within_rounding(self) -> bool:
        """Whether rounding may account for all that is left of the gap: of integers nothing is rounded."""
        if not self.gap <= _LARGEST_ROUNDING or self.mrf.backend.is_whole:
            return False
        return self.best - self.bound <= self.margin + self.mrf.backend.rounding

    def should_truncate(self) -> bool:
        """Whether to end an unfinished iteration, because the time is over or the search is interrupted; such an
        iteration is not saved."""
        is_over = self.is_out_of_time() or bool(self._interrupts.pending)
        self._is_truncated = self._is_truncated or is_over
        return is_over

    def interrupt(self, how: str) -> None:
        """Let no further iteration start: the search was interrupted."""
        if self._has_searched:
            super().interrupt(how)
        else:
            self.stop(
                Status.INTERRUPTED,
                f"{how} before the end of the first iteration; the labelling is the start, or little better",
            )

    def record(self, change: float | None, *, iterations: int = 1) -> bool:
        """Record the energy change of an iteration, None if unknown, and call the callback; returns if the energy fell.

        `iterations` is 0 for the first local search.

        A change that may be rounding is not trusted: the energy is then summed afresh, so that no run goes round in
        circles between labellings of equal energy.
        """
        fell = change is None or change < 0
        if (
            change is None
            or self.mrf.backend.forbidden_cost < math.inf
            or (fell and -change <= ROUNDING * abs(self.energy))
        ):
            before, self._summed = self._summed, _energy(self.mrf, self.x)
            self.energy = self._summed
            fell = fell and (self._summed < before or math.isinf(self._summed))
        else:
            self.energy += change
        self._note_best(self.nit + iterations)
        self._end_iteration(iterations)
        return fell

    @property
    def best(self) -> float:
        """The best energy so far."""
        forbidden, finite = self._best_rank
        return math.inf if forbidden else finite

    @property
    def has_gained(self) -> bool:
        """Whether the last iteration has found a new best, by more than rounding."""
        return self.nit == self._last_gain

    def _rank(self) -> tuple[int, float]:
        """The key by which labellings are compared: the number of forbidden costs, then the energy."""
        if self.mrf.backend.forbidden_cost == math.inf:
            return 0, self.energy
        finite, forbidden = self.mrf.backend.energy_parts(self.x)
        return forbidden, finite

    def _note_best(self, iteration: int) -> None:
        rank, (forbidden, finite) = self._rank(), self._best_rank
        if rank >= self._best_rank:
            return
        if rank[0] < forbidden or rank[1] < finite - ROUNDING * abs(finite):
            self._last_gain = iteration
        self._best_rank = rank
        if self._best is not None:
            np.copyto(self._best, self.x)

    def result(self, *, copy: bool = False) -> MAPResult:
        """The result so far; with `copy` its labelling does not change any more."""
        labelling = self.x if self._best is None else self._best
        finite, forbidden = self.mrf.backend.energy_parts(labelling)
        mask = self.mrf.backend.mask
        x = labelling.copy() if copy else labelling
        if mask is not None:
            x = np.where(mask, labelling, np.int32(0))
        return self._make_result(x, math.inf if forbidden else finite, forbidden, is_last_energy=self._best is None)

    def save(
        self,
        file: Checkpoint | None,
        rng: np.random.Generator,
        state: Callable[[], tuple[dict[str, object], dict[str, np.ndarray]]],
    ) -> None:
        """Write a checkpoint, if there is a file for it and it is time.

        It holds the run, the generator, and the numbers and arrays of `state()`, which the solver needs to continue
        exactly.
        """
        if file is None or self._is_truncated or not (self._message or file.is_due):
            return
        best = self.x if self._best is None else self._best
        mine = {"nit": self.nit, "best_rank": self._best_rank, "summed": self._summed, "gained": self._last_gain}
        labellings = {"x": compact_labellings(self.x, self.mrf), "best": compact_labellings(best, self.mrf)}
        numbers, arrays = state()
        trace = {"trace": self._trace[: self._rows]}
        file.save({"run": mine, "rng": rng.bit_generator.state, "search": numbers}, labellings | trace | arrays)

    def resume(
        self,
        saved: Saved,
        rng: np.random.Generator,
        restore: Callable[[object, dict[str, np.ndarray]], None],
    ) -> None:
        """Continue from a checkpoint that `save` wrote.

        Checks everything, has the solver `restore` its numbers and arrays, and sets the generator last. If anything is
        wrong, raises an error that names the file, and leaves the generator unchanged.
        """
        with saved.explain_errors():
            mine, stream, search = as_fields(saved.state, "state", "run", "rng", "search")
            check_stream(stream, rng)
            self._restore(mine, saved.arrays)
            restore(search, saved.arrays)
            rng.bit_generator.state = stream

    def _restore(self, numbers: object, arrays: dict[str, np.ndarray]) -> None:
        nit, rank, summed, gained = as_fields(numbers, "run", "nit", "best_rank", "summed", "gained")
        self.nit = as_count(nit, "nit")
        if not isinstance(rank, list) or len(rank) != 2:
            raise ValueError(f"best_rank must be two numbers, got {rank!r}")
        self._best_rank = as_count(rank[0], "best_rank[0]"), as_real_scalar(rank[1], "best_rank[1]", infinite=True)
        if self._best_rank[0] > 0 and self.mrf.backend.forbidden_cost == math.inf:
            raise ValueError(f"best_rank counts {rank[0]} forbidden costs, but the model has none")
        self._summed = as_real_scalar(summed, "summed", infinite=True)
        self._last_gain = as_count(gained, "gained")
        if self._last_gain > self.nit:
            raise ValueError(f"gained must be at most nit = {self.nit}, got {gained}")
        np.copyto(self.x, as_saved_labelling(arrays["x"], self.mrf, "x"))
        best = as_saved_labelling(arrays["best"], self.mrf, "best")
        if self._best is not None:
            np.copyto(self._best, best)
        elif not np.array_equal(best, self.x):
            raise ValueError("best differs from x, which is the best labelling of this solver")
        check_trace(arrays["trace"], self.nit, self.best)
        self._trace, self._rows = arrays["trace"].copy(), len(arrays["trace"])
        self.bound = float(self._trace["bound"][-1])
        self.energy = float(self._trace["energy"][-1])
        self._timer = Timer(float(self._trace["seconds"][-1]))
        self._has_searched = True


def _energy(mrf: Model, x: np.ndarray) -> float:
    """`mrf.energy` of a labelling known to be valid, without a copy of it."""
    finite, forbidden = mrf.backend.energy_parts(x)
    return math.inf if forbidden else finite


def exact_bound(mrf: Model, energy: float) -> float:
    """The lower bound that an exact method proves by finding a labelling of that energy."""
    return tightened(energy - mrf.backend.rounding, mrf.backend.is_whole)


def begin(
    method: str, mrf: Model, x0: StartOrResult, rng: Seed, limits: Limits, saved: Saved | None = None
) -> tuple[Run, np.random.Generator]:
    """A run within checked limits, and its generator.

    It starts from `x0`, or with zeros if it is to be resumed from `saved`.
    """
    generator = as_generator(rng)
    with as_compile_time():
        mrf.backend.energy_parts(np.zeros(0, np.int32))
    timer = Timer()
    x = starting_labelling(mrf, x0, generator) if saved is None else np.zeros(mrf.shape, np.int32)
    return Run(method, mrf, x, timer, **limits), generator


def descend(run: Run, prepare: Callable[[], TreeSet], rng: np.random.Generator, what: str) -> MAPResult:
    """Prepare a tree set and sweep it, in alternating directions, until no tree lowers the energy or a limit ends it.

    `what` is the word for a tree in the message.
    """
    with run:
        trees, idle = prepare(), 0
        while run.should_continue():
            idle = 0 if run.record(trees.sweep(run.x, rng, reverse=run.nit % 2 == 1)) else idle + 1
            if idle >= trees.patience and run.should_continue():
                end = f"no {what} lowers the energy any more"
                if trees.patience > 1:
                    end = f"{idle} sweeps over {what}s drawn afresh have not lowered the energy"
                run.stop(Status.CONVERGED, f"converged: {end}")
    return run.result()


def starting_labelling(mrf: Model, x0: StartOrResult, rng: np.random.Generator) -> np.ndarray:
    """A new int32 labelling: the given one, "random", "unary" (each site's cheapest label) or "scan-line"."""
    check_start(mrf, x0)
    if not isinstance(x0, str):
        return as_labelling(split_start(x0)[0], mrf.backend, "x0")
    if x0 == "unary":
        return mrf.backend.best_labels()
    if x0 == "scan-line":
        return mrf.backend.solve_lines(_SCAN_LINE_NU, -1)
    return mrf.backend.random_labels(rng)


def check_start(mrf: Model, x0: StartOrResult) -> None:
    """Raise for a start that cannot be used, before any work."""
    if isinstance(x0, str):
        as_choice(x0, "x0", ("random", "unary", "scan-line"))
        if x0 == "scan-line":
            check_has_lines(mrf, 'x0="scan-line" solves the lines of a grid', 'use "unary" or "random"')
    elif x0 is None:
        raise TypeError('x0 must be a labelling, "random", "unary" or "scan-line", got None')
    else:
        as_labelling(split_start(x0)[0], mrf.backend, "x0", copy=False)


def split_start(x0: StartOrResult) -> tuple[Start, DualMessages | None]:
    """The labelling of a result, and its messages if it has any; any other start unchanged, and None."""
    return (x0.x, x0.get("messages")) if isinstance(x0, MAPResult) else (x0, None)
