"""One experiment: its sections of the page, its comparisons with the paper, and its files."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from treefield.models.grid import GridMRF
from treefield.report.page import Drawing, Section
from treefield.results import MAPResult
from treefield_reproduce.runner import Runner, Start
from treefield_reproduce.summaries import MethodSummary, Row, expansion_summary, relative_difference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RESOLUTION = 130  # of the PNG files, dots per inch


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A figure or claim of the paper, or a question it leaves open, the result here, and the reason where that is worse
    or the claim does not hold."""

    what: str
    paper: str
    ours: str
    verdict: str
    why: str
    worse: bool
    asked: bool = True


class Experiment:
    """Collects the sections, comparisons and files (tables, traces, figures) of one experiment."""

    def __init__(self, name: str, runner: Runner) -> None:
        self.name, self._runner = name, runner
        self.sections: list[Section] = []
        self.comparisons: list[Comparison] = []
        self.files: dict[str, bytes] = {}
        self._traces: list[tuple[str, str, int, np.ndarray]] = []

    def run(
        self,
        problem: str,
        name: str,
        mrf: GridMRF,
        x0: Start = None,
        *,
        method: str = "",
        seed: int = 0,
        **options: object,
    ) -> MAPResult:
        """Run `method` (default: the method called `name`) as `Runner.run` does, and keep the trace under `name`."""
        res = self._runner.run(problem, method or name, mrf, x0, seed=seed, **options)
        self._traces.append((problem, name, seed, res.trace))
        return res

    def run_rows(self, problem: str, mrf: GridMRF, rows: list[Row]) -> tuple[dict[str, MethodSummary], float]:
        """Run every row of a table and, last, alpha-expansion. Returns the summaries, and the lower bound that the row
        minimize proves."""
        summaries = {}
        for row in rows:
            runs = [
                self.run(problem, row.name, mrf, row.x0, method=row.method, seed=seed, **row.limits)
                for seed in row.seeds
            ]
            summaries[row.name] = MethodSummary.of_runs(runs)
        self._runner.notify(f"{problem}: alpha-expansion")
        return summaries | expansion_summary(mrf), max(res.lower_bound for res in summaries["minimize"].runs)

    def add_section(
        self,
        title: str,
        text: list[str],
        *,
        table: list[dict[str, str]] | None = None,
        name: str = "table",
        figures: dict[str, tuple[Figure, str]] | None = None,
    ) -> None:
        """Add a section to the page: paragraphs, a table (also written to `name`.csv) and figures, each with the stem
        of its files and a caption."""
        section = Section(title, text=text, table=table or [])
        self.sections.append(section)
        if table:
            rows = ([_without_commas(row.get(column, "")) for column in table[0]] for row in table)
            self.add_csv(name, list(table[0]), rows)
        for stem, (figure, caption) in (figures or {}).items():
            for suffix in ("svg", "png"):
                self.files[f"{stem}.{suffix}"] = _render(figure, suffix)
            svg = self.files[f"{stem}.svg"].decode()
            section.drawings.append(Drawing(caption, svg, [f"{self.name}/{stem}.{end}" for end in ("png", "svg")]))

    def add_csv(self, name: str, columns: list[str], rows: Iterable[Sequence[object]]) -> None:
        """Add the file `name`.csv, with a link under the last section."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        self.files[f"{name}.csv"] = file.getvalue().encode()
        self.sections[-1].files.append(f"{self.name}/{name}.csv")

    def compare_energy(self, what: str, ours: float, paper: float, why: str) -> None:
        """Compare an energy with the paper's. `why` is shown if ours is higher."""
        worse = ours > paper
        figures = f"{paper:,.0f}", f"{ours:,.0f}", relative_difference(ours, paper)
        self.comparisons.append(Comparison(what, *figures, why if worse else "", worse))

    def check_claim(self, what: str, ours: str, holds: bool, why: str, *, asked: bool = True) -> None:
        """Add a claim that the paper makes in words, or with `asked=False` a question it does not ask. `why` is shown
        if the claim does not hold."""
        verdict, paper = "holds" if holds else "does not hold", "says so" if asked else "does not ask"
        self.comparisons.append(Comparison(what, paper, ours, verdict, "" if holds else why, not holds, asked))

    def finish(self) -> Experiment:
        """Add the traces of all runs to the files."""
        if self._traces:
            columns = ["iteration", "seconds", "energy", "best", "bound"]
            rows = (
                (problem, method, seed, *row)
                for problem, method, seed, trace in self._traces
                for row in trace[columns].tolist()
            )
            self.add_csv("traces", ["problem", "method", "seed", *columns], rows)
        return self


def _without_commas(cell: str) -> str:
    """A number without thousands separators; other text is unchanged."""
    return cell.replace(",", "") if re.fullmatch(r"[-+]?[\d,]+(\.\d+)?", cell) else cell


def _render(figure: Figure, suffix: str) -> bytes:
    """A Matplotlib figure as the bytes of a file, reproducible."""
    from matplotlib import rc_context

    file = io.BytesIO()
    with rc_context({"svg.hashsalt": "treefield"}):
        figure.savefig(file, format=suffix, dpi=_RESOLUTION, metadata={"Date": None} if suffix == "svg" else None)
    return file.getvalue()
