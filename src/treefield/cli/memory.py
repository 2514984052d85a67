"""What a search needs, said before it starts, and kept within what there is."""

from __future__ import annotations

import contextvars

from treefield.cli.streams import warn
from treefield.io.files import available_memory, in_units

_PLENTY = 2**30  # bytes: below, nobody needs to be told
_PACKED, _DUAL = 2, 12  # what packed costs add, in units of the costs; what the dual adds, in bytes per site and label

searches_at_once = contextvars.ContextVar("searches_at_once", default=1)  # that share the memory


def plan_memory(sites: int, labels: int, itemsize: int, *, quiet: bool) -> int | None:
    """How many bytes the search of a model may use beside its costs: None for as many as it likes.

    Says so where that is much, and refuses a model whose costs alone do not fit.
    """
    free = available_memory()
    costs = sites * labels * itemsize
    if free is None:
        return None
    free //= searches_at_once.get()
    if costs > 0.9 * free:
        raise MemoryError(
            f"{sites:,} sites with {labels} labels need {in_units(costs)} for their costs alone, but only "
            f"{in_units(free)} of memory are free{_for_each()}: take fewer labels or a smaller image, or denoise tile "
            "by tile with --memory-limit"
        )
    most = costs * (1 + _PACKED) + _DUAL * sites * labels
    limited = most > 0.9 * free
    if (most > _PLENTY or limited) and not quiet:
        how = f"more than the {in_units(free)} that are free: it will be kept to less, and search more slowly"
        end = how if limited else f"{in_units(free)} are free"
        warn(f"the search needs up to {in_units(most)} of memory; {end}")
    return int(0.9 * free) - costs if limited else None


def _for_each() -> str:
    many = searches_at_once.get()
    return "" if many == 1 else f" for each of {many} at once (--workers)"
