"""Text files of numbers, packed or not, read block by block and without trust in what they claim."""

from __future__ import annotations

import gzip
import itertools
import lzma
import pathlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from treefield.io.files import TooLargeError, available_memory, check_unpacked, in_units, shown, writing

PACKED = (".gz", ".xz")
BLOCK = 2**20  # bytes that are unpacked at once, and the longest word
_PER_BYTE = 32  # bytes of memory that a byte of text may need while it becomes a model
_WHITE = b" \t\r\n\v\f"
_SPACES = np.zeros(256, bool)
_SPACES[list(_WHITE)] = True
_SHOWN = 24  # characters of a word that a message shows


def suffix_of(path: pathlib.Path) -> str:
    """The suffix that tells the format, in lower case: ".uai" of model.uai and of model.uai.gz."""
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if suffix in PACKED else suffix


def unpacked(path: pathlib.Path, per_byte: int = _PER_BYTE) -> Iterator[bytes]:
    """Yield the content of a file in parts, unpacked if its name ends in .gz or .xz.

    Raise TooLargeError at the limit on unpacked data, or where `per_byte` times the data exceeds the free memory.
    """
    suffix = path.suffix.lower()
    free = available_memory()
    with path.open("rb") as raw:
        file: Any = raw
        if suffix == ".gz":
            file = gzip.GzipFile(fileobj=raw)
        elif suffix == ".xz":
            file = lzma.LZMAFile(raw)  # noqa: SIM115
        size = 0
        while True:
            try:
                part = file.read(BLOCK)
            except (EOFError, OSError, lzma.LZMAError) as error:
                raise ValueError(f"it cannot be unpacked: {error} (after {in_units(size)})") from None
            if not part:
                return
            size += len(part)
            if file is not raw:
                check_unpacked(path, size, text=True)
            if free is not None and size * per_byte > free:
                raise TooLargeError(
                    f"{shown(path)} holds more than {in_units(free // per_byte)}, of which a model may need {per_byte} "
                    f"times the memory, but only {in_units(free)} are free"
                )
            yield part


def after_word(data: bytes) -> int:
    """The place behind the last white space, 0 if there is none."""
    return max(data.rfind(space) for space in _WHITE) + 1


def after_line(data: bytes) -> int:
    """The place behind the last line break, 0 if there is none."""
    return data.rfind(10) + 1


def blocks(path: pathlib.Path, cut: Callable[[bytes], int] = after_word) -> Iterator[bytes]:
    """The text of a file, unpacked, in blocks of about 1 MB that end where `cut` says that they can."""
    return whole_blocks(unpacked(path), cut)


