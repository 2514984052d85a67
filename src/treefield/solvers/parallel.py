"""Independent searches side by side, reduced by merging."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from treefield.results import MAPResult
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.merge import merge
from treefield.solvers.progress import Bar
from treefield.solvers.run import CALLBACK, CONVERGED, FORBIDDEN, TIME_LIMIT, Run, Timer
from treefield.validation import thread_count

_STOPPED = "stopped by the callback"
_WAKE = 0.1  # seconds: a signal that comes just before the main thread goes to sleep is seen when it wakes


def independent_searches(
    search: Callable[..., MAPResult],
    mrf: Any,
    x0: Any,
    rng: np.random.Generator,
    limits: dict[str, Any],
    restarts: int,
    workers: int | None,
    threads: int | None,
    checkpoint: Any,
) -> MAPResult:
    """Run ``search(x0, rng, limits, threads, checkpoint)`` so many times, some at once, and merge what they find.

    Each has a generator of its own, and results are merged in the order of the searches, so the answer does not depend
    on how many run at once. A time limit is that of the whole.
    """
    timer = Timer()
    workers = min(restarts, thread_count(threads if workers is None else workers))
    generators = rng.spawn(restarts)
    turns = math.ceil(restarts / workers)
    lock, interrupts, callback = threading.Lock(), Interrupts(), limits["callback"]
    total = None if limits["maxiter"] is None else restarts * limits["maxiter"]
    bar = Bar("t_ils", total) if limits["progress"] else None

    def called(result: MAPResult) -> None:
        with lock:
            try:
                callback(result)
            except StopIteration:
                interrupts.pending = _STOPPED

    def one(number: int) -> MAPResult:
        share = dict(limits, interrupts=interrupts, callback=None if callback is None else called, progress=bar)
        if limits["time_limit"] is not None:
            share["time_limit"] = limits["time_limit"] / turns
        path = None if checkpoint is None else f"{checkpoint}.{number}"
        try:
            return search(x0, generators[number], share, max(1, thread_count(threads) // workers), path)
        except BaseException:
            interrupts.pending = "stopped by an error in another search"
            raise

    closing = contextlib.nullcontext() if bar is None else contextlib.closing(bar)
    with closing, interrupts, ThreadPoolExecutor(workers, thread_name_prefix="treefield") as pool:
        searches = [pool.submit(one, number) for number in range(restarts)]
        not_done = True
        while not_done:
            try:
                not_done = bool(wait(searches, timeout=_WAKE).not_done)
            except KeyboardInterrupt:  # the second one: what there is still comes out
                interrupts.pending = "interrupted"
        results = [search.result() for search in searches]
    x = results[0].x
    for result in results[1:]:
        x = merge(mrf, x, result.x)
    # rounding must not make it worse than the best of them
    x = min([x, *(result.x for result in results)], key=lambda labelling: mrf.energy_parts(labelling)[::-1])
    run = Run("t_ils", mrf, x, timer)
    last = max(results, key=lambda result: result.status if result.status != FORBIDDEN else -1)
    status, reason = last.status, last.message.split(";")[0]
    if interrupts.pending == _STOPPED:
        status, reason = CALLBACK, _STOPPED
    elif status == TIME_LIMIT:
        reason = f"time_limit = {limits['time_limit']:g} s reached"
    elif status == FORBIDDEN:
        status = CONVERGED  # that it holds forbidden costs is said of the result by itself
    run.stop(status, f"{reason}; {restarts} searches, merged")
    merged = run.result()
    merged.nit = sum(result.nit for result in results)
    merged.trace = _joined(results, merged, workers)
    return merged


def _joined(results: list[MAPResult], merged: MAPResult, workers: int) -> np.ndarray:
    """The rows of all searches in the order of time, and the merged result as the last."""
    traces = [result.trace.copy() for result in results]
    for number in range(workers, len(traces)):  # a search starts when the one before it has ended
        traces[number]["seconds"] += traces[number - workers]["seconds"][-1]
    rows = np.concatenate([traces[0][:1], *(trace[1:] for trace in traces), merged.trace[-1:]])
    rows["seconds"][-1] = rows["seconds"].max()
    rows = rows[np.argsort(rows["seconds"], kind="stable")]
    rows["iteration"] = np.minimum(np.arange(len(rows)), merged.nit)
    rows["best"] = np.maximum(np.minimum.accumulate(rows["best"]), merged.fun)
    return rows
