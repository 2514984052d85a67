"""What all solvers share: the clock, the limits, the trace, the best labelling, the callback, the interrupt, the
progress bar, what a checkpoint keeps, and the result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from treefield.kernels.jit import as_compile_time, compile_time
from treefield.results import TRACE, MAPResult, relative_gap, tightened
from treefield.solvers.checkpoint import Checkpoint, Saved, as_saved_labelling, check_stream, check_trace, compact
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.progress import Bar
from treefield.solvers.start import starting_labelling
from treefield.validation import as_count, as_generator, as_real_scalar, fields

ROUNDING = 1e-9  # relative to the energy: changes below may be rounding
CONVERGED, MAXITER, TIME_LIMIT, CALLBACK, INTERRUPTED, FORBIDDEN = range(6)


class Timer:
    """Seconds since it was made and those `spent` before; compilation, in the thread that made it, left out."""

    def __init__(self, spent: float = 0.0) -> None:
        self._compile_time = compile_time()
        self._start = time.perf_counter() - self._compile_time.seconds - spent

    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._compile_time.seconds - self._start


class Run:
    """One run of a solver that changes its labelling `x` in place.

    ``with run: while run.should_continue(): ...; run.record(change)``; then `result`. The context swallows Ctrl-C. A
    solver that can raise the energy calls ``keep_best()``: then the best labelling is kept beside `x`.
    """

    def __init__(
        self,
        method: str,
        mrf: Any,
        x: np.ndarray,
        timer: Timer,
        *,
        maxiter: int | None = None,
        time_limit: float | None = None,
        callback: Callable[[MAPResult], Any] | None = None,
        patience: int | None = None,
        tol: float | None = None,
        progress: bool | Bar = False,
        interrupts: Interrupts | None = None,
    ) -> None:
        self.mrf, self.x, self.method = mrf, x, method
        self.energy = _energy(mrf, x)
        self.nit = 0
        self.bound = math.nan  # no energy is lower
        self.figures: dict[str, float] = {}  # what the progress bar shows beside the energies
        self._timer, self._maxiter, self._time_limit, self._callback = timer, maxiter, time_limit, callback
        self._patience, self._tol = patience, tol
        # a bar and interrupts that are given belong to several runs: whoever made them looks after them
        self._bar = progress if isinstance(progress, Bar) else None
        self._own_bar = progress is True
        self._own_interrupts = interrupts is None
        self._interrupts = interrupts or Interrupts()
        self._status, self._message = CONVERGED, ""
        self._summed = self.energy  # the last energy that was summed afresh
        self._best: np.ndarray | None = None
        self._best_rank = self._rank()
        self._last_gain = 0
        self._cut = False
        self._trace = np.zeros(64, TRACE)
        self._rows = 0
        self._add_row()

    def __enter__(self) -> Run:
        if self._own_interrupts:
            self._interrupts.__enter__()
        if self._own_bar:
            self._bar = Bar(self.method, self._maxiter)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if self._own_interrupts:
            self._interrupts.__exit__()
        if self._own_bar and self._bar is not None:
            self._bar.close()
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            return False
        self._interrupt("interrupted")
        return True

    def keep_best(self) -> None:
        """From now on the energy may rise: keep the best labelling beside `x`."""
        self._best = self.x.copy()

    def should_continue(self) -> bool:
        """Whether another iteration may start."""
        if self._message:
            return False
        if self._interrupts.pending:
            self._interrupt(self._interrupts.pending)
        elif self._tol is not None and self.gap <= self._tol:
            proved = "proved optimal" if self.gap <= 0 else f"gap {self.gap:.2g} within tol = {self._tol:g}"
            self.stop(CONVERGED, f"converged: {proved}")
        elif self._maxiter is not None and self.nit >= self._maxiter:
            self.stop(MAXITER, f"maxiter = {self._maxiter} iterations made")
        elif self._is_out_of_time():
            self.stop(TIME_LIMIT, f"time_limit = {self._time_limit:g} s reached")
        elif self._patience is not None and self.nit - self._last_gain >= self._patience:
            self.stop(CONVERGED, f"no new best in patience = {self._patience} iterations")
        return not self._message

    def out_of_time(self) -> bool:
        """Whether the time is over within an iteration: no further sweep may start. What is then left of the iteration
        is no part of the run as it would have been, and is not saved."""
        over = self._is_out_of_time()
        self._cut = self._cut or over
        return over

    def _is_out_of_time(self) -> bool:
        return self._time_limit is not None and self._timer.seconds() >= self._time_limit

    @property
    def fraction(self) -> float:
        """How much of the run is over: of its iterations if they are limited, else of its time."""
        if self._maxiter is not None:
            return self.nit / max(1, self._maxiter)
        return 0.0 if self._time_limit is None else min(1.0, self._timer.seconds() / max(self._time_limit, 1e-9))

    @property
    def gap(self) -> float:
        """How far the best energy can be from the least, as a share of itself; nan without a bound."""
        return relative_gap(self.best, self.bound)

    def record(self, change: float | None, *, iterations: int = 1) -> bool:
        """Note that an iteration (or the first local search: none) has changed the energy by `change` (None: by
        whatever), and call the callback; whether the energy fell.

        A change that may be rounding is not trusted: the energy is then summed afresh, so that no run goes round in
        circles between labellings of equal energy.
        """
        fell = change is None or change < 0
        if change is None or self.mrf.big < math.inf or (fell and -change <= ROUNDING * abs(self.energy)):
            before, self._summed = self._summed, _energy(self.mrf, self.x)
            self.energy = self._summed
            fell = fell and (self._summed < before or math.isinf(self._summed))
        else:
            self.energy += change
        self.nit += iterations
        self._note_best()
        self._add_row()
        if self._bar is not None:
            if not math.isnan(self.bound):
                self.figures |= {"bound": self.bound, "gap": self.gap}
            self._bar.step(iterations, self.energy, self.best, **self.figures)
        if self._callback is not None:
            try:
                self._callback(self.result(copy=True))
            except StopIteration:
                self.stop(CALLBACK, "stopped by the callback")
        return fell

    def _add_row(self) -> None:
        if self._rows == len(self._trace):
            self._trace = np.concatenate([self._trace, np.zeros_like(self._trace)])
        self._trace[self._rows] = self.nit, self._timer.seconds(), self.energy, self.best, self.bound
        self._rows += 1

    @property
    def best(self) -> float:
        """The best energy so far."""
        forbidden, finite = self._best_rank
        return math.inf if forbidden else finite

    @property
    def gained(self) -> bool:
        """Whether the last iteration has found a new best, by more than rounding."""
        return self.nit == self._last_gain

    def _rank(self) -> tuple[int, float]:
        """What makes one labelling better than another: fewer forbidden costs, then less energy."""
        if self.mrf.big == math.inf:
            return 0, self.energy
        finite, forbidden = self.mrf.energy_parts(self.x)
        return forbidden, finite

    def _note_best(self) -> None:
        rank, (forbidden, finite) = self._rank(), self._best_rank
        if rank >= self._best_rank:
            return
        if rank[0] < forbidden or rank[1] < finite - ROUNDING * abs(finite):
            self._last_gain = self.nit
        self._best_rank = rank
        if self._best is not None:
            np.copyto(self._best, self.x)

    def stop(self, status: int, message: str) -> None:
        """Let no further iteration start."""
        self._status, self._message = status, message

    def _interrupt(self, how: str) -> None:
        self.stop(INTERRUPTED, f"{how}; the labelling is the best so far")

    def result(self, *, copy: bool = False) -> MAPResult:
        """The result so far."""
        labelling = self.x if self._best is None else self._best
        fun = _energy(self.mrf, labelling)
        lower_bound = min(self.bound, fun)  # rounding must not put the sum of float64s below what is proved
        status, message = self._status, self._message or "running"
        if math.isinf(fun):
            forbidden = self.mrf.energy_parts(labelling)[1]
            message += f"; the labelling has infinite energy: it holds {forbidden} forbidden costs"
            status = status if status == INTERRUPTED else FORBIDDEN
        trace = self._true_trace(fun)
        mask = getattr(self.mrf, "mask", None)
        if mask is not None:
            labelling, copy = np.where(mask, labelling, np.int32(0)), False
        return MAPResult(
            x=labelling.copy() if copy else labelling,
            fun=fun,
            nit=self.nit,
            success=status not in (INTERRUPTED, FORBIDDEN),
            status=status,
            message=message,
            method=self.method,
            lower_bound=lower_bound,
            gap=relative_gap(fun, lower_bound),
            trace=trace,
        )

    def _true_trace(self, fun: float) -> np.ndarray:
        trace = self._trace[: self._rows].copy()
        # energies are tracked by their changes: let rounding not put one below the best, which is computed afresh
        for name in ("energy", "best"):
            trace[name] = np.maximum(trace[name], fun)
        trace["best"][-1] = fun
        trace["bound"][-1] = self.bound
        trace["bound"] = np.minimum(trace["bound"], fun)
        if self._best is None:
            trace["energy"][-1] = fun
        return trace

    def save(
        self,
        file: Checkpoint | None,
        rng: np.random.Generator,
        state: Callable[[], tuple[dict[str, Any], dict[str, np.ndarray]]],
    ) -> None:
        """Write a checkpoint, if there is a file for it and it is time: the run, the generator, and the numbers and
        arrays that the solver needs besides to continue exactly: `state()`."""
        if file is None or self._cut or not (self._message or file.due):
            return
        best = self.x if self._best is None else self._best
        mine = {"nit": self.nit, "best_rank": self._best_rank, "summed": self._summed, "gained": self._last_gain}
        labellings = {"x": compact(self.x, self.mrf), "best": compact(best, self.mrf)}
        numbers, arrays = state()
        trace = {"trace": self._trace[: self._rows]}
        file.save({"run": mine, "rng": rng.bit_generator.state, "search": numbers}, labellings | trace | arrays)

    def resume(
        self,
        saved: Saved,
        rng: np.random.Generator,
        restore: Callable[[Any, dict[str, np.ndarray]], None],
    ) -> None:
        """Continue from what `save` wrote: check everything, have the solver `restore` its numbers and arrays, and set
        the generator last. Raises an error that names the file, and leaves the generator alone, if anything is wrong.
        """
        with saved.checking():
            mine, stream, search = fields(saved.state, "state", "run", "rng", "search")
            check_stream(stream, rng)
            self._restore(mine, saved.arrays)
            restore(search, saved.arrays)
            rng.bit_generator.state = stream

    def _restore(self, numbers: Any, arrays: dict[str, np.ndarray]) -> None:
        nit, rank, summed, gained = fields(numbers, "run", "nit", "best_rank", "summed", "gained")
        self.nit = as_count(nit, "nit")
        if not isinstance(rank, list) or len(rank) != 2:
            raise ValueError(f"best_rank must be two numbers, got {rank!r}")
        self._best_rank = as_count(rank[0], "best_rank[0]"), as_real_scalar(rank[1], "best_rank[1]", infinite=True)
        if self._best_rank[0] > 0 and self.mrf.big == math.inf:
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
        self._trace, self._rows = arrays["trace"], len(arrays["trace"])
        self.energy = float(self._trace["energy"][-1])
        self._timer = Timer(float(self._trace["seconds"][-1]))


def _energy(mrf: Any, x: np.ndarray) -> float:
    """`mrf.energy` of a labelling known to be valid, without a copy of it."""
    finite, forbidden = mrf.energy_parts(x)
    return math.inf if forbidden else finite


def exact_bound(mrf: Any, energy: float) -> float:
    """The lower bound that an exact method proves by finding a labelling of that energy."""
    return tightened(energy - mrf.rounding, mrf.is_whole)


def begin(
    method: str, mrf: Any, x0: Any, rng: Any, limits: dict[str, Any], saved: Saved | None = None
) -> tuple[Run, np.random.Generator]:
    """A run within checked limits, and its generator. It starts from `x0`, or with zeros if it is to be resumed from
    `saved`."""
    rng = as_generator(rng)
    with as_compile_time():
        mrf.energy_parts(np.zeros(0, np.int32))
    timer = Timer()
    x = starting_labelling(mrf, x0, rng) if saved is None else np.zeros(mrf.shape, np.int32)
    return Run(method, mrf, x, timer, **limits), rng


def descend(run: Run, prepare: Callable[[], Any], rng: np.random.Generator, what: str) -> MAPResult:
    """Prepare a tree set and sweep it, in alternating directions, until no tree (`what`) lowers the energy any more, or
    a limit is reached."""
    with run:
        trees = prepare()
        while run.should_continue():
            if not run.record(trees.sweep(run.x, rng, reverse=run.nit % 2 == 1)) and run.should_continue():
                run.stop(CONVERGED, f"converged: no {what} lowers the energy any more")
    return run.result()


def checked_limits(
    maxiter: Any,
    time_limit: Any,
    callback: Any,
    patience: Any = None,
    *,
    progress: Any,
    tol: Any = None,
    default: int | None = None,
) -> dict[str, Any]:
    """The keywords all solvers take, or an error that says what is wrong with them. `default` is the number of
    iterations where nothing limits them."""
    if maxiter is not None:
        maxiter = as_count(maxiter, "maxiter")
    if patience is not None:
        patience = as_count(patience, "patience", 1)
    if time_limit is not None:
        time_limit = as_real_scalar(time_limit, "time_limit", infinite=True)
        if time_limit < 0:
            raise ValueError(f"time_limit must be at least 0 seconds, got {time_limit}")
        time_limit = None if math.isinf(time_limit) else time_limit
    if tol is not None:
        tol = as_real_scalar(tol, "tol")
        if tol < 0:
            raise ValueError(f"tol must be at least 0, got {tol:g}")
    if not isinstance(progress, bool | np.bool_):
        raise TypeError(f"progress must be True or False, got {progress!r}")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of one MAPResult, got {callback!r}")
    if maxiter is None and time_limit is None and patience is None:
        maxiter = default
    limits = {"maxiter": maxiter, "time_limit": time_limit, "callback": callback, "patience": patience, "tol": tol}
    return limits | {"progress": bool(progress)}
