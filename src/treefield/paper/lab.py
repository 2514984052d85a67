"""What the experiments share: how much to spend, how a run is made, what is kept of it."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from treefield.paper.found import Found, Row, apart, by_expansion
from treefield.paper.methods import METHODS
from treefield.paper.sources import Sources
from treefield.results import MAPResult
from treefield.solvers.run import INTERRUPTED
from treefield.validation import as_count, thread_count
from treefield.viz.report import Drawing, Section

_RESOLUTION = 130  # of the PNG files, dots per inch


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much to spend."""

    name: str
    size: int  # sites along each side of the paper's Ising fields
    small: int  # the same where a figure needs many short searches
    seeds: int
    seconds: float  # of each run of the paper's experiments that time bounds
    short: float  # the same where there are many such runs
    iterations: int  # of T-ILS and loopy BP in the stereo table
    memory_sizes: tuple[int, ...]  # sites along each side
    cost_labels: tuple[int, ...]  # numbers of labels for which sweeps are timed


QUICK = Effort("quick", 500, 64, 5, 1.0, 0.25, 200, (256, 512, 1024), (2, 4, 8, 16, 32))
FULL = Effort("full", 500, 64, 5, 10.0, 1.0, 1000, (256, 512, 1024, 2048), (2, 4, 8, 16, 32, 64))


class Lab:
    """Where experiments are made: `run` is how they search."""

    def __init__(
        self,
        effort: Effort,
        sources: Sources | None = None,
        seed: int = 0,
        threads: int | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.effort, self.seed, self.tell = effort, as_count(seed, "seed"), tell
        self.threads = None if threads is None else thread_count(threads)
        self._sources = sources

    @property
    def sources(self) -> Sources:
        """The pictures, for those of `book.PICTURED`."""
        if self._sources is None:
            raise ValueError("the experiment needs pictures, but the lab was given none")
        return self._sources

    def run(self, problem: str, method: str, mrf: Any, x0: Any = None, *, seed: int = 0, **options: Any) -> MAPResult:
        """The result of one of METHODS with more options, told while it runs. An interrupt ends the experiment."""
        self.tell(f"{problem}: {method}")
        chosen = METHODS[method]
        options = chosen.options | {"rng": seed} | options
        if x0 is not None:
            options["x0"] = x0
        if "threads" in inspect.signature(chosen.solve).parameters:
            options.setdefault("threads", self.threads)
        res = chosen.solve(mrf, **options)
        if res.status == INTERRUPTED:
            raise KeyboardInterrupt
        return res

    def seeds(self) -> range:
        """The seeds of repeated runs."""
        return range(self.seed, self.seed + self.effort.seeds)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Something the paper says or should have asked, what came out here, and the reason where it is worse or does not
    hold."""

    what: str
    paper: str
    ours: str
    verdict: str
    why: str
    worse: bool
    asked: bool = True


class Experiment:
    """One chapter of the page, with its files: tables, traces and figures."""

    def __init__(self, name: str, lab: Lab) -> None:
        self.name, self._lab = name, lab
        self.sections: list[Section] = []
        self.comparisons: list[Comparison] = []
        self.files: dict[str, bytes] = {}
        self._traces: list[tuple[str, str, int, np.ndarray]] = []

    def run(
        self, problem: str, name: str, mrf: Any, x0: Any = None, *, method: str = "", seed: int = 0, **options: Any
    ) -> MAPResult:
        """As `Lab.run`, and the trace goes to the raw figures, under a name of its own if `method` is another."""
        res = self._lab.run(problem, method or name, mrf, x0, seed=seed, **options)
        self._traces.append((problem, name, seed, res.trace))
        return res

    def rows(self, problem: str, mrf: Any, rows: list[Row]) -> tuple[dict[str, Found], float]:
        """What each row's runs found and, last, alpha-expansion; and the lower bound that the row minimize proves."""
        found = {}
        for row in rows:
            options = {"method": row.method} | row.limits
            found[row.name] = Found.by(
                [self.run(problem, row.name, mrf, row.x0, seed=seed, **options) for seed in row.seeds]
            )
        self._lab.tell(f"{problem}: alpha-expansion")
        return found | by_expansion(mrf), max(res.lower_bound for res in found["minimize"].runs)

    def section(
        self,
        title: str,
        text: list[str],
        *,
        table: list[dict[str, str]] | None = None,
        name: str = "table",
        figures: dict[str, tuple[Any, str]] | None = None,
    ) -> None:
        """Add a part to the page: paragraphs, a table (also `name`.csv) and figures: a file's stem, a Matplotlib figure
        and its caption."""
        part = Section(title, text=text, table=table or [])
        self.sections.append(part)
        if table:
            self.raw(name, list(table[0]), ([_plain(row.get(column, "")) for column in table[0]] for row in table))
        for stem, (figure, caption) in (figures or {}).items():
            for suffix in ("svg", "png"):
                self.files[f"{stem}.{suffix}"] = _drawn(figure, suffix)
            svg = self.files[f"{stem}.svg"].decode()
            part.drawings.append(Drawing(caption, svg, [f"{self.name}/{stem}.{end}" for end in ("png", "svg")]))

    def raw(self, name: str, columns: list[str], rows: Iterable[Sequence[Any]]) -> None:
        """Have figures as the file `name`.csv, with a link under the last section."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        self.files[f"{name}.csv"] = file.getvalue().encode()
        self.sections[-1].files.append(f"{self.name}/{name}.csv")

    def energy(self, what: str, ours: float, paper: float, why: str) -> None:
        """Compare an energy with the paper's. `why` is told where ours is higher."""
        worse = ours > paper
        figures = f"{paper:,.0f}", f"{ours:,.0f}", apart(ours, paper)
        self.comparisons.append(Comparison(what, *figures, why if worse else "", worse))

    def claim(self, what: str, ours: str, holds: bool, why: str, *, asked: bool = True) -> None:
        """Compare what the paper says in words, or what it does not ask although one would. `why` is told where it does
        not hold."""
        verdict, paper = "holds" if holds else "does not hold", "says so" if asked else "does not ask"
        self.comparisons.append(Comparison(what, paper, ours, verdict, "" if holds else why, not holds, asked))

    def finish(self) -> Experiment:
        """Write the traces down, once all is run."""
        if self._traces:
            columns = ["iteration", "seconds", "energy", "best", "bound"]
            rows = (
                (problem, method, seed, *row)
                for problem, method, seed, trace in self._traces
                for row in trace[columns].tolist()
            )
            self.raw("traces", ["problem", "method", "seed", *columns], rows)
        return self


def _plain(cell: str) -> str:
    """A number without the commas that are for the eye."""
    return cell.replace(",", "") if re.fullmatch(r"[-+]?[\d,]+(\.\d+)?", cell) else cell


def _drawn(figure: Any, kind: str) -> bytes:
    """A Matplotlib figure as a file, the same each time."""
    from matplotlib import rc_context

    file = io.BytesIO()
    with rc_context({"svg.hashsalt": "treefield"}):
        figure.savefig(file, format=kind, dpi=_RESOLUTION, metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()
