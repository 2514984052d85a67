"""Many images at once, each with its own result or error."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import itertools
import os
import pathlib
import queue
import types
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import numpy as np

from treefield.apps.batch_task import BatchTask, Call, Outcome, check_batch_options
from treefield.apps.executors import DaskExecutor, Executor, Future, ProcessExecutor
from treefield.io.images.image_formats import list_images
from treefield.io.paths import as_text
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.progress import ItemBar
from treefield.validation import as_callable, as_count, as_thread_count

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")

_KEYWORDS = ("workers", "scheduler", "progress")  # of `batch` itself
_POLL = 0.2  # seconds between checks for Ctrl-C
_MAX_CRASHES = 2  # of workers on one item, before it is reported as failed
_WORKER_DIED = (
    "the worker process died twice on this item: it was killed, crashed or ran out of memory; "
    "use fewer workers or a smaller image"
)


class BatchInterrupted(RuntimeError):
    """The error of an item that was not finished when Ctrl-C or SIGTERM stopped its batch.

    `batch` does not raise it: it is the `error` of the items that are left.

    Examples
    --------
    >>> import treefield as tf
    >>> from treefield.apps.batch import BatchInterrupted
    >>> results = tf.batch(abs, [-1, 2], workers=1)
    >>> [item.name for item in results if isinstance(item.error, BatchInterrupted)]  # these can be run again
    []
    """


class WorkerDiedError(RuntimeError):
    """The error of an item on which two worker processes died: killed, crashed or out of memory.

    `batch` does not raise it: it is the `error` of that item.

    Examples
    --------
    >>> import treefield as tf
    >>> from treefield.apps.batch import WorkerDiedError
    >>> results = tf.batch(abs, [-1, 2], workers=1)
    >>> [item.name for item in results if isinstance(item.error, WorkerDiedError)]  # too large for this machine?
    []
    """


@dataclasses.dataclass(frozen=True, eq=False)
class BatchItem(Generic[T]):
    """The result or the error of one item of a batch.

    Attributes
    ----------
    name : Path or int
        The path of the item's (first) file; without a file, its index in the batch.
    value
        The function's return value; None if the call failed.
    error : Exception or None
        The reason of the failure; None if there was none.
    seconds : float
        The time to read the files and call the function; 0 if it did not start or its worker died.

    Examples
    --------
    >>> import treefield as tf
    >>> good, bad = tf.batch(abs, [-7, "missing.png"], workers=1)
    >>> good.name, good.value, good.error
    (0, 7, None)
    >>> str(bad.name), bad.value, bad.error
    ('missing.png', None, FileNotFoundError('there is no file missing.png'))
    """

    name: pathlib.Path | int
    value: T | None = None
    error: BaseException | None = None
    seconds: float = 0.0


def batch(
    function: Callable[..., T],
    items: Iterable[object] | str | os.PathLike[str],
    *,
    workers: int | None = None,
    scheduler: str | Client | None = None,
    progress: bool = False,
    **options: object,
) -> list[BatchItem[T]]:
    """Call a function on many images, in several processes or on a Dask cluster. A bad image does not stop the others.

    Parameters
    ----------
    function : callable
        `denoise`, `stereo`, `segment`, ... or your own. It is sent to other processes: define it in a module, not as a
        lambda.
    items : iterable, stack or folder
        The function's first argument for each call: arrays or paths, or tuples of these for a function of several, such
        as the (left, right) of `stereo`. An array (K, M, N) is a stack of K images; the path of a folder stands for its
        images, sorted by name. Workers read the files, and only a few items of an iterator are taken in advance.
    workers : int, optional
        The number of processes: by default TREEFIELD_NUM_THREADS, else all cores. Each uses one thread unless `threads`
        is given. 1 runs everything in this process. With more, a script must call `batch` below
        ``if __name__ == "__main__":``, as with `multiprocessing`.
    scheduler : str or distributed.Client, optional
        Use a Dask cluster instead: the address of its scheduler ("tcp://host:port") or a client. Its workers must find
        files under the same paths. ConnectionError if the scheduler does not answer within 4 s, or within
        ``treefield.connect-timeout`` of Dask's configuration (environment variable DASK_TREEFIELD__CONNECT_TIMEOUT).
    progress : bool
        Show a progress bar.
    **options
        Keywords for every call. All calls use the same seed `rng`, and answers do not depend on the number of workers;
        a Generator is split, one for each item. If the function takes `channel_axis` and it is not given, files whose
        last axis has up to four entries are colour images.

    Returns
    -------
    list of BatchItem
        In the order of the items. If an iterator raises, its error is the last item. After Ctrl-C or SIGTERM the
        unfinished items have a `BatchInterrupted` as error. An item whose worker dies (out of memory, say) is tried
        again once, then its error is a `WorkerDiedError`.

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
    function: Callable[..., T],
    items: Iterable[object] | str | os.PathLike[str],
    options: dict[str, object],
    *,
    workers: int | None = None,
    scheduler: str | Client | None = None,
    progress: bool = False,
    on_item: Callable[[BatchItem[T]], object] | None = None,
) -> list[BatchItem[T]]:
    """As `batch`, and call `on_item` with each item as soon as it and all items before it are done."""
    as_callable(function, "function", "an image")
    if workers is not None and scheduler is not None:
        raise ValueError("workers and scheduler are both given: a cluster has its own workers, give one of them")
    check_batch_options(function, options, _KEYWORDS)
    if "checkpoint" in options:
        raise ValueError("checkpoint is one file, but a batch is many searches: call the function for each")
    count = as_thread_count(None) if workers is None else as_count(workers, "workers", 1)
    iterable, total = _as_items(items)
    if workers is None and total is not None:
        count = min(count, total)
    rng = options.get("rng")
    tasks = _tasks(iterable, rng if isinstance(rng, np.random.Generator) else None)
    with contextlib.ExitStack() as stack:
        results = _Results(on_item, stack.enter_context(ItemBar(total)) if progress else None)
        if scheduler is None and count <= 1:
            error = _run_in_this_process(tasks, Call(function, options), results)
        else:
            call = Call.with_one_thread(function, options)
            executor: Executor = ProcessExecutor(call, count) if scheduler is None else DaskExecutor(call, scheduler)
            error = _Scheduler(tasks, stack.enter_context(executor), results).run()
        if error is not None and total is not None:  # without a total, an iterator may never end
            for index, task in tasks:
                results.add(index, task.name, Outcome(error=error))
    return results.as_list()


