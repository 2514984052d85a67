"""Progress of a command on a terminal, and snapshots of the search for its report."""

from __future__ import annotations

import dataclasses
import math
import sys
import time

import numpy as np

from treefield.results import MAPResult
from treefield.solvers.progress import ProgressLine

_MAX_SNAPSHOTS = 12  # when there are more, every second one is dropped


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The labelling at one moment of a search."""

    seconds: float
    energy: float
    x: np.ndarray


class SearchDisplay:
    """A callback of a search: shows its energy, bound and gap on a terminal, and with `keep` takes snapshots."""

    def __init__(self, title: str, time_limit: float | None, *, show: bool, keep: bool) -> None:
        self._title, self._limit, self._keep = title, time_limit, keep
        self._show = show and sys.stderr.isatty()
        self._line: ProgressLine | None = None
        self._iterations, self._seconds = 0, 0.0
        self._next_snapshot, self._interval = 0.0, 0.0
        self.snapshots: list[Snapshot] = []

    def __enter__(self) -> SearchDisplay:
        if self._show:
            self._line = ProgressLine(self._title, self._limit, "it" if self._limit is None else "s")
        return self

    def __exit__(self, *error: object) -> None:
        if self._line is not None:
            self._line.close()

    def __call__(self, intermediate_result: MAPResult) -> None:
        res = intermediate_result
        seconds = float(res.trace["seconds"][-1])
        if self._keep and seconds >= self._next_snapshot:
            self._take_snapshot(seconds, res)
        if self._line is not None:
            self._line.advance(self._progress(res.nit, seconds), format_figures(res))

    def _progress(self, iterations: int, seconds: float) -> float:
        """The iterations since the last call, or the seconds if time is limited."""
        if self._limit is not None:
            seconds = min(seconds, self._limit)
        before = self._iterations, self._seconds
        self._iterations, self._seconds = iterations, seconds
        return iterations - before[0] if self._limit is None else seconds - before[1]

    def _take_snapshot(self, seconds: float, res: MAPResult) -> None:
        self.snapshots.append(Snapshot(seconds, res.fun, res.x.astype(np.min_scalar_type(int(res.x.max())))))
        if len(self.snapshots) > _MAX_SNAPSHOTS:
            del self.snapshots[1::2]
        self._interval = max(self._interval, seconds / _MAX_SNAPSHOTS)
        self._next_snapshot = seconds + self._interval


class StepDisplay:
    """The progress of a command in several steps, on a terminal only.

    Shows the running step, and prints the time of each that has ended.
    """

    def __init__(self, title: str, total: int, unit: str, *, show: bool) -> None:
        self._given = title, total, unit
        self._show = show and sys.stderr.isatty()
        self._line: ProgressLine | None = None
        self._step, self._start = "", 0.0

    def __enter__(self) -> StepDisplay:
        if self._show:
            self._line = ProgressLine(*self._given)
        return self

    def __exit__(self, *error: object) -> None:
        if self._line is not None:
            self._line.close()

    def start_step(self, name: str) -> None:
        """Show the name of a step before the texts that follow."""
        self._step, self._start = name, time.monotonic()

    def show(self, text: str) -> None:
        """Show a text about the running step."""
        if self._line is not None:
            self._line.advance(0, f"{self._step}: {text}")

    def end_step(self) -> None:
        """Count the running step, and print its time."""
        if self._line is not None:
            self._line.print_above(f"{self._step}: {time.monotonic() - self._start:.0f} s")
            self._line.advance(1, "")


def format_figures(res: MAPResult) -> str:
    """Energy, bound and gap on one line."""
    text = f"energy {format_energy(res.fun)}"
    if not math.isnan(res.lower_bound):
        text += f", bound {format_energy(res.lower_bound)}, gap {format_gap(res.gap)}"
    return text


def format_energy(value: float) -> str:
    """An energy with six digits, or all of its integer part."""
    return f"{value:,.0f}" if abs(value) >= 1e5 or value == round(value) else f"{value:,.6g}"


def format_gap(gap: float) -> str:
    """A gap in per cent, with two digits."""
    return "0" if gap == 0 else f"{100 * gap:.2g} %"
