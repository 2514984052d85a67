"""Independent searches side by side, reduced by merging."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

from treefield.protocols import Limits, Model, StartOrResult
from treefield.results import MAPResult, Status, amend_result
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.loop import Timer
from treefield.solvers.merge import merge
from treefield.solvers.progress import Bar
from treefield.solvers.run import Run
from treefield.validation import as_thread_count

_STOPPED = "stopped by the callback"
_WAKE = 0.1  # seconds: a signal that comes just before the main thread goes to sleep is seen when it wakes


def independent_searches(
    search: Callable[..., MAPResult],
    mrf: Model,
    x0: StartOrResult,
    rng: np.random.Generator,
    limits: Limits,
    restarts: int,
    workers: int | None,
    threads: int | None,
    checkpoint: str | os.PathLike[str] | None,
) -> MAPResult:
    """Run ``search(x0, rng, limits, threads, checkpoint)`` `restarts` times, several at once, and merge the results.

    Each search has its own generator, and results are merged in order, so the answer does not depend on the number of
    workers. `time_limit` is the limit of all searches together.
    """
    timer = Timer()
    workers = min(restarts, as_thread_count(threads if workers is None else workers))
    generators = rng.spawn(restarts)
    rounds = math.ceil(restarts / workers)
    lock, interrupts, callback = threading.Lock(), Interrupts(), limits["callback"]
    total = None if limits["maxiter"] is None else restarts * limits["maxiter"]
    bar = Bar("t_ils", total) if limits["progress"] else None

    def call_back(result: MAPResult) -> None:
        with lock:
            try:
                if callback is not None:
                    callback(result)
            except StopIteration:
                interrupts.pending = _STOPPED

    def run_one(number: int) -> MAPResult:
        share = dict(limits, interrupts=interrupts, callback=None if callback is None else call_back, progress=bar)
        if limits["time_limit"] is not None:
            share["time_limit"] = limits["time_limit"] / rounds
        path = None if checkpoint is None else f"{checkpoint}.{number}"
        try:
            return search(x0, generators[number], share, max(1, as_thread_count(threads) // workers), path)
        except BaseException:
            interrupts.pending = "stopped by an error in another search"
            raise

    closing = contextlib.nullcontext() if bar is None else contextlib.closing(bar)
    with closing, interrupts, ThreadPoolExecutor(workers, thread_name_prefix="treefield") as pool:
        searches = [pool.submit(run_one, number) for number in range(restarts)]
        not_done = True
        while not_done:
            try:
                not_done = bool(wait(searches, timeout=_WAKE).not_done)
            except KeyboardInterrupt:  # a second Ctrl-C: the searches still return their results
                interrupts.pending = "interrupted"
        results = [search.result() for search in searches]
    x = results[0].x
    for result in results[1:]:
        x = merge(mrf, x, result.x)
    # rounding must not make it worse than the best of them
    x = min([x, *(result.x for result in results)], key=lambda labelling: mrf.backend.energy_parts(labelling)[::-1])
    run = Run("t_ils", mrf, x, timer)
    last = max(results, key=lambda result: result.status if result.status != Status.INFEASIBLE else -1)
    status, reason = last.status, last.message.split(";")[0]
    if interrupts.pending == _STOPPED:
        status, reason = Status.STOPPED, _STOPPED
    elif reason.startswith("time_limit"):
        reason = f"time_limit = {limits['time_limit']:g} s reached"
    elif status == Status.INFEASIBLE:
        status = Status.CONVERGED  # `Run.result` reports forbidden costs
    run.stop(status, f"{reason}; {restarts} searches, merged")
    merged = run.result()
    nit = sum(result.nit for result in results)
    return amend_result(merged, nit=nit, trace=_join_traces(results, merged, nit, workers))


def _join_traces(results: list[MAPResult], merged: MAPResult, nit: int, workers: int) -> np.ndarray:
    """The rows of all searches in the order of time, and the merged result as the last."""
    traces = [result.trace.copy() for result in results]
    for number in range(workers, len(traces)):  # a search starts when the one before it has ended
        traces[number]["seconds"] += traces[number - workers]["seconds"][-1]
    rows = np.concatenate([traces[0][:1], *(trace[1:] for trace in traces), merged.trace[-1:]])
    rows["seconds"][-1] = rows["seconds"].max()
    rows = rows[np.argsort(rows["seconds"], kind="stable")]
    rows["iteration"] = np.minimum(np.arange(len(rows)), nit)
    rows["best"] = np.maximum(np.minimum.accumulate(rows["best"]), merged.fun)
    return rows
