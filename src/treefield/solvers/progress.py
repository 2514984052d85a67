"""Progress on stderr, drawn by tqdm: of a search, of a batch, and of the command `treefield`."""

from __future__ import annotations

import math
import os
import shutil
import sys
from typing import Self

_BAR_OF_SECONDS = "{desc}: {percentage:3.0f}%|{bar:20}| {elapsed}{postfix}"


class ProgressLine:
    """One line on stderr: a title, a count or a bar, the time elapsed and a text. Threads may share it."""

    def __init__(self, title: str, total: float | None, unit: str) -> None:
        from tqdm.auto import tqdm

        bar_format = _BAR_OF_SECONDS if unit == "s" else None
        ncols, nrows = _terminal_size()
        self._bar = tqdm(
            desc=title,
            total=total,
            unit=unit,
            ncols=ncols,
            nrows=nrows,
            dynamic_ncols=ncols is None,
            miniters=0,  # tqdm must not guess from the pace so far when to redraw, since iterations differ in length
            bar_format=bar_format,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def advance(self, amount: float, text: str) -> None:
        """Count `amount` more units, and show a text after them."""
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(amount)

    def print_above(self, text: str) -> None:
        """Print a line that stays, above this one."""
        self._bar.write(text, file=self._bar.fp)

    def close(self) -> None:
        """Draw the line for the last time, and leave it on the screen."""
        self._bar.refresh()
        self._bar.close()


def _terminal_size() -> tuple[int | None, int | None]:
    """Columns and rows for tqdm; None where tqdm finds them out itself.

    Pseudo-terminals may report a size of 0, in which tqdm draws nothing: COLUMNS and LINES, or 80 x 24, count there.
    """
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # not a terminal, or not a file
        return None, None
    return (None, None) if size.columns > 0 and size.lines > 0 else shutil.get_terminal_size()


class Bar(ProgressLine):
    """The progress of a search: iterations, energy, best energy and further figures."""

    def __init__(self, method: str, total: int | None) -> None:
        super().__init__(method, total, "it")
        self._best = math.inf

    def step(self, iterations: int, energy: float, best: float, **more: float) -> None:
        """Count `iterations` more, and show the figures."""
        self._best = min(self._best, best)
        figures = {"energy": f"{energy:.7g}", "best": f"{self._best:.7g}"}
        figures |= {name: f"{value:.{7 if name == 'bound' else 4}g}" for name, value in more.items()}
        self.advance(iterations, ", ".join(f"{name}={text}" for name, text in figures.items()))


class ItemBar(ProgressLine):
    """The progress of a batch: items done, and how many of them failed."""

    def __init__(self, total: int | None) -> None:
        super().__init__("batch", total, "item")
        self._failed = 0

    def step(self, failed: bool) -> None:
        """Count one more item."""
        self._failed += failed
        self.advance(1, f"failed={self._failed}" if self._failed else "")