def whole_blocks(parts: Iterable[bytes], cut: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield parts of a text with what follows `cut` moved to the next; a word of more than 1 MB raises ValueError."""
    rest = b""
    for part in parts:
        if b"\0" in part:
            raise ValueError("it is no text: it holds bytes that are 0")
        data = rest + part
        end = cut(data)
        if len(data) - end >= BLOCK:
            raise ValueError("it holds a word, text or comment of more than 1 MB")
        rest = data[end:]
        if end:
            yield data[:end]
    if rest:
        yield rest


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


class Cursor:
    """Numbers of a text, read one after the other, each with its place for the message that refuses it.

    Parameters
    ----------
    source : callable
        Starts the text from its beginning, in blocks of whole words. Called again to find the place of a word, so that
        only one block need be in memory.
    hint : str
        Ends the message about a word that is not a number.
    """

    def __init__(self, source: Callable[[], Iterator[bytes]], hint: str = "") -> None:
        self._source, self._hint = source, hint
        self._blocks = source()
        self._values, self._at = np.empty(0), 0  # the numbers of the block, and the next of them
        self._before = 0  # words in front of the block's numbers

    @property
    def words(self) -> int:
        """The number of words read so far."""
        return self._before + self._at

    @property
    def ended(self) -> bool:
        """Whether no number follows."""
        return self._at >= len(self._values) and not self._load()

    def first_word(self) -> str:
        """The first word of the text, read before any number; empty if there is none."""
        for block in self._blocks:
            words = block.split(None, 1)
            if words:
                self._blocks = itertools.chain(words[1:], self._blocks)
                self._before = 1
                return words[0].decode("latin-1")
        return ""

    def where(self, back: int = 1) -> str:
        """The place of the number read last, of one before it, or with 0 of the next."""
        return self._place(self.words - back)

    def integer(self, what: str, low: int, high: int = 2**53) -> int:
        """One integer from `low` to `high`."""
        if self.ended:
            self.floats(1, what)
        value = self._values.item(self._at)
        self._at += 1
        if not (low <= value <= high and value == int(value)):
            self._refuse(what, 1, low, high)
        return int(value)

    def integers(self, count: int, what: str, low: int, high: int = 2**53) -> np.ndarray:
        """Some integers from `low` to `high`, as int64."""
        return self.as_integers(self.floats(count, what), what, low, high)

    def as_integers(self, values: np.ndarray, what: str, low: int, high: int = 2**53) -> np.ndarray:
        """The numbers read last as int64, or an error that names one that is not an integer from `low` to `high`."""
        good = (values >= low) & (values <= high) & (values == np.floor(values))
        if not good.all():
            self._refuse(what, len(values) - int(np.argmin(good)), low, high)
        return values.astype(np.int64)

    def floats(self, count: int, what: str) -> np.ndarray:
        """Some numbers as they are."""
        end = self._at + count
        if end <= len(self._values):
            values = self._values[self._at : end]
            self._at = end
            return values
        values = self.up_to(count)
        if len(values) < count:
            numbers = f": {count} numbers are expected, {len(values)} follow" if count > 1 else ""
            raise ValueError(f"it ends before {what}{numbers}")
        return values

    def up_to(self, count: int) -> np.ndarray:
        """The next numbers: `count` of them, or all that are left."""
        parts, size = [], 0
        while size < count and not self.ended:
            part = self._values[self._at : self._at + count - size]
            self._at += len(part)
            size += len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])

    def finish(self, announced: str) -> None:
        """Raise if anything follows; `announced` names what the file has announced, all of which is read."""
        if not self.ended:
            raise ValueError(f"{announced} announced, but more follows at {self.where(0)}")

    def _load(self) -> bool:
        """Turn the next block with any words into numbers; returns whether there is one."""
        self._before, self._at = self.words, 0
        self._values = self._values[:0]
        for block in self._blocks:
            count = _count(block)
            if count == 0:
                continue
            values = parsed(block)
            if values is None or len(values) != count:
                raise ValueError(f"{self._place(self._before + _bad(block))} is not a number{self._hint}")
            self._values = values
            return True
        return False

    def _refuse(self, what: str, back: int, low: int, high: int) -> None:
        limits = f"at least {low}" if high == 2**53 else f"{low} to {high}"
        raise ValueError(f"{what} at {self.where(back)} must be an integer, {limits}")

    def _place(self, index: int) -> str:
        """The place of a word, for messages."""
        line = 1
        for block in self._source():
            starts, ends = _places(block)
            if index < len(starts):
                word = block[starts[index] : ends[index]].decode("latin-1")
                word = word if len(word) <= _SHOWN else f"{word[: _SHOWN - 3]}..."
                return f"line {line + block.count(10, 0, int(starts[index]))} ({word!r})"
            index -= len(starts)
            line += block.count(10)
        return "its end"


def _places(block: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Where the words of a text start and end."""
    spaces = np.ones(len(block) + 2, bool)
    spaces[1:-1] = _SPACES[np.frombuffer(block, np.uint8)]
    change = np.flatnonzero(spaces[1:] != spaces[:-1])
    return change[::2], change[1::2]


def _count(block: bytes) -> int:
    """The number of words."""
    spaces = _SPACES[np.frombuffer(block, np.uint8)]
    return int(np.count_nonzero(spaces[:-1] > spaces[1:])) + int(not spaces[:1].all())


def _bad(block: bytes) -> int:
    """The first word that is not a number, by bisection; there is one."""
    starts, ends = _places(block)
    first, last = 0, len(starts)
    while last - first > 1:
        middle = (first + last) // 2
        values = parsed(block[starts[first] : ends[middle - 1]])
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


def numbers_text(values: np.ndarray) -> str:
    """Floats as the shortest text that gives them back, separated by spaces; whole numbers without a point."""
    return " ".join(map(short, values.ravel().tolist()))


def short(value: float) -> str:
    """A float as the shortest text that gives it back."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)
