"""What all solvers share: the clock, the limits, the trace, the callback, the interrupt and the result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from treefield.kernels.jit import compile_seconds, loading
from treefield.results import TRACE, MAPResult, relative_gap
from treefield.solvers.start import starting_labelling
from treefield.validation import count, generator, model, real_scalar

_ROUNDING = 1e-9  # relative to the energy: changes below may be rounding
CONVERGED, MAXITER, TIME_LIMIT, CALLBACK, INTERRUPTED, FORBIDDEN = range(6)


class Timer:
    """Seconds since it was made, compilation left out."""

    def __init__(self) -> None:
        self._start = time.perf_counter() - compile_seconds()

    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - compile_seconds() - self._start


class Run:
    """One run of a solver that never raises the energy of its labelling `x`, which it changes in place.

    Used as a context that swallows Ctrl-C: ``with run: while run.goes_on(): ...; run.record(change)``; then `result`.
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
    ) -> None:
        self.mrf, self.x, self.method = mrf, x, method
        self.energy = _energy(mrf, x)
        self._timer, self._maxiter, self._time_limit, self._callback = timer, maxiter, time_limit, callback
        self._status, self._message = CONVERGED, ""
        self._summed = self.energy  # the last energy that was summed afresh
        self._rows: list[tuple[int, float, float]] = [(0, timer.seconds(), self.energy)]

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            return False
        self.stop(INTERRUPTED, "interrupted; the labelling is the best so far")
        return True

    @property
    def nit(self) -> int:
        """Iterations made."""
        return self._rows[-1][0]

    def goes_on(self) -> bool:
        """Whether another iteration may start."""
        if self._message:
            return False
        if self._maxiter is not None and self.nit >= self._maxiter:
            self.stop(MAXITER, f"maxiter = {self._maxiter} iterations made")
        elif self._time_limit is not None and self._timer.seconds() >= self._time_limit:
            self.stop(TIME_LIMIT, f"time_limit = {self._time_limit:g} s reached")
        return not self._message

    def record(self, change: float) -> bool:
        """Note that an iteration has changed the energy by `change`, and call the callback; whether it fell.

        A change that may be rounding is not trusted: the energy is then summed afresh, so that no run goes round in
        circles between labellings of equal energy.
        """
        fell = change < 0
        if math.isinf(self.energy) or (fell and -change <= _ROUNDING * abs(self.energy)):
            before, self._summed = self._summed, _energy(self.mrf, self.x)
            self.energy = self._summed
            fell = fell and (self._summed < before or math.isinf(self._summed))
        else:
            self.energy += change
        self._rows.append((self.nit + 1, self._timer.seconds(), self.energy))
        if self._callback is not None:
            try:
                self._callback(self.result(self.x.copy()))
            except StopIteration:
                self.stop(CALLBACK, "stopped by the callback")
        return fell

    def stop(self, status: int, message: str) -> None:
        """Let no further iteration start."""
        self._status, self._message = status, message

    def result(self, x: np.ndarray | None = None, lower_bound: float = math.nan) -> MAPResult:
        """The result so far."""
        labelling = self.x if x is None else x
        fun = _energy(self.mrf, labelling)
        status, message = self._status, self._message or "running"
        if math.isinf(fun):
            forbidden = self.mrf.energy_parts(labelling)[1]
            message += f"; the labelling has infinite energy: it holds {forbidden} forbidden costs"
            status = status if status == INTERRUPTED else FORBIDDEN
        rows = np.array(self._rows)
        trace = np.empty(len(rows), TRACE)
        trace["iteration"], trace["seconds"], trace["energy"] = rows.T
        # energies are tracked by their changes: let rounding not put one below the last, which is computed afresh
        trace["energy"] = np.maximum(trace["energy"], fun)
        trace["energy"][-1] = fun
        trace["best"] = trace["energy"]
        trace["bound"] = lower_bound
        return MAPResult(
            x=labelling,
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


def _energy(mrf: Any, x: np.ndarray) -> float:
    """`mrf.energy` of a labelling known to be valid, without a copy of it."""
    finite, forbidden = mrf.energy_parts(x)
    return math.inf if forbidden else finite


def begin(method: str, mrf: Any, x0: Any, rng: Any, maxiter: Any, time_limit: Any, callback: Any) -> tuple[Run, Any]:
    """A run from the start that `x0` names, and the generator, their arguments checked."""
    model(mrf)
    limits = checked_limits(maxiter, time_limit, callback)
    rng = generator(rng)
    with loading():
        mrf.energy_parts(np.zeros(0, np.int32))
    timer = Timer()
    return Run(method, mrf, starting_labelling(mrf, x0, rng), timer, **limits), rng


def descend(run: Run, prepare: Callable[[], Any], rng: np.random.Generator, what: str) -> MAPResult:
    """Prepare a tree set and sweep it until no tree (`what`) lowers the energy any more, or a limit is reached."""
    with run:
        trees = prepare()
        while run.goes_on():
            if not run.record(trees.sweep(run.x, rng)) and run.goes_on():
                run.stop(CONVERGED, f"converged: no {what} lowers the energy any more")
    return run.result()


def checked_limits(maxiter: Any, time_limit: Any, callback: Any) -> dict[str, Any]:
    """The keywords all solvers take, or an error that says what is wrong with them."""
    if maxiter is not None:
        maxiter = count(maxiter, "maxiter")
    if time_limit is not None:
        time_limit = real_scalar(time_limit, "time_limit", infinite=True)
        if time_limit < 0:
            raise ValueError(f"time_limit must be at least 0 seconds, got {time_limit}")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of one MAPResult, got {callback!r}")
    return {"maxiter": maxiter, "time_limit": time_limit, "callback": callback}
