"""Limits on the memory that reading a file may take."""

from __future__ import annotations

import math
import os
import pathlib

from treefield.io.paths import as_text
from treefield.validation import as_byte_count

MAX_DEFLATE_RATIO = 1032  # bytes that one byte of deflate unpacks to, at most
_VARIABLE = "TREEFIELD_MAX_UNPACKED"
_MIN_LIMIT, _MIN_TEXT_LIMIT = 512_000_000, 32_000_000  # bytes; text takes more memory and time per byte
_MAX_RATIO = 100  # of unpacked to packed bytes


class TooLargeError(MemoryError):
    """A file unpacks to more than the free memory, or to more than the limit on unpacked data."""


def check_memory(path: str | os.PathLike[str], size: int) -> None:
    """Raise if a file unpacks to more bytes than are free."""
    available = available_memory()
    if available is not None and size > available:
        raise TooLargeError(
            f"{as_text(path)} unpacks to {format_bytes(size)}, but only {format_bytes(available)} of memory are free"
        )


def check_unpacked(path: pathlib.Path, size: int, *, text: bool = False) -> None:
    """Raise if a file unpacks to more bytes than the limit; for text, `size` is the number of bytes so far.

    The environment variable TREEFIELD_MAX_UNPACKED sets the limit. The default is 100 times the size of the file, which
    only endless repetition exceeds, but at least 512 MB, and at least 32 MB for text.
    """
    given = os.environ.get(_VARIABLE)
    if given:
        try:
            limit = int(given) if given.isdecimal() else as_byte_count(given, _VARIABLE)
        except ValueError as error:
            raise TooLargeError(f"{as_text(path)} cannot be unpacked: {error}") from None
    else:
        limit = max(_MIN_TEXT_LIMIT if text else _MIN_LIMIT, _MAX_RATIO * path.stat().st_size)
    if size > limit:
        unpacked = f"more than {format_bytes(limit)}" if text else format_bytes(size)
        enough = math.ceil((10 * limit if text else size) / 10**6)
        raise TooLargeError(
            f"{as_text(path)} unpacks to {unpacked}, but the limit is {format_bytes(limit)}; if you trust the file, "
            f"set the environment variable {_VARIABLE}={enough}MB to read it"
        )


def available_memory() -> int | None:
    """Bytes that can be used without swapping; without psutil all that the machine has; None if unknown."""
    try:
        import psutil
    except ImportError:
        if not hasattr(os, "sysconf"):
            return None
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(psutil.virtual_memory().available)


def resident_memory() -> int:
    """Bytes of memory that this process holds; a guess without psutil."""
    try:
        import psutil
    except ImportError:
        return 250_000_000
    return int(psutil.Process().memory_info().rss)


def format_bytes(size: int) -> str:
    """A number of bytes with three digits and a unit, such as "1.05 MB"."""
    for factor, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 1000 * factor else f"{size // factor} {unit}"
    return f"{size} bytes"
