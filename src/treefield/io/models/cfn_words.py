"""The words of CFN files: names, numbers, texts in quotes and brackets."""

from __future__ import annotations

import itertools
import pathlib
import re
import sys
from collections.abc import Iterator

from treefield.io.text import align_blocks, read_unpacked

OPEN, CLOSE = (b"[", b"{"), (b"]", b"}")
_WORD = re.compile(rb'"[^"\n]*"|[\[\]{}]|[^\s\[\]{},:"]+|"')
_COMMENT = re.compile(rb"\n#.*")


class Words:
    """The words of a CFN file, read from the first to the last, a block of them in memory at a time."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._blocks = _blocks(path)
        self._words: list[bytes] = []  # of the block
        self._at = 0  # the next of them
        self._before = 0  # words in earlier blocks
        self._closing = dict.fromkeys(CLOSE, 0)  # where in the block each bracket comes next

    @property
    def read(self) -> int:
        """The number of words read so far, which is that of the next word."""
        return self._before + self._at

    def is_at_end(self) -> bool:
        """Whether no word follows; takes up the next block where one is needed."""
        while self._at >= len(self._words):
            block = next(self._blocks, None)
            if block is None:
                return True
            self._before, self._at = self.read, 0
            self._words = _WORD.findall(block)
            self._closing = dict.fromkeys(CLOSE, -1)
        return False

    def where(self, number: int) -> str:
        """The place of a word; only where one is needed are they counted again."""
        line = 0
        for block in _blocks(self._path):
            count = len(_WORD.findall(block))
            if number < count:
                match = next(itertools.islice(_WORD.finditer(block), number, None))
                return f"line {line + block.count(10, 0, match.start())} ({match[0].decode('latin-1')[:24]!r})"
            number -= count
            line += block.count(10)
        return "its end"

    def wrong(self, expected: str, number: int | None = None) -> ValueError:
        """An error at a word, the next by default."""
        return ValueError(f"{expected} expected at {self.where(self.read if number is None else number)}")

    def peek(self) -> bytes:
        """The next word; empty at the end."""
        if self._at >= len(self._words) and self.is_at_end():
            return b""
        return self._words[self._at]

    def next(self, expected: str) -> bytes:
        """The next word, without its quotes, which must not be a bracket."""
        word = self.peek()
        if not word or word in OPEN or word in CLOSE:
            raise self.wrong(expected)
        self._at += 1
        return unquote(word)

    def enter(self, what: str) -> None:
        """Pass over an opening bracket."""
        if self.peek() not in OPEN:
            raise self.wrong(f"a bracket that opens {what} is")
        self._at += 1

    def skip_closing(self) -> bool:
        """Pass over a closing bracket if it is next; returns whether it was."""
        word = self.peek()
        if not word:
            raise self.wrong("a closing bracket is")
        closes = word in CLOSE
        self._at += closes
        return closes

    def skip(self, name: bytes) -> bool:
        """Pass over a word if it is this; returns whether it was."""
        there = unquote(self.peek()) == name
        self._at += there
        return there

    def tag(self, name: bytes) -> None:
        """Pass over a word that must be this."""
        if not self.skip(name):
            raise self.wrong(f"{name.decode()} is")

    def items(self, what: str, most: int = sys.maxsize) -> tuple[list[bytes], int]:
        """The words up to the closing bracket, but not many more than `most`, and the number of the first."""
        self.enter(what)
        first = self.read
        words: list[bytes] = []
        while len(words) <= most:
            if self.is_at_end():
                raise self.wrong(f"the end of {what} is")
            end = self._next_closing()
            words += self._words[self._at : end]
            self._at = end
            if end < len(self._words):
                self._at += 1
                break
        if any(bracket in words for bracket in OPEN):
            raise self.wrong(f"{what} without brackets inside is", first)
        return words, first

    def _next_closing(self) -> int:
        """Where in the block the next closing bracket is; its length if there is none.

        Each kind is looked for from where it was found last, so that a block is searched only once.
        """
        for bracket in CLOSE:
            if self._closing[bracket] < self._at:
                self._closing[bracket] = _find(self._words, bracket, self._at)
        return min(self._closing.values())


def _blocks(path: pathlib.Path) -> Iterator[bytes]:
    """Yield a line break and the text of a file, without the comments, in blocks of whole words."""
    for block in align_blocks(itertools.chain([b"\n"], read_unpacked(path)), _after_word):
        yield _COMMENT.sub(b"\n", block)


def _after_word(data: bytes) -> int:
    """The place behind the last word, text in quotes or comment that is complete.

    A line break goes to the next block, with the line that it starts: there a # starts a comment.
    """
    line = data.rfind(b"\n") + 1
    if line and data[line : line + 1] == b"#":
        return line - 1
    if data.count(b'"', line) % 2:  # texts in quotes end in their line
        return data.rfind(b'"')
    return max(line - 1, 1 + max(data.rfind(end) for end in b' \t\r\v\f,:[]{}"'))


def _find(words: list[bytes], word: bytes, first: int) -> int:
    """Where a word comes next; the number of words if it does not."""
    try:
        return words.index(word, first)
    except ValueError:
        return len(words)


def unquote(word: bytes) -> bytes:
    """A word without its quotes."""
    return word[1:-1] if word[:1] == b'"' and len(word) > 1 else word
