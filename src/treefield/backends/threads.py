"""Threads that share the work of a sweep."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import numpy as np


class _Helper:
    """A thread that works for one caller at a time."""

    def __init__(self) -> None:
        self._is_free, self._has_work, self._has_ended = (threading.Lock() for _ in range(3))
        self._has_work.acquire()
        self._has_ended.acquire()
        self._work: Callable[[], None] = _nothing
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="treefield", daemon=True).start()

    def take(self) -> bool:
        """Reserve the thread; False if it works for another caller."""
        return self._is_free.acquire(blocking=False)

    def start(self, work: Callable[[], None]) -> None:
        """Begin to work."""
        self._work = work
        self._has_work.release()

    def join(self) -> BaseException | None:
        """Wait for the end of the work, also after an interrupt; free the thread and return the error of the work."""
        try:
            self._has_ended.acquire()
        except BaseException:
            self._has_ended.acquire()
            raise
        finally:
            error, self._error, self._work = self._error, None, _nothing
            self._is_free.release()
        return error

    def _run(self) -> None:
        while True:
            self._has_work.acquire()
            try:
                self._work()
            except BaseException as error:  # the caller's
                self._error = error
            self._has_ended.release()


def _nothing() -> None:
    pass


_helpers: list[_Helper] = []  # shared by all searches: a thread that has just worked starts sooner
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.clear)  # a forked process has no threads


def share_of(parts: np.ndarray, number: int, count: int) -> np.ndarray:
    """The parts of one of `count` threads."""
    return parts[len(parts) * number // count : len(parts) * (number + 1) // count]


class Workers:
    """A number of threads, the calling one included. Those that are busy elsewhere are not waited for."""

    def __init__(self, count: int) -> None:
        self.count = count

    def run(self, work: Callable[[int, int], None], most: int) -> None:
        """Call ``work(number, count)`` in `count` threads at once, at most `most`; wait for all, then raise errors."""
        helpers = self._take(min(self.count, most) - 1)
        started: list[_Helper] = []
        try:
            for number, helper in enumerate(helpers, start=1):
                helper.start(lambda number=number: work(number, 1 + len(helpers)))  # type: ignore[misc]
                started.append(helper)
            work(0, 1 + len(helpers))
        finally:  # an interrupt must not leave threads writing
            errors = [helper.join() for helper in started]
        for error in errors:
            if error is not None:
                raise error

    def share(self, work: Callable[[np.ndarray, int], None], parts: np.ndarray, *, all_threads: bool = True) -> None:
        """Call ``work(some of the parts, thread number)`` in each thread, and wait for all.

        Without `all_threads` the calling thread does everything.
        """
        self.run(lambda k, count: work(share_of(parts, k, count), k), len(parts) if all_threads else 1)

    def _take(self, count: int) -> list[_Helper]:
        while len(_helpers) < count:
            _helpers.append(_Helper())
        taken: list[_Helper] = []
        for helper in list(_helpers):
            if len(taken) < count and helper.take():
                taken.append(helper)
        return taken
