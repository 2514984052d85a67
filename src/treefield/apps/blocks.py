"""Work on an image block by block, in parallel, so that temporary arrays stay small."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from treefield.validation import as_thread_count

T = TypeVar("T")


def over_blocks(work: Callable[[slice], T], length: int, size: int, threads: int | None = None) -> list[T]:
    """The results of `work(block)` for blocks of at most `size` of range(length), in order.

    The blocks do not depend on the number of threads. Ctrl-C ends the work after the blocks that have begun.
    """
    blocks = [slice(start, min(length, start + size)) for start in range(0, length, size)]
    with ThreadPoolExecutor(as_thread_count(threads), thread_name_prefix="treefield") as pool:
        return list(pool.map(work, blocks))
