"""Text that is safe to print."""

from __future__ import annotations


def as_printable(text: str) -> str:
    r"""Escape control characters except line feeds: a name in a file must not steer the terminal.

    Examples
    --------
    >>> from treefield.printable import as_printable
    >>> print(as_printable("a name\x1b[2J"))
    a name\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def as_one_line(text: str) -> str:
    """The text on one line, with control characters escaped."""
    return as_printable(" ".join(text.split()))
