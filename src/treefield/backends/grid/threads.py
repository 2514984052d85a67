"""Threads that share the work of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np


class Workers:
    """A few threads, the calling one included, that live as long as this object."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = self._new_pool() if count > 1 else None

    def share(self, work: Callable[[np.ndarray, int], None], parts: np.ndarray, *, all_threads: bool = True) -> None:
        """Call ``work(some of the parts, thread number)`` in each thread, and wait for all.

        Without `all_threads` the calling thread does everything.
        """
        count = min(self.count, len(parts)) if all_threads else 1
        if self._pool is None or count <= 1:
            work(parts, 0)
            return
        shares = np.array_split(parts, count)
        try:
            futures = [self._pool.submit(work, shares[k], k) for k in range(1, count)]
            work(shares[0], 0)
            for future in futures:
                future.result()
        except BaseException:  # an interrupt must not leave threads writing
            pool, self._pool = self._pool, self._new_pool()
            pool.shutdown(wait=True, cancel_futures=True)
            raise

    def _new_pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.count - 1, thread_name_prefix="treefield")
