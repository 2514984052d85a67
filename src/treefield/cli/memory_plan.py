"""Announce the memory that a search needs, and limit it to the memory that is free."""

from __future__ import annotations

from treefield.apps.memory import searches_at_once
from treefield.cli.streams import warn
from treefield.io.limits import available_memory, format_bytes

_ANNOUNCED = 2**30  # bytes: less is not announced
_PACKED = 2  # packed copies of the costs, in units of the costs
_DUAL = 12  # bytes per site and label of the dual


def plan_memory(sites: int, labels: int, itemsize: int, *, quiet: bool) -> int | None:
    """The bytes that the search of a model may use in addition to its costs; None for no limit.

    Announces a need of more than 1 GB, and raises MemoryError if the costs alone do not fit.
    """
    free = available_memory()
    costs = sites * labels * itemsize
    if free is None:
        return None
    free //= searches_at_once.get()
    if costs > 0.9 * free:
        raise MemoryError(
            f"{sites:,} sites with {labels} labels need {format_bytes(costs)} for their costs alone, but only "
            f"{format_bytes(free)} of memory are free{_per_search()}: take fewer labels or a smaller image, or denoise "
            "tile by tile with --memory-limit"
        )
    most = costs * (1 + _PACKED) + _DUAL * sites * labels
    limited = most > 0.9 * free
    if (most > _ANNOUNCED or limited) and not quiet:
        how = f"more than the {format_bytes(free)} that are free: it will be kept to less, and search more slowly"
        end = how if limited else f"{format_bytes(free)} are free"
        warn(f"the search needs up to {format_bytes(most)} of memory; {end}")
    return int(0.9 * free) - costs if limited else None


def _per_search() -> str:
    many = searches_at_once.get()
    return "" if many == 1 else f" for each of {many} at once (--workers)"
