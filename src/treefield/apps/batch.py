"""Many images at once, each with its own result and its own error."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import itertools
import os
import pathlib
import queue
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from treefield.apps.crews import Crew, DaskCrew, ProcessCrew
from treefield.apps.jobs import Job, Outcome, Work
from treefield.io.files import shown
from treefield.io.images import image_files
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.progress import ItemBar
from treefield.validation import as_callable as checked_function
from treefield.validation import as_count, thread_count

_POLL = 0.2  # seconds until Ctrl-C is seen
_DEATHS = 2  # of its worker, until an item is given up
_DIED = (
    "the worker process died twice on this item: it was killed, crashed or ran out of memory; "
    "take fewer workers, or a smaller image"
)


class BatchInterrupted(RuntimeError):
    """An item was not finished before Ctrl-C or SIGTERM."""


class WorkerDiedError(RuntimeError):
    """The processes that worked on an item have died."""


@dataclasses.dataclass(frozen=True, eq=False)
class BatchItem:
    """What became of one item of a batch.

    Attributes
    ----------
    name : Path or int
        The path of the (first) file, or the index in the batch of what is no file.
    value
        What the function returned; None if it failed.
    error : Exception or None
        Why it failed; None if all went well.
    seconds : float
        How long reading and the function took; 0 for what was not begun or whose worker died.
    """

    name: pathlib.Path | int
    value: Any = None
    error: BaseException | None = None
    seconds: float = 0.0


def batch(
    function: Callable[..., Any],
    items: Any,
    *,
    workers: int | None = None,
    scheduler: Any = None,
    progress: bool = False,
    **options: Any,
) -> list[BatchItem]:
    """Call a function on many images, in several processes or on a Dask cluster; one bad image does not stop the rest.

    Parameters
    ----------
    function : callable
        `denoise`, `stereo`, `segment`, ... or a function of yours that can be pickled: one of a module, no lambda.
    items : iterable, stack or folder
        What the function takes first: arrays or paths, or tuples of these for a function of several, such as the
        (left, right) of `stereo`. An array (K, M, N) is a stack of K images; the path of a folder stands for the images
        in it, by name. Files are read where the work is done, and of an iterator only a few items are taken ahead.
    workers : int, optional
        How many processes: by default TREEFIELD_NUM_THREADS, else all cores. Each uses one thread unless `threads` is
        given. 1 works in this process. A script that uses more must begin its work below
        ``if __name__ == "__main__":``, as with `multiprocessing`.
    scheduler : str or distributed.Client, optional
        A Dask cluster instead, as the address of its scheduler ("tcp://host:port") or a client. Its workers must find
        files under the same paths. A scheduler that does not answer within 4 s is refused, or within the time that
        Dask's configuration has as ``treefield.connect-timeout`` (in the environment DASK_TREEFIELD__CONNECT_TIMEOUT).
    progress : bool
        Whether to show a bar.
    **options
        Go to the function for every item. The same seed `rng` is used for each, and answers do not depend on the number
        of workers; a Generator is split, one for each item. If `channel_axis` is not given and the function takes it,
        files whose last axis has up to four entries are colour images.

    Returns
    -------
    list of BatchItem
        In the order of the items: `name`, `value`, `error`, `seconds`. What an iterator raises is the error of its last
        item. After Ctrl-C or SIGTERM what was not finished has the error "interrupted". An item whose worker dies (for
        want of memory, say) is tried once more in another.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> noisy = np.random.default_rng(0).normal(100, 15, (2, 12, 16)).astype(np.uint8)
    >>> results = tf.batch(tf.denoise, [noisy[0], "missing.png", noisy[1]], workers=1, levels=8, rng=0)
    >>> [(str(item.name), item.error) for item in results]
    [('0', None), ('missing.png', FileNotFoundError('there is no file missing.png')), ('2', None)]
    >>> results[2].value.shape
    (12, 16)
    """
    return run_batch(function, items, options, workers=workers, scheduler=scheduler, progress=progress)


def run_batch(
    function: Callable[..., Any],
    items: Any,
    options: dict[str, Any],
    *,
    workers: int | None = None,
    scheduler: Any = None,
    progress: bool = False,
    tell: Callable[[BatchItem], Any] | None = None,
) -> list[BatchItem]:
    """As `batch`; every item is told to `tell` as soon as it and all before it are done."""
    checked_function(function, "function", "an image")
    if workers is not None and scheduler is not None:
        raise ValueError("workers and scheduler are both given: a cluster has its own workers, give one of them")
    if "checkpoint" in options:
        raise ValueError("checkpoint is one file, but a batch is many searches: call the function for each")
    number = thread_count(None) if workers is None else as_count(workers, "workers", 1)
    listed, total = _listed(items)
    if workers is None and total is not None:
        number = min(number, total)
    rng = options.get("rng")
    jobs = _jobs(listed, rng if isinstance(rng, np.random.Generator) else None)
    with contextlib.ExitStack() as stack:
        record = _Record(tell, stack.enter_context(ItemBar(total)) if progress else None)
        if scheduler is None and number <= 1:
            left = _in_this_process(jobs, Work(function, options), record)
        else:
            work = Work.with_one_thread(function, options)
            crew: Crew = ProcessCrew(work, number) if scheduler is None else DaskCrew(work, scheduler)
            left = _Foreman(jobs, stack.enter_context(crew), record).work()
        if left is not None and total is not None:  # an iterator may never end
            for index, job in jobs:
                record.add(index, job.name, Outcome(error=left))
    return record.results()


def _listed(items: Any) -> tuple[Iterable[Any], int | None]:
    """The items to go through, and how many there are if that is known."""
    if isinstance(items, str | os.PathLike):
        folder = pathlib.Path(os.fsdecode(items))
        if folder.is_file():
            raise ValueError(f"items must be a folder or several images, got the file {shown(folder)}: give a list")
        items = image_files(folder)
    if isinstance(items, np.ndarray) and items.ndim < 3:
        raise ValueError(f"items has shape {items.shape}, expected a stack (K, M, N); give one image as [image]")
    if isinstance(items, dict) or not hasattr(items, "__iter__"):
        raise TypeError(f"items must be a list of images or paths, a stack or a folder, got {type(items).__name__}")
    return items, len(items) if hasattr(items, "__len__") else None


def _jobs(items: Iterable[Any], rng: np.random.Generator | None) -> Iterator[tuple[int, Job]]:
    """Every item with its index; what the iterable raises is the last."""
    given = iter(items)
    for index in itertools.count():
        try:
            item = next(given)
        except StopIteration:
            return
        except Exception as error:
            yield index, Job(index, (), {}, error)
            return
        parts = [_path_or_array(part) for part in (item if isinstance(item, tuple) else (item,))]
        name = parts[0] if parts and isinstance(parts[0], pathlib.Path) else index
        yield index, Job(name, tuple(parts), {} if rng is None else {"rng": rng.spawn(1)[0]})


def _path_or_array(part: Any) -> Any:
    return pathlib.Path(os.fsdecode(part)) if isinstance(part, str | os.PathLike) else part


class _Record:
    """What became of the items so far."""

    def __init__(self, tell: Callable[[BatchItem], Any] | None, bar: ItemBar | None) -> None:
        self._items: dict[int, BatchItem] = {}
        self._tell, self._bar, self._told = tell, bar, 0

    def add(self, index: int, name: Any, outcome: Outcome) -> None:
        self._items[index] = BatchItem(name, outcome.value, outcome.error, outcome.seconds)
        if self._bar is not None:
            self._bar.step(outcome.error is not None)
        while self._tell is not None and self._told in self._items:
            self._tell(self._items[self._told])
            self._told += 1

    def results(self) -> list[BatchItem]:
        return [self._items[index] for index in sorted(self._items)]


class _InterruptsAtOnce(Interrupts):
    """The first Ctrl-C ends what runs in this process: a search that handled it would pass for a finished one."""

    def _note(self, number: int, frame: Any) -> None:
        super()._note(number, frame)
        raise KeyboardInterrupt


def _in_this_process(jobs: Iterator[tuple[int, Job]], work: Work, record: _Record) -> Exception | None:
    """Do all jobs one after the other; returns why it ended early, if it did."""
    unfinished = None
    interrupts = _InterruptsAtOnce()
    try:
        with interrupts:
            for index, job in jobs:
                unfinished = index, job
                outcome = work.attempt(job)
                unfinished = None
                record.add(index, job.name, outcome)
                if interrupts.pending:  # it was pressed where nothing can be raised
                    break
    except KeyboardInterrupt:
        if not interrupts.pending:  # the program's own handler
            raise
    if not interrupts.pending:
        return None
    left = BatchInterrupted(interrupts.pending)
    if unfinished is not None:
        record.add(unfinished[0], unfinished[1].name, Outcome(error=left))
    return left


class _Foreman:
    """Keeps a crew busy until all jobs are done."""

    def __init__(self, jobs: Iterator[tuple[int, Job]], crew: Crew, record: _Record) -> None:
        self._jobs, self._crew, self._record = jobs, crew, record
        self._running: dict[int, Job] = {}
        self._again: list[tuple[int, Job]] = []  # whose worker died
        self._deaths: collections.Counter[int] = collections.Counter()
        self._done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()

    def work(self) -> Exception | None:
        """Do all jobs; returns why it ended early, if it did."""
        left: Exception | None = None
        with Interrupts() as interrupts:
            self._hand_out()
            while self._running and left is None:
                try:
                    self._take(*self._done.get(timeout=_POLL))
                except queue.Empty:
                    left = self._crew.lost()
                if interrupts.pending:
                    left = BatchInterrupted(interrupts.pending)
                if left is None:
                    self._hand_out()
            with contextlib.suppress(queue.Empty):  # what was done meanwhile
                while True:
                    self._take(*self._done.get_nowait())
            self._crew.stop()
        for index, job in [*self._running.items(), *self._again]:
            self._record.add(index, job.name, Outcome(error=left))
        return left

    def _hand_out(self) -> None:
        """As many jobs as the crew takes; if a worker died and nobody knows on which, one at a time."""
        suspected = self._again or any(self._deaths[index] for index in self._running)
        room = 1 if suspected and not self._crew.knows_culprit else self._crew.room()
        while len(self._running) < room:
            index, job = self._again.pop() if self._again else next(self._jobs, (-1, None))
            if job is None:
                return
            try:
                if job.error is not None:
                    raise job.error
                future = self._crew.submit(job)
            except Exception as error:  # it cannot be pickled, for instance
                self._record.add(index, job.name, Outcome(error=error))
                continue
            self._running[index] = job
            future.add_done_callback(functools.partial(self._tell, index))

    def _tell(self, index: int, future: Any) -> None:
        self._done.put((index, future))

    def _take(self, index: int, future: Any) -> None:
        """What came of a job, which is done again in another worker if this one died."""
        job, outcome = self._running.pop(index), self._crew.outcome(future)
        if outcome is None:
            self._deaths[index] += 1
            if self._deaths[index] < _DEATHS:
                self._again.append((index, job))
                return
            outcome = Outcome(error=WorkerDiedError(_DIED))
        self._record.add(index, job.name, outcome)
