"""Text that is safe to print."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Replace control characters, all but line feeds, by their escapes: names in files must not steer a terminal.

    Examples
    --------
    >>> from treefield.messages import printable
    >>> print(printable("a name\x1b[2J"))
    a name\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def on_one_line(text: str) -> str:
    """The text without line breaks and control characters."""
    return printable(" ".join(text.split()))
