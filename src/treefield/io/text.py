"""Text files of numbers, packed or not, read block by block and without trust in what they claim."""

from __future__ import annotations

import gzip
import lzma
import os
import pathlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

import numpy as np

from treefield.io.files import write_atomically
from treefield.io.limits import TooLargeError, available_memory, check_unpacked, format_bytes
from treefield.io.paths import as_text

PACKED_SUFFIXES = (".gz", ".xz")
BLOCK = 2**20  # bytes unpacked at once, and the length of the longest word
WHITE_SPACE = b" \t\r\n\v\f"
_MEMORY_PER_BYTE = 32  # bytes of memory that a byte of text may need on its way to a model
_PackedFile = BinaryIO | gzip.GzipFile | lzma.LZMAFile


def format_suffix(path: pathlib.Path) -> str:
    """The suffix that determines the format, in lower case: ".uai" for model.uai and for model.uai.gz."""
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if suffix in PACKED_SUFFIXES else suffix


def read_unpacked(path: pathlib.Path, memory_per_byte: int = _MEMORY_PER_BYTE) -> Iterator[bytes]:
    """Yield the content of a file in parts, unpacked if its name ends in .gz or .xz.

    Raise TooLargeError at the limit on unpacked data, or if `memory_per_byte` times the data exceeds the free memory.
    """
    suffix = path.suffix.lower()
    free = available_memory()
    with path.open("rb") as raw:
        file: _PackedFile = raw
        if suffix == ".gz":
            file = gzip.GzipFile(fileobj=raw)
        elif suffix == ".xz":
            file = lzma.LZMAFile(raw)  # noqa: SIM115
        size = 0
        while True:
            try:
                part = file.read(BLOCK)
            except (EOFError, OSError, lzma.LZMAError) as error:
                raise ValueError(f"it cannot be unpacked: {error} (after {format_bytes(size)})") from None
            if not part:
                return
            size += len(part)
            if file is not raw:
                check_unpacked(path, size, text=True)
            if free is not None and size * memory_per_byte > free:
                raise TooLargeError(
                    f"{as_text(path)} holds more than {format_bytes(free // memory_per_byte)}, of which a model may "
                    f"need {memory_per_byte} times the memory, but only {format_bytes(free)} are free"
                )
            yield part


def end_of_last_word(data: bytes) -> int:
    """The index after the last white space, 0 if there is none."""
    return max(data.rfind(space) for space in WHITE_SPACE) + 1


def end_of_last_line(data: bytes) -> int:
    """The index after the last line break, 0 if there is none."""
    return data.rfind(10) + 1


def read_blocks(path: pathlib.Path, find_end: Callable[[bytes], int] = end_of_last_word) -> Iterator[bytes]:
    """The text of a file, unpacked, in blocks of about 1 MB that end where `find_end` says that they may."""
    return align_blocks(read_unpacked(path), find_end)


def align_blocks(parts: Iterable[bytes], find_end: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield parts of a text, moving what follows `find_end` to the next; a word of more than 1 MB raises ValueError."""
    rest = b""
    for part in parts:
        if b"\0" in part:
            raise ValueError("it is no text: it holds bytes that are 0")
        data = rest + part
        end = find_end(data)
        if len(data) - end >= BLOCK:
            raise ValueError("it holds a word, text or comment of more than 1 MB")
        rest = data[end:]
        if end:
            yield data[:end]
    if rest:
        yield rest


def parse_numbers(text: bytes) -> np.ndarray | None:
    """The numbers of a text, separated by white space; None if it contains anything else.

    A word such as 1.5.2 gives two numbers: compare their number with that of the words.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, sep=" ")
        except (DeprecationWarning, ValueError):
            return None


def write_text(path: str | os.PathLike[str], pieces: Iterable[str], *, force: bool = False) -> None:
    """Write pieces of text, packed if the path ends in .gz or .xz; equal texts give equal bytes."""
    with write_atomically(path, force=force) as temporary, temporary.open("wb") as raw:
        suffix = temporary.suffix.lower()
        file: _PackedFile = raw
        if suffix == ".gz":
            file = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
        elif suffix == ".xz":
            file = lzma.LZMAFile(raw, "wb")  # noqa: SIM115
        for piece in pieces:
            file.write(piece.encode())
        if suffix in PACKED_SUFFIXES:
            file.close()
