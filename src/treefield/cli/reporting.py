"""Run the search of a command, write its files, and report: summary, JSON, HTML page."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import shlex
import sys
from collections.abc import Callable, Iterable
from typing import Protocol, TypedDict, Unpack

import numpy as np

from treefield import __version__
from treefield.apps.keywords import SearchKeywords
from treefield.cli.exit_codes import INTERRUPTED
from treefield.cli.options import Shared
from treefield.cli.progress_display import SearchDisplay, format_energy, format_gap
from treefield.cli.streams import say
from treefield.io.files import write_atomically
from treefield.io.models.npz_models import save_model
from treefield.io.paths import as_output_path, as_path, as_text
from treefield.report.page import Picture, Section, report
from treefield.results import MAPResult, Status
from treefield.solvers.minimize import takes


class SearchFigures(TypedDict):
    """A result for other programs: None where there is no bound, or where a number is infinite."""

    energy: float | None
    lower_bound: float | None
    gap: float | None
    proof: str | None
    seconds: float
    iterations: int
    method: str
    success: bool
    status: int
    message: str


class Summary(SearchFigures):
    """The figures of a search and the file of its answer, None if it was printed, with a note about the answer."""

    output: str | None
    title: str
    note: str


class Solve(Protocol):
    """Takes the keywords of `minimize`; returns the answer and the result of the search."""

    def __call__(self, **options: Unpack[SearchKeywords]) -> tuple[np.ndarray, MAPResult]: ...


@dataclasses.dataclass
class Task:
    """One search of a command.

    `draw_labels` and `draw_answer` turn a labelling and an answer into pixels; None where there is nothing to see.
    `facts` are further lines of the summary, the report and the JSON.
    """

    title: str
    solve: Solve
    draw_labels: Callable[[np.ndarray], np.ndarray] | None
    draw_answer: Callable[[np.ndarray], np.ndarray] | None
    before: Picture | None = None
    memory_limit: int | None = None
    facts: dict[str, str] = dataclasses.field(default_factory=dict)


def run_task(task: Task, shared: Shared, out: pathlib.Path | None, write: Callable[[np.ndarray], str]) -> Summary:
    """Search, write the answer with `write`, which returns a note about the file, and print the summary.

    Without a file, `write` returns the labels as text, which are printed.
    """
    with SearchDisplay(task.title, shared.time_limit, show=not shared.quiet, keep=shared.report is not None) as display:
        answer, res = task.solve(**search_options(task, shared, display))
    note = write(answer)
    if shared.save_model is not None:
        save_model(shared.save_model, res.mrf, force=shared.force)
    if shared.report is not None:
        section = task_section(task, answer, res, display)
        section.facts |= shared.settings
        write_page(shared.report, f"treefield {task.title}", [section], force=shared.force)
    output = None if out is None else str(out)
    if shared.json:
        labels = {"labels": answer.tolist()} if out is None else {}
        say(json.dumps({"output": output, "title": task.title, **search_figures(res), **labels, **task.facts}))
    elif not shared.quiet:
        written = [as_text(path) for path in (shared.report, shared.save_model) if path is not None]
        if out is not None:
            written.insert(0, as_text(out) + (f" ({note})" if note else ""))
        facts = (
            task.facts | ({"labels": note} if out is None else {}) | ({"wrote": ", ".join(written)} if written else {})
        )
        say(format_summary(res, **facts))
    elif out is None:
        say(note)
    exit_if_interrupted(res)
    return {"output": output, "title": task.title, "note": note, **search_figures(res)}


def exit_if_interrupted(res: MAPResult) -> None:
    """Leave with the exit code of Ctrl-C if the search was interrupted; call it once all files are written."""
    if res.status == Status.INTERRUPTED:
        sys.exit(INTERRUPTED)


def check_folder(folder: pathlib.Path, names: Iterable[str], *, force: bool) -> None:
    """Raise, before any work, if the folder cannot be created or files of these names cannot be written to it."""
    if not folder.exists():
        as_output_path(folder)
        return
    for name in names:
        as_output_path(folder / name, force=force)


def search_options(task: Task, shared: Shared, display: SearchDisplay) -> SearchKeywords:
    """The keywords of `minimize` for a task, with the display where the method takes a callback."""
    options = shared.search_options()
    if "callback" in takes(shared.method):
        options["callback"] = display
    if task.memory_limit is not None and shared.method == "auto":
        options["memory_limit"] = task.memory_limit
    return options


def task_section(task: Task, answer: np.ndarray, res: MAPResult, display: SearchDisplay) -> Section:
    """The section of a task in a report."""
    moments = []
    if task.draw_labels is not None:
        moments = [
            Picture(
                f"after {snapshot.seconds:.2f} s: energy {format_energy(snapshot.energy)}",
                task.draw_labels(snapshot.x.astype(np.int32)),
            )
            for snapshot in display.snapshots
        ]
    return Section(
        task.title,
        before=task.before,
        after=None if task.draw_answer is None else Picture("result", task.draw_answer(answer)),
        runs={res.method: res.trace},
        moments=moments,
        facts=summary_facts(res) | task.facts | {"model": repr(res.mrf)},
    )


def write_page(path: pathlib.Path, title: str, sections: list[Section], *, force: bool) -> None:
    """Write a report with the command line of this process."""
    page = report(title, sections, command=shlex.join(["treefield", *sys.argv[1:]]), version=__version__)
    with write_atomically(as_path(path), force=force) as temporary:
        temporary.write_text(page, encoding="utf-8")


def format_summary(res: MAPResult, **more: str) -> str:
    """The summary of a result, and further facts, one per line."""
    return "\n".join(f"{name:>12}: {value}" for name, value in (summary_facts(res) | more).items())


def summary_facts(res: MAPResult) -> dict[str, str]:
    """Energy, bound, gap, time and the reason for the end of a search, as text."""
    facts = {"noise": str(res.noise)} if "noise" in res else {}
    facts |= {"energy": format_energy(res.fun)}
    if not math.isnan(res.lower_bound):
        facts |= {"lower bound": format_energy(res.lower_bound), "gap": format_gap(res.gap)}
    seconds = f"{res.trace['seconds'][-1]:.2f} s, {res.nit} iterations of {res.method}"
    return facts | {"time": seconds, "ended": res.message}


def search_figures(res: MAPResult) -> SearchFigures:
    """The figures of a result for `--json`."""
    return {
        "energy": _finite_or_none(res.fun),
        "lower_bound": _finite_or_none(res.lower_bound),
        "gap": _finite_or_none(res.gap),
        "proof": res.proof,
        "seconds": float(res.trace["seconds"][-1]),
        "iterations": int(res.nit),
        "method": res.method,
        "success": bool(res.success),
        "status": int(res.status),
        "message": res.message,
    }


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
