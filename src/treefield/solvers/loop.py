"""The loop of every search: clock, limits, callback, interrupts, progress bar, trace and result."""

from __future__ import annotations

import abc
import math
import time
from types import TracebackType
from typing import Self, TypedDict

import numpy as np

from treefield.kernels.simd.jit import compile_time
from treefield.protocols import Callback, Limits
from treefield.results import TRACE, MAPResult, Status, make_result, relative_gap
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.progress import Bar
from treefield.validation import as_count, as_non_negative


class LoopOptions(TypedDict, total=False):
    """The keywords of `Loop`: the checked limits, and what several searches may share."""

    maxiter: int | None
    time_limit: float | None
    callback: Callback | None
    patience: int | None
    tol: float | None
    progress: bool | Bar
    interrupts: Interrupts | None


class Timer:
    """Seconds since it was created, plus those `spent` before, without compilation in the thread that created it."""

    def __init__(self, spent: float = 0.0) -> None:
        self._compile_time = compile_time()
        self._start = time.perf_counter() - self._compile_time.seconds - spent

    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._compile_time.seconds - self._start


class Loop(abc.ABC):
    """The limits, the trace and the end of one search.

    ``with loop: while loop.should_continue(): ...``; the context swallows Ctrl-C. A subclass keeps the labelling, sets
    `energy`, `bound` and `nit`, and calls `_end_iteration` after each iteration.
    """

    energy: float

    def __init__(
        self,
        method: str,
        timer: Timer,
        *,
        maxiter: int | None = None,
        time_limit: float | None = None,
        callback: Callback | None = None,
        patience: int | None = None,
        tol: float | None = None,
        progress: bool | Bar = False,
        interrupts: Interrupts | None = None,
    ) -> None:
        self.method = method
        self.nit = 0
        self.bound = math.nan  # no energy is lower
        self.figures: dict[str, float] = {}  # shown in the progress bar after the energies
        self._timer, self._maxiter, self._time_limit, self._callback = timer, maxiter, time_limit, callback
        self._patience, self._tol = patience, tol
        # a bar and interrupts that are given are shared by several searches, and closed by whoever created them
        self._bar = progress if isinstance(progress, Bar) else None
        self._has_own_bar = progress is True
        self._has_own_interrupts = interrupts is None
        self._interrupts = interrupts or Interrupts()
        self._status, self._message = Status.RUNNING, ""
        self._proof: str | None = None
        self._last_gain = 0  # iteration of the last new best
        self._has_searched = False  # an iteration, or the first local search, is over
        self._trace = np.zeros(64, TRACE)
        self._rows = 0

    def __enter__(self) -> Self:
        if self._has_own_interrupts:
            self._interrupts.__enter__()
        if self._has_own_bar:
            self._bar = Bar(self.method, self._maxiter)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._has_own_interrupts:
            self._interrupts.__exit__()
        if self._has_own_bar and self._bar is not None:
            self._bar.close()
        if kind is None or not issubclass(kind, KeyboardInterrupt) or not self._rows:
            return False
        self.interrupt("interrupted")
        return True

    @property
    def best(self) -> float:
        """The best energy so far."""
        return self.energy

    def should_continue(self) -> bool:
        """Whether another iteration may start."""
        if self._message:
            return False
        if self._interrupts.pending:
            self.interrupt(self._interrupts.pending)
        elif self._tol is not None and self.gap <= self._tol:
            if self.gap <= 0:
                self.stop(Status.CONVERGED, "converged: proved optimal", proof="bound")
            else:
                self.stop(Status.CONVERGED, f"converged: gap {self.gap:.2g} within tol = {self._tol:g}")
        elif self._tol is not None and self._is_within_rounding():
            message = "converged: proved optimal within the rounding of float64 sums"
            self.stop(Status.CONVERGED, message, proof="bound")
        elif self._maxiter is not None and self.nit >= self._maxiter:
            self.stop(Status.LIMIT, f"maxiter = {self._maxiter} reached")
        elif self.is_over_limit():
            self.stop(Status.LIMIT, f"time_limit = {self._time_limit:g} s reached")
        elif self._patience is not None and self.nit - self._last_gain >= self._patience:
            self.stop(Status.CONVERGED, f"no new best in patience = {self._patience} iterations")
        return not self._message

    def would_converge(self, energy: float) -> bool:
        """Whether a labelling of that energy is within the gap that ends the search."""
        return self._tol is not None and relative_gap(energy, self.bound) <= self._tol

    def _is_within_rounding(self) -> bool:
        """Whether rounding may account for all that is left of the gap."""
        return False

    def is_out_of_time(self) -> bool:
        """Whether the time limit is reached."""
        return self._time_limit is not None and self._timer.seconds() >= self._time_limit

    def is_over_limit(self) -> bool:
        """Whether the time limit ends the search: the first iteration is always made."""
        return self._has_searched and self.is_out_of_time()

    @property
    def time_left(self) -> float | None:
        """Seconds until the time limit; None without one."""
        return None if self._time_limit is None else max(0.0, self._time_limit - self._timer.seconds())

    def work_left(self, done: float) -> float:
        """How much more work the time limit allows, given the work done so far; inf without a limit."""
        left = self.time_left
        if left is None or self._time_limit is None:
            return math.inf
        return done * left / max(self._time_limit - left, 1e-9)

    @property
    def has_ended(self) -> bool:
        """Whether a reason to stop has been given."""
        return bool(self._message)

    @property
    def status(self) -> Status:
        """Why the search ended, if it has."""
        return self._status

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

    def stop(self, status: Status, message: str, proof: str | None = None) -> None:
        """Let no further iteration start; `proof` says how the labelling was proved optimal."""
        self._status, self._message, self._proof = status, message, proof

    def interrupt(self, how: str) -> None:
        """Let no further iteration start: the search was interrupted."""
        self.stop(Status.INTERRUPTED, f"{how}; the labelling is the best so far")

    def _end_iteration(self, iterations: int = 1, *, is_start: bool = False) -> None:
        """Add a row to the trace, advance the progress bar and call the callback.

        `is_start` if nothing has been searched yet.
        """
        self.nit += iterations
        self._has_searched = self._has_searched or not is_start
        self._add_row()
        if self._bar is not None:
            if not math.isnan(self.bound):
                self.figures |= {"bound": self.bound, "gap": self.gap}
            self._bar.step(iterations, self.energy, self.best, **self.figures)
        if self._callback is not None:
            try:
                self._callback(self.result(copy=True))
            except StopIteration:
                self.stop(Status.STOPPED, "stopped by the callback")

    def _add_row(self) -> None:
        if self._rows == len(self._trace):
            self._trace = np.concatenate([self._trace, np.zeros_like(self._trace)])
        self._trace[self._rows] = self.nit, self._timer.seconds(), self.energy, self.best, self.bound
        self._rows += 1

    @abc.abstractmethod
    def result(self, *, copy: bool = False) -> MAPResult:
        """The result so far; with `copy` its labelling does not change any more."""

    def _make_result(self, x: np.ndarray, fun: float, forbidden: int, *, is_last_energy: bool) -> MAPResult:
        """The result of a labelling, given its energy and its number of forbidden costs; `is_last_energy` if the energy
        of the last iteration is that of the labelling."""
        status, message = self._status, self._message or "running"
        if forbidden:
            message += f"; the labelling has infinite energy: it holds {forbidden} forbidden costs"
            message += "" if self._proof is None else ", and every other has some, too"
            status = status if status in (Status.INTERRUPTED, Status.RUNNING) else Status.INFEASIBLE
        lower_bound = min(self.bound, fun)  # rounding must not put the sum of float64s below what is proved
        return make_result(
            x=x,
            fun=fun,
            nit=self.nit,
            status=status,
            message=message,
            method=self.method,
            lower_bound=lower_bound,
            proof=self._proof,
            trace=self._true_trace(fun, is_last_energy),
        )

    def _true_trace(self, fun: float, is_last_energy: bool) -> np.ndarray:
        trace = self._trace[: self._rows].copy()
        # energies are tracked by their changes: rounding must not put one below the best, which is summed afresh
        for name in ("energy", "best"):
            trace[name] = np.maximum(trace[name], fun)
        trace["best"][-1] = fun
        trace["bound"][-1] = self.bound
        trace["bound"] = np.minimum(trace["bound"], fun)
        if is_last_energy:
            trace["energy"][-1] = fun
        return trace


def as_limits(
    maxiter: int | None,
    time_limit: float | None,
    callback: Callback | None,
    patience: int | None = None,
    *,
    progress: bool,
    tol: float | None = None,
    default: int | None = None,
) -> Limits:
    """The keywords that all solvers take, or an error that says what is wrong with them.

    `default` is the number of iterations where nothing limits them.
    """
    if maxiter is not None:
        maxiter = as_count(maxiter, "maxiter")
    if patience is not None:
        patience = as_count(patience, "patience", 1)
    if time_limit is not None:
        time_limit = as_non_negative(time_limit, "time_limit", infinite=True)
        time_limit = None if math.isinf(time_limit) else time_limit
    if tol is not None:
        tol = as_non_negative(tol, "tol")
    if not isinstance(progress, bool | np.bool_):
        raise TypeError(f"progress must be True or False, got {progress!r}")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of one MAPResult, got {callback!r}")
    if maxiter is None and time_limit is None and patience is None:
        maxiter = default
    return {
        "maxiter": maxiter,
        "time_limit": time_limit,
        "callback": callback,
        "patience": patience,
        "tol": tol,
        "progress": bool(progress),
    }
