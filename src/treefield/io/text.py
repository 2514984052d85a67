"""Text files of numbers, packed or not, read in bulk and without trust in what they claim."""

from __future__ import annotations

import gzip
import lzma
import pathlib
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from treefield.io.files import TooLargeError, available_memory, in_units, shown, writing

PACKED = (".gz", ".xz")
_CHUNK = 2**20
_PER_BYTE = 32  # bytes of memory that a byte of text may need while it becomes numbers
_SPACES = np.zeros(256, bool)
_SPACES[list(b" \t\r\n\v\f")] = True
_SHOWN = 24  # characters of a word that a message shows


def suffix_of(path: pathlib.Path) -> str:
    """The suffix that tells the format, in lower case: ".uai" of model.uai and of model.uai.gz."""
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if suffix in PACKED else suffix


def read_packed(path: pathlib.Path) -> bytes:
    """The content of a file, unpacked if it ends in .gz or .xz, as far as memory allows to make numbers of it."""
    suffix = path.suffix.lower()
    free = available_memory()
    limit = None if free is None else free // _PER_BYTE
    with path.open("rb") as raw:
        file: Any = raw
        if suffix == ".gz":
            file = gzip.GzipFile(fileobj=raw)
        elif suffix == ".xz":
            file = lzma.LZMAFile(raw)  # noqa: SIM115
        parts, size = [], 0
        try:
            while part := file.read(_CHUNK):
                parts.append(part)
                size += len(part)
                if limit is not None and size > limit:
                    raise TooLargeError(
                        f"{shown(path)} holds more than {in_units(limit)} of text, but only {in_units(free or 0)} of "
                        "memory are free"
                    )
        except (EOFError, OSError, lzma.LZMAError) as error:
            raise ValueError(f"it cannot be unpacked: {error} (after {in_units(size)})") from None
    return b"".join(parts)


def write_packed(path: Any, text: Iterable[str], *, force: bool = False) -> None:
    """Write pieces of text, packed if the path ends in .gz or .xz; the same text gives the same bytes."""
    with writing(path, force=force) as temporary, temporary.open("wb") as raw:
        suffix = temporary.suffix.lower()
        file: Any = raw
        if suffix == ".gz":
            file = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
        elif suffix == ".xz":
            file = lzma.LZMAFile(raw, "wb")  # noqa: SIM115
        for piece in text:
            file.write(piece.encode())
        if suffix in PACKED:
            file.close()


class Tokens:
    """The words of a text, where they are, and their numbers.

    Only their places are kept, so that a word costs 16 bytes and a number 8 more.
    """

    def __init__(self, data: bytes) -> None:
        if b"\0" in data:
            raise ValueError(f"it is no text: byte {data.index(0)} is 0")
        self.data = data
        spaces = np.ones(len(data) + 2, bool)
        spaces[1:-1] = _SPACES[np.frombuffer(data, np.uint8)]
        change = np.flatnonzero(spaces[1:] != spaces[:-1])
        self.starts, self.ends = change[::2], change[1::2]

    def __len__(self) -> int:
        return len(self.starts)

    def word(self, index: int) -> str:
        """A word as it is written."""
        return self.data[self.starts[index] : self.ends[index]].decode("latin-1")

    def where(self, index: int) -> str:
        """The place of a word, for messages."""
        if index >= len(self):
            return "its end"
        word = self.word(index)
        word = word if len(word) <= _SHOWN else f"{word[: _SHOWN - 3]}..."
        return f"line {self.data.count(10, 0, int(self.starts[index])) + 1} ({word!r})"

    def numbers(self, first: int = 0) -> np.ndarray:
        """All words from the first on as float64; or an error that names the word that is no number."""
        if first >= len(self):
            return np.empty(0)
        values = parsed(self.data[self.starts[first] :])
        if values is None or len(values) != len(self) - first:
            raise ValueError(f"{self.where(self._bad(first, len(self)))} is no number")
        return values

    def _bad(self, first: int, last: int) -> int:
        """The first word that is no number, by halving; one is there."""
        while last - first > 1:
            middle = (first + last) // 2
            values = parsed(self.data[self.starts[first] : self.ends[middle - 1]])
            if values is None or len(values) != middle - first:
                last = middle
            else:
                first = middle
        return first


def parsed(text: bytes) -> np.ndarray | None:
    """The numbers of a text, separated by white space; None where something else is among them.

    A word such as 1.5.2 gives two numbers: compare their number with that of the words.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, sep=" ")
        except (DeprecationWarning, ValueError):
            return None


class Cursor:
    """Numbers read one after the other, each with its place for the message that refuses it."""

    def __init__(self, tokens: Tokens, first: int = 0) -> None:
        self.tokens, self._first = tokens, first
        self.values = tokens.numbers(first)
        self.at = 0

    @property
    def left(self) -> int:
        """How many numbers follow."""
        return len(self.values) - self.at

    def where(self, back: int = 1) -> str:
        """The place of the number read last, or of one before it."""
        return self.tokens.where(self._first + self.at - back)

    def integer(self, what: str, low: int, high: int | None = None) -> int:
        """One integer from `low` to `high`."""
        return int(self.integers(1, what, low, high)[0])

    def integers(self, count: int, what: str, low: int, high: int | None = None) -> np.ndarray:
        """Some integers from `low` to `high`, as int64."""
        values = self.floats(count, what)
        good = (values >= low) & (values <= (2**53 if high is None else high)) & (values == np.floor(values))
        if not good.all():
            place = self.where(count - int(np.argmin(good)))
            limits = f"at least {low}" if high is None else f"{low} to {high}"
            raise ValueError(f"{what} at {place} must be an integer, {limits}")
        return values.astype(np.int64)

    def floats(self, count: int, what: str) -> np.ndarray:
        """Some numbers as they are."""
        if count > self.left:
            raise ValueError(f"it ends before {what}: {count} numbers are expected, {self.left} follow")
        values = self.values[self.at : self.at + count]
        self.at += count
        return values

    def finish(self) -> None:
        """Refuse what is left over."""
        if self.left:
            self.at += 1
            raise ValueError(f"{self.left + 1} numbers more than expected follow, from {self.where()} on")


def numbers_text(values: np.ndarray) -> str:
    """Floats as the shortest text that gives them back, separated by spaces; whole numbers without a point."""
    return " ".join(map(short, values.ravel().tolist()))


def short(value: float) -> str:
    """A float as the shortest text that gives it back."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)