def _as_items(items: Iterable[object] | str | os.PathLike[str]) -> tuple[Iterable[object], int | None]:
    """The items to iterate over, and how many there are if that is known."""
    if isinstance(items, str | os.PathLike):
        folder = pathlib.Path(os.fsdecode(items))
        if folder.is_file():
            raise ValueError(f"items must be a folder or several images, got the file {as_text(folder)}: give a list")
        items = list_images(folder)
    if isinstance(items, np.ndarray) and items.ndim < 3:
        raise ValueError(f"items has shape {items.shape}, expected a stack (K, M, N); give one image as [image]")
    if isinstance(items, dict) or not isinstance(items, Iterable):
        raise TypeError(f"items must be a list of images or paths, a stack or a folder, got {type(items).__name__}")
    return items, len(items) if isinstance(items, Sized) else None


def _tasks(items: Iterable[object], rng: np.random.Generator | None) -> Iterator[tuple[int, BatchTask]]:
    """Number the items and turn each into a task. If the iterable raises, the last task holds the error."""
    iterator = iter(items)
    for index in itertools.count():
        try:
            item = next(iterator)
        except StopIteration:
            return
        except Exception as error:
            yield index, BatchTask(index, (), {}, error)
            return
        arguments = [_as_path_or_array(part) for part in (item if isinstance(item, tuple) else (item,))]
        name = arguments[0] if arguments and isinstance(arguments[0], pathlib.Path) else index
        yield index, BatchTask(name, tuple(arguments), {} if rng is None else {"rng": rng.spawn(1)[0]})


def _as_path_or_array(part: object) -> object:
    return pathlib.Path(os.fsdecode(part)) if isinstance(part, str | os.PathLike) else part


