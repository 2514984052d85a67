"""The memory that an application may use for its model and the search, and a check that the model fits into it."""

from __future__ import annotations

import contextvars

from treefield.io.limits import available_memory, format_bytes
from treefield.validation import as_byte_count

SEARCH_BYTES = 2 * 10**9  # by default; enough for tiles whose borders are few
MODEL_BYTES = 24 * 10**8  # by default, for costs and search: the process stays below 3 GB
_FREE_SHARE = 0.8  # of the free memory that a search may use
_BYTES_PER_SITE = 100  # of floating-point images, weights and labellings

searches_at_once = contextvars.ContextVar("searches_at_once", default=1)  # searches that share the memory


def search_memory(memory_limit: float | str | None, default: int = SEARCH_BYTES) -> int:
    """The bytes that a search may use: those given, otherwise the default or most of the free memory, if less."""
    if memory_limit is not None:
        return as_byte_count(memory_limit, "memory_limit")
    free = available_memory()
    return default if free is None else min(default, int(_FREE_SHARE * free) // searches_at_once.get())


def memory_left_by_costs(
    sites: int,
    labels: int,
    itemsize: int,
    memory_limit: float | str | None,
    remedy: str,
    copies: int = 1,
    default: int = MODEL_BYTES,
) -> int:
    """The bytes that are left for the search of a model, once its costs are in memory.

    Raises MemoryError, before the costs are allocated, if there is no room for them. `remedy` says how there can be
    fewer; `copies` is the number of models in memory at the same time; `default` the memory limit where none is given
    and more is free.
    """
    limit = search_memory(memory_limit, default)
    costs = copies * sites * labels * itemsize
    need = costs + sites * _BYTES_PER_SITE
    if need > limit:
        reason = _reason(memory_limit, limit, default)
        raise MemoryError(
            f"{sites:,} sites with {labels} labels need at least {format_bytes(need)}, but {reason}: take {remedy}, or "
            "give a larger memory_limit (--memory-limit)"
        )
    return limit - costs


def _reason(memory_limit: float | str | None, limit: int, default: int) -> str:
    """Why there are no more than `limit` bytes."""
    if memory_limit is not None or limit == default:
        name = "memory_limit is" if memory_limit is not None else "the default memory_limit is"
        return f"{name} {format_bytes(limit)}"
    many = searches_at_once.get()
    share = "" if many == 1 else f" for each of {many} at once (--workers)"
    return f"only {format_bytes(limit)} of the memory are free{share}"
