"""What a command leaves behind: its files, its summary, its report."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import shlex
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from treefield import __version__
from treefield.cli import INTERRUPTED_EXIT
from treefield.cli.options import Shared
from treefield.cli.streams import say
from treefield.cli.watch import Watch, number, percent
from treefield.io.files import checked_output, checked_path, shown, writing
from treefield.io.models import save_model
from treefield.results import MAPResult
from treefield.solvers.minimize import takes
from treefield.solvers.run import INTERRUPTED
from treefield.viz.report import Picture, Section, report


@dataclasses.dataclass
class Task:
    """One search that a command makes.

    `solve` takes the keywords of `minimize` and returns the answer and the result; `picture` shows a labelling and
    `shows` an answer as pixels; None where there is nothing to see.
    """

    title: str
    solve: Callable[..., tuple[np.ndarray, MAPResult]]
    picture: Callable[[np.ndarray], np.ndarray] | None
    shows: Callable[[np.ndarray], np.ndarray] | None
    before: Picture | None = None
    memory_limit: int | None = None


def run(task: Task, shared: Shared, out: pathlib.Path, write: Callable[[np.ndarray], str]) -> dict[str, Any]:
    """Search, write what was found with `write`, which returns what there is to say about the file, and tell; returns
    the figures and that."""
    show = not (shared.quiet or shared.json)
    with Watch(task.title, shared.time_limit, show=not shared.quiet, keep=shared.report is not None) as watch:
        answer, res = task.solve(**searching(task, shared, watch))
    note = write(answer)
    if shared.save_model is not None:
        save_model(shared.save_model, res.mrf, force=shared.force)
    if shared.report is not None:
        page = section(task, answer, res, watch)
        page.facts |= shared.settings
        write_page(shared.report, f"treefield {task.title}", [page], force=shared.force)
    figures = {"output": str(out), "title": task.title, **as_json(res)}
    if shared.json:
        say(json.dumps(figures))
    elif show:
        wrote = [text for text in (shown(out) + (f" ({note})" if note else ""), *_others(shared)) if text]
        say(format_summary(res, wrote=", ".join(wrote)))
    exit_if_interrupted(res)
    return figures | {"note": note}


def exit_if_interrupted(res: MAPResult) -> None:
    """End as shells expect of a command that Ctrl-C has ended, once all is written."""
    if res.status == INTERRUPTED:
        sys.exit(INTERRUPTED_EXIT)


def check_folder(folder: pathlib.Path, names: Iterable[str], *, force: bool) -> None:
    """Refuse, before any work, a folder that could not be made or files that could not be written to it."""
    if not folder.exists():
        checked_output(folder)
        return
    for name in names:
        checked_output(folder / name, force=force)


def searching(task: Task, shared: Shared, watch: Watch | None) -> dict[str, Any]:
    """The keywords of `minimize` for a task, with the watch where the method calls back."""
    options = shared.search()
    if watch is not None and "callback" in takes(shared.method):
        options["callback"] = watch
    if task.memory_limit is not None and shared.method == "auto":
        options["memory_limit"] = task.memory_limit
    return options


def section(task: Task, answer: np.ndarray, res: MAPResult, watch: Watch) -> Section:
    """A task's part of a report."""
    moments = []
    if task.picture is not None:
        moments = [
            Picture(f"after {seconds:.2f} s: energy {number(energy)}", task.picture(x.astype(np.int32)))
            for seconds, energy, x in watch.moments
        ]
    return Section(
        task.title,
        before=task.before,
        after=None if task.shows is None else Picture("result", task.shows(answer)),
        runs={res.method: res.trace},
        moments=moments,
        facts=summary(res) | {"model": repr(res.mrf)},
    )


def write_page(path: pathlib.Path, title: str, sections: list[Section], *, force: bool) -> None:
    """A report, as a file; its command is the one that runs."""
    page = report(title, sections, command=command_line(), version=__version__)
    with writing(checked_path(path), force=force) as temporary:
        temporary.write_text(page, encoding="utf-8")


def command_line() -> str:
    """The command that runs, as one would type it."""
    return shlex.join(["treefield", *sys.argv[1:]])


def format_summary(res: MAPResult, **more: str) -> str:
    """A result in words, and what else there is to say, line by line."""
    return "\n".join(f"{name:>12}: {value}" for name, value in (summary(res) | more).items())


def summary(res: MAPResult) -> dict[str, str]:
    """A result in words."""
    facts = {"energy": number(res.fun)}
    if not math.isnan(res.lower_bound):
        facts |= {"lower bound": number(res.lower_bound), "gap": percent(res.gap)}
    seconds = f"{res.trace['seconds'][-1]:.2f} s, {res.nit} iterations of {res.method}"
    return facts | {"time": seconds, "ended": res.message}


def as_json(res: MAPResult) -> dict[str, Any]:
    """A result for other programs: null where there is no bound, or where it is infinite."""
    figures = {"energy": res.fun, "lower_bound": res.lower_bound, "gap": res.gap}
    numbers = {name: value if math.isfinite(value) else None for name, value in figures.items()}
    seconds = float(res.trace["seconds"][-1])
    ended = {"success": bool(res.success), "status": int(res.status), "message": res.message}
    return numbers | {"seconds": seconds, "iterations": int(res.nit), "method": res.method} | ended


def _others(shared: Shared) -> list[str]:
    return [shown(path) for path in (shared.report, shared.save_model) if path is not None]