class _Results(Generic[T]):
    """The items that are done so far."""

    def __init__(self, on_item: Callable[[BatchItem[T]], object] | None, bar: ItemBar | None) -> None:
        self._items: dict[int, BatchItem[T]] = {}
        self._on_item, self._bar, self._reported = on_item, bar, 0

    def add(self, index: int, name: pathlib.Path | int, outcome: Outcome) -> None:
        self._items[index] = BatchItem(name, cast("T | None", outcome.value), outcome.error, outcome.seconds)
        if self._bar is not None:
            self._bar.step(outcome.error is not None)
        while self._on_item is not None and self._reported in self._items:
            self._on_item(self._items[self._reported])
            self._reported += 1

    def as_list(self) -> list[BatchItem[T]]:
        return [self._items[index] for index in sorted(self._items)]


class _RaisingInterrupts(Interrupts):
    """Raise KeyboardInterrupt at the first Ctrl-C: a search that stopped for it would be taken for a finished one."""

    def _note(self, number: int, frame: types.FrameType | None) -> None:
        super()._note(number, frame)
        raise KeyboardInterrupt


def _run_in_this_process(tasks: Iterator[tuple[int, BatchTask]], call: Call, results: _Results[T]) -> Exception | None:
    """Run all tasks one after the other; return the error of the tasks that are left, if there are any."""
    unfinished = None
    interrupts = _RaisingInterrupts()
    try:
        with interrupts:
            for index, task in tasks:
                unfinished = index, task
                outcome = call.run(task)
                unfinished = None
                results.add(index, task.name, outcome)
                if interrupts.pending:  # the signal came where Python ignores exceptions
                    break
    except KeyboardInterrupt:
        if not interrupts.pending:  # raised by a handler that the program installed
            raise
    if not interrupts.pending:
        return None
    error = BatchInterrupted(interrupts.pending)
    if unfinished is not None:
        results.add(unfinished[0], unfinished[1].name, Outcome(error=error))
    return error


class _Scheduler(Generic[T]):
    """Keeps an executor busy until all tasks are done."""

    def __init__(self, tasks: Iterator[tuple[int, BatchTask]], executor: Executor, results: _Results[T]) -> None:
        self._tasks, self._executor, self._results = tasks, executor, results
        self._running: dict[int, BatchTask] = {}
        self._retries: list[tuple[int, BatchTask]] = []  # tasks whose worker died
        self._crashes: collections.Counter[int] = collections.Counter()
        self._done: queue.SimpleQueue[tuple[int, Future]] = queue.SimpleQueue()

    def run(self) -> Exception | None:
        """Run all tasks; return the error of the tasks that are left, if there are any."""
        error: Exception | None = None
        with Interrupts() as interrupts:
            self._submit()
            while self._running and error is None:
                try:
                    self._collect(*self._done.get(timeout=_POLL))
                except queue.Empty:
                    error = self._executor.connection_error()
                if interrupts.pending:
                    error = BatchInterrupted(interrupts.pending)
                if error is None:
                    self._submit()
            with contextlib.suppress(queue.Empty):  # collect the tasks that have finished meanwhile
                while True:
                    self._collect(*self._done.get_nowait())
            self._executor.stop()
        for index, task in [*self._running.items(), *self._retries]:
            self._results.add(index, task.name, Outcome(error=error))
        return error

    def _submit(self) -> None:
        """Submit as many tasks as the executor takes; one at a time while several may have killed a worker."""
        has_suspects = self._retries or any(self._crashes[index] for index in self._running)
        one_by_one = has_suspects and not self._executor.attributes_crashes
        capacity = 1 if one_by_one else self._executor.capacity()
        while len(self._running) < capacity:
            index, task = self._retries.pop() if self._retries else next(self._tasks, (-1, None))
            if task is None:
                return
            try:
                if task.error is not None:
                    raise task.error
                future = self._executor.submit(task)
            except Exception as error:  # it cannot be pickled, for instance
                self._results.add(index, task.name, Outcome(error=error))
                continue
            self._running[index] = task
            future.add_done_callback(functools.partial(self._on_done, index))

    def _on_done(self, index: int, future: Future) -> None:
        self._done.put((index, future))

    def _collect(self, index: int, future: Future) -> None:
        """Record the outcome of a task, or put it back if its worker died for the first time."""
        task, outcome = self._running.pop(index), self._executor.outcome(future)
        if outcome is None:
            self._crashes[index] += 1
            if self._crashes[index] < _MAX_CRASHES:
                self._retries.append((index, task))
                return
            outcome = Outcome(error=WorkerDiedError(_WORKER_DIED))
        self._results.add(index, task.name, outcome)
