"""Where the calls of a batch run: in processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.context
import os
import pickle
import signal
import threading
import time
import types
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Semaphore
from typing import Any, Protocol, cast

from treefield.apps.batch_task import BatchTask, Call, Outcome, pickle_outcome
from treefield.io.files import MissingPackageError
from treefield.io.paths import as_text, error_text

_GRACE = 3.0  # seconds between SIGTERM and SIGKILL, for a worker to remove temporary files
_CONNECT_TIMEOUT = "4 s"  # for a scheduler, unless Dask's configuration has treefield.connect-timeout
_TASKS_PER_THREAD = 2  # submitted to a cluster at once
_RETRIES = 2
_NO_START = (
    'no worker process could start: in a script, call batch below `if __name__ == "__main__":`, or give workers=1'
)


TaskReturn = tuple[bytes, list[tuple[str, type[Warning]]]]  # a pickled outcome, and the warnings of the call


class Future(Protocol):
    """A task that was submitted: a future of `concurrent.futures` or of Dask."""

    def result(self) -> object:
        """The task's return value; raises the task's error."""

    def add_done_callback(self, function: Callable[[Future], object], /) -> object:
        """Call a function with this future when the task is done."""


class Executor(Protocol):
    """Runs tasks elsewhere, several at once."""

    attributes_crashes: bool
    """Whether it is known which task a worker died on; if not, several tasks are suspects."""

    def __enter__(self) -> Executor: ...

    def __exit__(self, *error: object) -> None: ...

    def capacity(self) -> int:
        """How many tasks may be submitted at once."""

    def submit(self, task: BatchTask) -> Future:
        """Start a task and return its future."""

    def outcome(self, future: Future) -> Outcome | None:
        """The outcome of a future that is done; None if the worker died."""

    def connection_error(self) -> Exception | None:
        """The error to report for all tasks if the workers are out of reach; otherwise None."""

    def stop(self) -> None:
        """Cancel the tasks that are running."""


class _SpawnedProcesses(multiprocessing.context.SpawnContext):
    """A multiprocessing context that remembers the processes it has created.

    A pool created with it can be terminated, for which ProcessPoolExecutor has no public method before Python 3.14.
    """

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[SpawnProcess] = []

    def Process(self, *args: Any, **keywords: Any) -> SpawnProcess:  # type: ignore[override]
        """Create a process, as the base class does, and remember it."""
        process = super().Process(*args, **keywords)
        self.processes.append(process)
        return process


class _Worker:
    """One worker process, a pool of size one."""

    def __init__(self, call: bytes, first: Semaphore) -> None:
        self._context = _SpawnedProcesses()  # a fork would copy the locks of running threads
        self._pool = concurrent.futures.ProcessPoolExecutor(1, self._context, _start_worker, (call, first))

    def submit(self, data: bytes) -> concurrent.futures.Future[TaskReturn]:
        return self._pool.submit(_run_task, data)

    def shutdown(self, *, wait: bool) -> None:
        self._pool.shutdown(wait=wait, cancel_futures=not wait)

    @property
    def processes(self) -> list[SpawnProcess]:
        """Its processes: one, or none before the first task."""
        return self._context.processes


class ProcessExecutor:
    """Processes of this machine.

    Each has its own pool: if one dies, the task that it was running is known, and the other processes go on. (In a pool
    that shares its pipes, such as pebble's, a worker that dies while it sends its result takes the pool with it.)
    """

    attributes_crashes = True

    def __init__(self, call: Call, workers: int) -> None:
        # Private, so optional: without it, multiprocessing raises a longer error when the first process starts.
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # a worker that runs its parent's script
            raise RuntimeError(_NO_START)
        try:
            self._call = pickle.dumps(call)
        except Exception as error:
            raise TypeError(
                "function and options go to other processes, but cannot be pickled: give a function of a module, no "
                f"lambda, or workers=1 ({error_text(error)})"
            ) from None
        self._first = multiprocessing.get_context("spawn").Semaphore(1)
        self._workers = workers
        self._idle: list[_Worker] = []
        self._busy: dict[Future, _Worker] = {}

    def __enter__(self) -> ProcessExecutor:
        return self

    def __exit__(self, *error: object) -> None:
        if self._busy:
            self.stop()
        threads = [threading.Thread(target=worker.shutdown, kwargs={"wait": True}) for worker in self._idle]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def capacity(self) -> int:
        return self._workers

    def submit(self, task: BatchTask) -> Future:
        data = pickle.dumps(task)
        with _sigint_blocked():
            try:
                worker = self._idle.pop() if self._idle else self._new_worker()
                future = worker.submit(data)
            except BrokenProcessPool:  # it died while it was idle
                worker = self._new_worker()
                future = worker.submit(data)
        self._busy[future] = worker
        return future

    def _new_worker(self) -> _Worker:
        return _Worker(self._call, self._first)

    def outcome(self, future: Future) -> Outcome | None:
        worker = self._busy.pop(future)
        try:
            data, caught = cast(TaskReturn, future.result())
            outcome = pickle.loads(data)
            for text, category in caught:
                warnings.warn(text, category, stacklevel=2)
        except BrokenProcessPool:
            worker.shutdown(wait=False)
            if self._first.acquire(block=False):  # no worker has ever started
                raise RuntimeError(_NO_START) from None
            return None
        except Exception as error:  # the result could not be sent, or warnings are errors
            outcome = Outcome(error=error)
        self._idle.append(worker)
        return outcome

    def connection_error(self) -> None:
        """None: the future of a process that dies says so."""

    def stop(self) -> None:
        workers = list(self._busy.values())
        processes = [process for worker in workers for process in worker.processes]
        self._busy.clear()
        for process in processes:
            process.terminate()
        for worker in workers:
            worker.shutdown(wait=False)
        deadline = time.monotonic() + _GRACE
        alive = {process.sentinel: process for process in processes}
        while alive and time.monotonic() < deadline:
            ended = multiprocessing.connection.wait(list(alive), deadline - time.monotonic())
            alive = {sentinel: process for sentinel, process in alive.items() if sentinel not in ended}
        for process in alive.values():
            process.kill()
        for process in processes:
            process.join()


@contextlib.contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block Ctrl-C: a process that starts meanwhile inherits the mask, so that only its parent handles Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_worker_state: dict[str, Any] = {}  # in a worker process: the call, pickled and then unpickled


def _start_worker(call: bytes, first: Semaphore) -> None:
    """Initialise a worker process: the parent decides when it ends, it has one thread, and only the first worker prints
    that kernels are being compiled."""
    from treefield.kernels.simd import jit

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    os.environ["TREEFIELD_NUM_THREADS"] = "1"
    if not first.acquire(block=False):
        jit.mute_compile_notice()
    _worker_state["pickled"] = call


def _exit_on_sigterm(number: int, frame: types.FrameType | None) -> None:
    raise SystemExit(128 + number)  # unwinds the stack, so that temporary files are removed


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_task(data: bytes) -> TaskReturn:
    """Run a task in a worker process; return its pickled outcome and its warnings."""
    try:
        if "call" not in _worker_state:
            _worker_state["call"] = pickle.loads(_worker_state["pickled"])
        task = pickle.loads(data)
    except Exception as error:
        message = (
            f"a worker cannot unpickle it ({error_text(error)}): put the function into a module, or give workers=1"
        )
        return pickle_outcome(Outcome(error=RuntimeError(message))), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        outcome = _worker_state["call"].run(task)
    return pickle_outcome(outcome), [(f"{task.name}: {warning.message}", warning.category) for warning in caught]


class DaskExecutor:
    """The workers of a Dask cluster. If one dies, all tasks that it ran or held are lost, and any may be the cause."""

    attributes_crashes = False

    def __init__(self, call: Call, scheduler: Any) -> None:
        try:
            distributed = importlib.import_module("distributed")
        except ImportError as error:
            raise MissingPackageError('scheduler needs Dask: pip install "treefield[dask]"') from error
        self._call, self._owns_client = call, isinstance(scheduler, str)
        if self._owns_client:
            scheduler = _connect(distributed, scheduler)
        if not isinstance(scheduler, distributed.Client) or scheduler.asynchronous:
            raise TypeError(
                'scheduler must be an address such as "tcp://host:8786" or a distributed.Client that is not '
                f"asynchronous, got {type(scheduler).__name__}"
            )
        self._client, self._threads, self._killed_worker = scheduler, 1, distributed.KilledWorker
        self._running: set[Future] = set()

    def __enter__(self) -> DaskExecutor:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        if self._owns_client:
            self._client.close()

    def capacity(self) -> int:
        with contextlib.suppress(Exception):  # if the scheduler does not answer, `connection_error` says so
            self._threads = max(1, sum(self._client.nthreads().values()))  # a cluster may grow
        return _TASKS_PER_THREAD * self._threads

    def submit(self, task: BatchTask) -> Future:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # only a few tasks are in flight
            function, key = _DaskTask(self._call, task.with_absolute_paths()), f"treefield-{uuid.uuid4()}"
            future = self._client.submit(function, key=key, pure=False, retries=_RETRIES)
        self._running.add(future)
        return future

    def outcome(self, future: Future) -> Outcome | None:
        self._running.discard(future)
        try:
            return cast(Outcome, future.result())
        except self._killed_worker:
            return None
        except (Exception, asyncio.CancelledError) as error:
            return Outcome(error=self.connection_error() or error)

    def connection_error(self) -> Exception | None:
        if self._client.status in ("closed", "closing"):
            return ConnectionError("the connection to the Dask scheduler is lost")
        return None

    def stop(self) -> None:
        if self._running and self._client.status == "running":
            self._client.cancel(list(self._running), force=True)
        self._running.clear()


def _connect(distributed: Any, address: str) -> Any:
    """Return a client of the scheduler at an address, or raise ConnectionError within the timeout.

    A client that cannot connect waits half a minute, and for ever if something else answers. So ask the address first.
    """
    timeout = _connect_timeout()

    async def ask() -> None:
        connection_args = distributed.Security().get_connection_args("client")
        async with distributed.rpc(address, timeout=timeout, connection_args=connection_args) as peer:
            kind = (await peer.identity())["type"]
        if kind != "Scheduler":
            raise ValueError(f"it is the address of a {kind}")

    async def ask_with_timeout() -> None:
        await asyncio.wait_for(ask(), timeout)

    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:  # this thread may run an event loop, as in Jupyter
            pool.submit(lambda: asyncio.run(ask_with_timeout())).result()
        return distributed.Client(address, set_as_default=False)
    except Exception as error:
        slow = f" within {timeout:g} s (DASK_TREEFIELD__CONNECT_TIMEOUT sets another limit)"
        when = slow if isinstance(error, OSError) else ""
        raise ConnectionError(f"no Dask scheduler answers at {as_text(address)}{when}: {error_text(error)}") from None


def _connect_timeout() -> float:
    """Seconds to wait for the answer of a scheduler."""
    import dask

    value = dask.config.get("treefield.connect-timeout", _CONNECT_TIMEOUT)
    try:
        return float(dask.utils.parse_timedelta(value, "s"))
    except (LookupError, TypeError, ValueError):
        raise ValueError(f"DASK_TREEFIELD__CONNECT_TIMEOUT must be a time such as 30s, got {value!r}") from None


class _DaskTask:
    """A task as one opaque object, so that Dask does not search its arguments for Dask tasks."""

    def __init__(self, call: Call, task: BatchTask) -> None:
        self._call, self._task = call, task

    def __call__(self) -> Outcome:
        outcome = self._call.run(self._task)
        if isinstance(outcome.error, MemoryError) or getattr(outcome.error, "errno", None) is not None:
            raise outcome.error  # type: ignore[misc]  # perhaps the machine's fault: Dask tries again
        return pickle.loads(pickle_outcome(outcome)) if outcome.error is not None else outcome
