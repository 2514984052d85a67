"""Independent searches side by side, reduced by merging."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from treefield.results import MAPResult
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.merge import merge
from treefield.solvers.progress import Bar
from treefield.solvers.run import Run, Timer
from treefield.validation import thread_count


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
                interrupts.pending = "stopped by the callback"

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

    with interrupts, ThreadPoolExecutor(workers, thread_name_prefix="treefield") as pool:
        results = list(pool.map(one, range(restarts)))
    if bar is not None:
        bar.close()
    x = results[0].x
    for result in results[1:]:
        x = merge(mrf, x, result.x)
    run = Run("t_ils", mrf, x, timer)
    last = max(results, key=lambda result: result.status)
    run.stop(last.status, f"{last.message}; the best of {restarts} searches, merged")
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
