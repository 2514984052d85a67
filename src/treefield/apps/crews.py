"""Who does the work of a batch: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading
import time
import types
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

from treefield.apps.jobs import Job, Outcome, Work, pickled
from treefield.io.files import MissingPackageError, one_line, shown

_GRACE = 3.0  # seconds that a worker has to clean up when it is told to end
_ANSWER = "4 s"  # in which a scheduler must answer, unless Dask's configuration has treefield.connect-timeout
_AHEAD = 2  # tasks per thread of a cluster
_RETRIES = 2
_NO_START = (
    'no worker process could start: in a script, call batch below `if __name__ == "__main__":`, or give workers=1'
)


class Crew(Protocol):
    """Takes jobs, so many at once; its futures call back when they are done. Some do not know on what a worker died."""

    knows_culprit: bool

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> None: ...

    def room(self) -> int:
        """How many jobs it takes at once."""

    def submit(self, job: Job) -> Any:
        """The future of a job, which is done soon."""

    def outcome(self, future: Any) -> Outcome | None:
        """How the job of a future went; None if its worker died."""

    def lost(self) -> Exception | None:
        """Why no job will ever be done, if that is so."""

    def stop(self) -> None:
        """Give up what is running."""


class ProcessCrew:
    """Processes of this machine, each a pool of its own: if one dies, it is known on which job, and others go on."""

    knows_culprit = True

    def __init__(self, work: Work, workers: int) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # a worker that runs its parent's script
            raise RuntimeError(_NO_START)
        try:
            self._work = pickle.dumps(work)
        except Exception as error:
            raise TypeError(
                "function and options go to other processes, but cannot be pickled: give a function of a module, no "
                f"lambda, or workers=1 ({one_line(error)})"
            ) from None
        self._context = multiprocessing.get_context("spawn")  # a fork would copy locks of running threads
        self._first = self._context.Semaphore(1)
        self._workers = workers
        self._idle: list[concurrent.futures.ProcessPoolExecutor] = []
        self._busy: dict[Any, concurrent.futures.ProcessPoolExecutor] = {}

    def __enter__(self) -> ProcessCrew:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._busy:
            self.stop()
        ends = [threading.Thread(target=pool.shutdown) for pool in self._idle]
        for end in ends:
            end.start()
        for end in ends:
            end.join()

    def room(self) -> int:
        return self._workers

    def submit(self, job: Job) -> Any:
        data = pickle.dumps(job)
        with _interrupts_held():
            try:
                pool = self._idle.pop() if self._idle else self._new()
                future = pool.submit(_attempt, data)
            except BrokenProcessPool:  # it died while it had nothing to do
                pool = self._new()
                future = pool.submit(_attempt, data)
        self._busy[future] = pool
        return future

    def _new(self) -> concurrent.futures.ProcessPoolExecutor:
        return concurrent.futures.ProcessPoolExecutor(1, self._context, _begin, (self._work, self._first))

    def outcome(self, future: Any) -> Outcome | None:
        pool = self._busy.pop(future)
        try:
            data, told = future.result()
            outcome = pickle.loads(data)
            for text, category in told:
                warnings.warn(text, category, stacklevel=2)
        except BrokenProcessPool:
            pool.shutdown(wait=False)
            if self._first.acquire(block=False):
                raise RuntimeError(_NO_START) from None
            return None
        except Exception as error:  # it could not be sent, or a warning is an error
            outcome = Outcome(error=error)
        self._idle.append(pool)
        return outcome

    def lost(self) -> None:
        """Never: a process that dies is told by its future."""

    def stop(self) -> None:
        pools = list(self._busy.values())
        processes = [process for pool in pools for process in (pool._processes or {}).values()]
        self._busy.clear()
        for process in processes:
            process.terminate()
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + _GRACE
        alive = {process.sentinel: process for process in processes}
        while alive and time.monotonic() < deadline:
            for sentinel in multiprocessing.connection.wait(list(alive), deadline - time.monotonic()):
                del alive[sentinel]  # type: ignore[arg-type]
        for process in alive.values():
            process.kill()
        for process in processes:
            process.join()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits: a process that starts inherits this, and leaves it to its parent for good."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_here: dict[str, Any] = {}  # of a worker process: its work


def _begin(work: bytes, first: Any) -> None:
    """Make a process a worker: its parent decides when it ends, it has one thread, and only the first one says that
    kernels are compiled."""
    from treefield.kernels import jit

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["TREEFIELD_NUM_THREADS"] = "1"
    if not first.acquire(block=False):
        jit.mute_compile_notice()
    _here["pickled"] = work


def _leave(number: int, frame: types.FrameType | None) -> None:
    raise SystemExit(128 + number)  # so that files half written are taken away


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _attempt(data: bytes) -> tuple[bytes, list[tuple[str, type[Warning]]]]:
    """The outcome of a job and its warnings, in a worker process."""
    try:
        if "work" not in _here:
            _here["work"] = pickle.loads(_here["pickled"])
        job = pickle.loads(data)
    except Exception as error:
        told = f"a worker cannot unpickle it ({one_line(error)}): put the function into a module, or give workers=1"
        return pickled(Outcome(error=RuntimeError(told))), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        outcome = _here["work"].attempt(job)
    return pickled(outcome), [(f"{job.name}: {warning.message}", warning.category) for warning in caught]


class DaskCrew:
    """The workers of a Dask cluster. With one that dies, jobs are lost that only waited or were done there."""

    knows_culprit = False

    def __init__(self, work: Work, scheduler: Any) -> None:
        try:
            distributed = importlib.import_module("distributed")
        except ImportError as error:
            raise MissingPackageError('scheduler needs Dask: pip install "treefield[dask]"') from error
        self._work, self._own = work, isinstance(scheduler, str)
        if self._own:
            scheduler = _connected(distributed, scheduler)
        if not isinstance(scheduler, distributed.Client) or scheduler.asynchronous:
            what = type(scheduler).__name__
            raise TypeError(
                f'scheduler must be an address such as "tcp://host:8786" or a distributed.Client, got {what}'
            )
        self._client, self._threads, self._killed = scheduler, 1, distributed.KilledWorker
        self._running: set[Any] = set()

    def __enter__(self) -> DaskCrew:
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()
        if self._own:
            self._client.close()

    def room(self) -> int:
        with contextlib.suppress(Exception):  # if it does not answer, `lost` will say so
            self._threads = max(1, sum(self._client.nthreads().values()))  # a cluster may grow
        return _AHEAD * self._threads

    def submit(self, job: Job) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # few are on their way at once
            task, key = _Task(self._work, job.anywhere()), f"treefield-{uuid.uuid4()}"
            future = self._client.submit(task, key=key, pure=False, retries=_RETRIES)
        self._running.add(future)
        return future

    def outcome(self, future: Any) -> Outcome | None:
        self._running.discard(future)
        try:
            return future.result()
        except self._killed:
            return None
        except (Exception, asyncio.CancelledError) as error:
            return Outcome(error=self.lost() or error)

    def lost(self) -> Exception | None:
        if self._client.status in ("closed", "closing"):
            return ConnectionError("the connection to the Dask scheduler is lost")
        return None

    def stop(self) -> None:
        if self._running and self._client.status == "running":
            self._client.cancel(list(self._running), force=True)
        self._running.clear()


def _connected(distributed: Any, address: str) -> Any:
    """A client of the scheduler at an address, or a ConnectionError soon.

    A client that cannot connect waits half a minute, or for ever if something else answers; so ask first.
    """
    limit = _answer_time()

    async def ask() -> None:
        secrets = distributed.Security().get_connection_args("client")
        async with distributed.rpc(address, timeout=limit, connection_args=secrets) as peer:
            kind = (await peer.identity())["type"]
        if kind != "Scheduler":
            raise ValueError(f"it is the address of a {kind}")

    async def ask_in_time() -> None:
        await asyncio.wait_for(ask(), limit)

    try:
        with concurrent.futures.ThreadPoolExecutor(1) as thread:  # this one may have an event loop, as in Jupyter
            thread.submit(lambda: asyncio.run(ask_in_time())).result()
        return distributed.Client(address, set_as_default=False)
    except Exception as error:
        slow = f" within {limit:g} s (DASK_TREEFIELD__CONNECT_TIMEOUT sets another limit)"
        when = slow if isinstance(error, OSError) else ""
        raise ConnectionError(f"no Dask scheduler answers at {shown(address)}{when}: {one_line(error)}") from None


def _answer_time() -> float:
    """Seconds in which a scheduler must answer."""
    import dask

    given = dask.config.get("treefield.connect-timeout", _ANSWER)
    try:
        return float(dask.utils.parse_timedelta(given, "s"))
    except (LookupError, TypeError, ValueError):
        raise ValueError(f"DASK_TREEFIELD__CONNECT_TIMEOUT must be a time such as 30s, got {given!r}") from None


class _Task:
    """A job as a cluster gets it: as one object, into which Dask does not look for tasks of its own."""

    def __init__(self, work: Work, job: Job) -> None:
        self._work, self._job = work, job

    def __call__(self) -> Outcome:
        outcome = self._work.attempt(self._job)
        if isinstance(outcome.error, MemoryError) or getattr(outcome.error, "errno", None) is not None:
            raise outcome.error  # type: ignore[misc]  # perhaps the machine's fault: tried again
        return pickle.loads(pickled(outcome)) if outcome.error is not None else outcome
