"""Tables on the terminal."""

from __future__ import annotations

from treefield.cli.streams import say


def print_table(title: str, rows: list[dict[str, str]]) -> None:
    """Print rows with the same keys: the first column is aligned to the left, the others to the right."""
    cells = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = [title] if title else []
    for first, *others in cells:
        aligned = [first.ljust(widths[0])] + [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join(aligned).rstrip())
    say("\n".join(lines))
