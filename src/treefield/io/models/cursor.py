"""Numbers of a text file, read in order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from treefield.io.text import WHITE_SPACE, parse_numbers
from treefield.validation import is_integral

_IS_SPACE = np.zeros(256, bool)
_IS_SPACE[list(WHITE_SPACE)] = True
_FREE_SITES, _SITES_PER_WORD = 2**20, 64
_MAX_WORD = 24  # characters of a word that a message shows


class Cursor:
    """Numbers of a text, read in order; an error names the line of the number at fault.

    Parameters
    ----------
    source : callable
        Yields the text from its beginning, in blocks of whole words. Called again to find the line of a word, so that
        only one block is in memory.
    hint : str
        The end of the message about a word that is not a number.
    """

    def __init__(self, source: Callable[[], Iterator[bytes]], hint: str = "") -> None:
        self._source, self._hint = source, hint
        self._blocks = source()
        self._values, self._at = np.empty(0), 0  # the numbers of the block; the index of the next
        self._before = 0  # words read before the block's numbers

    @property
    def words(self) -> int:
        """The number of words read so far."""
        return self._before + self._at

    @property
    def is_at_end(self) -> bool:
        """Whether all numbers have been read; reads the next block if needed."""
        return self._at >= len(self._values) and not self._load()

    def read_first_word(self) -> str:
        """The first word of the text, read before any number; empty if the text is."""
        for block in self._blocks:
            words = block.split(None, 1)
            if words:
                self._blocks = itertools.chain(words[1:], self._blocks)
                self._before = 1
                return words[0].decode("latin-1")
        return ""

    def place(self, numbers_ago: int = 1) -> str:
        """Line and text of the number read `numbers_ago` numbers ago, 0 for the next one."""
        return self._place_of(self.words - numbers_ago)

    def read_integer(self, what: str, low: int, high: int = 2**53) -> int:
        """The next number, an integer from `low` to `high`."""
        if self.is_at_end:
            self.read_floats(1, what)
        value = self._values.item(self._at)
        self._at += 1
        if not (low <= value <= high and value == int(value)):
            self._refuse(what, 1, low, high)
        return int(value)

    def read_integers(self, count: int, what: str, low: int, high: int = 2**53) -> np.ndarray:
        """The next `count` numbers, integers from `low` to `high`, as int64."""
        return self.as_integers(self.read_floats(count, what), what, low, high)

    def as_integers(self, values: np.ndarray, what: str, low: int, high: int = 2**53) -> np.ndarray:
        """The numbers read last as int64, or an error that names the first that is no integer from `low` to `high`."""
        good = (values >= low) & (values <= high) & is_integral(values)
        if not good.all():
            self._refuse(what, len(values) - int(np.argmin(good)), low, high)
        return values.astype(np.int64)

    def read_floats(self, count: int, what: str) -> np.ndarray:
        """The next `count` numbers."""
        end = self._at + count
        if end <= len(self._values):
            values = self._values[self._at : end]
            self._at = end
            return values
        values = self.read_up_to(count)
        if len(values) < count:
            numbers = f": {count} numbers are expected, {len(values)} follow" if count > 1 else ""
            raise ValueError(f"it ends before {what}{numbers}")
        return values

    def read_up_to(self, count: int) -> np.ndarray:
        """The next `count` numbers, or all that are left."""
        parts, size = [], 0
        while size < count and not self.is_at_end:
            part = self._values[self._at : self._at + count - size]
            self._at += len(part)
            size += len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])

    def check_finished(self, announced: str) -> None:
        """Raise if anything follows what the file has announced, which `announced` names."""
        if not self.is_at_end:
            raise ValueError(f"{announced} announced, but more follows at {self.place(0)}")

    def as_site_count(self, size: int) -> int:
        """`size`, or an error if it is far more sites than the words read so far describe; allocates nothing."""
        if size < 1:
            raise ValueError("it has no sites")
        if size > _FREE_SITES + _SITES_PER_WORD * self.words:
            raise ValueError(f"it claims {size} sites, far more than its {self.words} words tell")
        return size

    def _load(self) -> bool:
        """Parse the next block that has words; return whether there is one."""
        self._before, self._at = self.words, 0
        self._values = self._values[:0]
        for block in self._blocks:
            count = _count_words(block)
            if count == 0:
                continue
            values = parse_numbers(block)
            if values is None or len(values) != count:
                raise ValueError(f"{self._place_of(self._before + _find_bad_word(block))} is not a number{self._hint}")
            self._values = values
            return True
        return False

    def _refuse(self, what: str, numbers_ago: int, low: int, high: int) -> None:
        limits = f"at least {low}" if high == 2**53 else f"{low} to {high}"
        raise ValueError(f"{what} at {self.place(numbers_ago)} must be an integer, {limits}")

    def _place_of(self, index: int) -> str:
        """Line and text of a word, for messages."""
        line = 1
        for block in self._source():
            starts, ends = _word_bounds(block)
            if index < len(starts):
                word = block[starts[index] : ends[index]].decode("latin-1")
                word = word if len(word) <= _MAX_WORD else f"{word[: _MAX_WORD - 3]}..."
                return f"line {line + block.count(10, 0, int(starts[index]))} ({word!r})"
            index -= len(starts)
            line += block.count(10)
        return "its end"


def _word_bounds(block: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The indices where the words of a text start and end."""
    spaces = np.ones(len(block) + 2, bool)
    spaces[1:-1] = _IS_SPACE[np.frombuffer(block, np.uint8)]
    change = np.flatnonzero(spaces[1:] != spaces[:-1])
    return change[::2], change[1::2]


def _count_words(block: bytes) -> int:
    """The number of words of a text."""
    spaces = _IS_SPACE[np.frombuffer(block, np.uint8)]
    return int(np.count_nonzero(spaces[:-1] > spaces[1:])) + int(not spaces[:1].all())


def _find_bad_word(block: bytes) -> int:
    """The index of the first word that is not a number, by bisection; there must be one."""
    starts, ends = _word_bounds(block)
    first, last = 0, len(starts)
    while last - first > 1:
        middle = (first + last) // 2
        values = parse_numbers(block[starts[first] : ends[middle - 1]])
        if values is None or len(values) != middle - first:
            last = middle
        else:
            first = middle
    return first
