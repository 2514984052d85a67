"""A search as one sees it: a line that moves, and pictures of it for the report."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from treefield.results import MAPResult

_REDRAW = 0.1  # seconds
_MOMENTS = 12  # pictures at most: when there are more, every second one is dropped


class Watch:
    """Called back by a search: shows its energy, bound and gap, and keeps its labelling at several moments."""

    def __init__(self, title: str, time_limit: float | None, *, show: bool, keep: bool) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.fields[figures]}"))
        self._shown = show and console.is_terminal
        self._bar = Progress(*columns, TimeElapsedColumn(), console=console)
        self._task = self._bar.add_task(title, total=time_limit, figures="starting")
        self._keep, self._limit = keep, time_limit
        self._drawn, self._due, self._pace = 0.0, 0.0, 0.0
        self.moments: list[tuple[float, float, np.ndarray]] = []  # seconds, energy, labelling

    def __enter__(self) -> Watch:
        if self._shown:
            self._bar.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._shown:
            self._bar.stop()

    def __call__(self, intermediate_result: MAPResult) -> None:
        res = intermediate_result
        seconds = float(res.trace["seconds"][-1])
        if self._keep and seconds >= self._due:
            self._remember(seconds, res)
        if self._shown and time.monotonic() >= self._drawn + _REDRAW:
            self._drawn = time.monotonic()
            done = seconds if self._limit else None
            self._bar.update(self._task, completed=done, figures=figures(res))

    def _remember(self, seconds: float, res: MAPResult) -> None:
        self.moments.append((seconds, res.fun, res.x.astype(np.min_scalar_type(int(res.x.max())))))
        if len(self.moments) > _MOMENTS:
            del self.moments[1::2]
        self._pace = max(self._pace, seconds / _MOMENTS)
        self._due = seconds + self._pace


def figures(res: MAPResult) -> str:
    """Energy, bound and gap on one line."""
    text = f"energy {number(res.fun)}"
    if not math.isnan(res.lower_bound):
        text += f", bound {number(res.lower_bound)}, gap {percent(res.gap)}"
    return text


def number(value: float) -> str:
    """An energy, with as many digits as mean something."""
    return f"{value:,.0f}" if abs(value) >= 1e5 or value == round(value) else f"{value:,.6g}"


def percent(share: float) -> str:
    """A gap."""
    return "0" if share == 0 else f"{100 * share:.2g} %"
