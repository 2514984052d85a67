"""compare: several methods on one problem."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from treefield.apps.problem import Problem
from treefield.cli import pictures
from treefield.cli.memory import plan_memory
from treefield.cli.models import read_ising
from treefield.cli.options import Shared, shares_options
from treefield.cli.outcome import as_json, check_folder, exit_if_interrupted, summary, write_page
from treefield.cli.streams import say, warn
from treefield.cli.watch import Watch, number
from treefield.io import load_model, read_image, write_image
from treefield.io.files import shown, writing
from treefield.models.grid import GridMRF
from treefield.results import MAPResult
from treefield.solvers.minimize import METHODS, takes
from treefield.solvers.run import INTERRUPTED
from treefield.trees.forests import CycleError
from treefield.validation import as_choice
from treefield.viz.report import Picture, Section

PROBLEMS = {"denoise": "IN", "segment": "IN", "stereo": "LEFT RIGHT", "ising": "FIELDS", "solve": "MODEL"}

_METHODS = "icm,t_icm,t_ils,loopy_bp,trw,auto"
_TIME_LIMIT = 5.0
_COLUMNS = ("method", "energy", "lower bound", "gap", "time", "iterations")


@functools.partial(shares_options, without=("method", "report", "save_model"))
def compare(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help=f"{', '.join(PROBLEMS)}")],
    files: Annotated[
        list[pathlib.Path],
        typer.Argument(metavar="FILES", help="What the command of that name reads: IN; LEFT RIGHT; ..."),
    ],
    out: Annotated[pathlib.Path, typer.Option(help="A folder for the plot, the pictures and the figures.")],
    methods: Annotated[str, typer.Option(help=f"Which, with commas: of {', '.join(METHODS)}.")] = _METHODS,
    start: Annotated[
        str, typer.Option(help="Where all start: unary (each site alone), random or scan-line.")
    ] = "unary",
    num_disparities: Annotated[int | None, typer.Option(help="For stereo.")] = None,
    levels: Annotated[int, typer.Option(help="For denoise.")] = 256,
    labels: Annotated[int, typer.Option(help="For segment.")] = 2,
    coupling: Annotated[float | None, typer.Option(help="For ising, the same coupling everywhere.")] = None,
    *,
    shared: Shared,
) -> None:
    """Run several methods on one problem, each within --time-limit (5 s), and show them side by side."""
    names = [as_choice(name.strip(), "--methods", METHODS) for name in methods.split(",")]
    as_choice(start, "--start", ("unary", "random", "scan-line"))
    shared = dataclasses.replace(shared, time_limit=_TIME_LIMIT if shared.time_limit is None else shared.time_limit)
    outputs = [f"{name}.png" for name in dict.fromkeys(names)] + ["energies.png", "compare.json", "report.html"]
    check_folder(out, outputs, force=shared.force)
    posed, picture = pose(problem, files, num_disparities, levels, labels, coupling, shared.seed)
    results: dict[str, MAPResult] = {}
    for name in dict.fromkeys(names):
        try:
            results[name] = _run(name, posed, start, shared)
        except CycleError as error:  # tree_bp solves trees alone
            warn(f"{name} is left out: {error}")
            continue
        if results[name].status == INTERRUPTED:
            break
    if not results:
        raise ValueError(f"none of the methods {methods} can be used on this problem")
    out.mkdir(exist_ok=True)
    _write(out, results, picture, posed, problem, shared.settings, shared.force)
    if shared.json:
        say(json.dumps({name: as_json(res) for name, res in results.items()}))
    elif not shared.quiet:
        print_table(f"{problem}: {posed.mrf!r}", [_row(name, res) for name, res in results.items()])
        say(f"Plot, pictures and report are in {shown(out)}")
    exit_if_interrupted(list(results.values())[-1])


def _run(method: str, problem: Problem, start: str, shared: Shared) -> MAPResult:
    """One method, with what it takes of the options."""
    names = takes(method)
    options = {name: value for name, value in shared.search().items() if name in names} | {"method": method}
    if "x0" in names:
        options["x0"] = start
    with Watch(method, shared.time_limit, show=not (shared.quiet or shared.json), keep=False) as watch:
        return problem.minimize(**options, **({"callback": watch} if "callback" in names else {}))


def pose(
    problem: str,
    files: list[pathlib.Path],
    num_disparities: int | None,
    levels: int,
    labels: int,
    coupling: float | None,
    seed: int | None,
) -> tuple[Problem, Callable[[np.ndarray], np.ndarray]]:
    """A problem from files, and how to look at its labellings."""
    as_choice(problem, "PROBLEM", tuple(PROBLEMS))
    wanted = len(PROBLEMS[problem].split())
    if len(files) != wanted:
        raise ValueError(f"compare {problem} reads {PROBLEMS[problem]}, got {len(files)} files")
    if problem == "solve":
        mrf = load_model(files[0])
        if not isinstance(mrf, GridMRF):
            raise ValueError(f"{shown(files[0])} is a graph, of which compare has no pictures; use treefield solve")
        return Problem(mrf, lambda x: x), lambda x: pictures.ordered(x, mrf.labels)
    if problem == "ising":
        from treefield.apps.ising import ising_problem

        posed = ising_problem(*read_ising(files[0], coupling))
        return posed, lambda x: pictures.ordered(x, 2)
    images = [pictures.split_alpha(read_image(path)) for path in files]
    image, _, axis = images[0]
    sites = image.size // (1 if axis is None else image.shape[-1])
    costs = {
        "stereo": (sites, num_disparities or 1, 1),
        "segment": (sites, labels, 4),
        "denoise": (image.size, levels, 2),
    }
    plan_memory(*costs[problem], quiet=True)
    if problem == "stereo":
        from treefield.apps.stereo import matching

        posed = matching(image, images[1][0], num_disparities, channel_axis=axis)
        return posed, lambda x: pictures.depths(x.astype(np.float32), 0, posed.mrf.labels)
    if problem == "segment":
        from treefield.apps.segment import segmenting

        posed = segmenting(image, labels, channel_axis=axis, rng=seed)
        return posed, lambda x: pictures.regions(posed.output(x))
    from treefield.apps.denoise import denoising

    posed = denoising(image, levels=levels, channel_axis=axis)
    return posed, lambda x: pictures.grey_or_colour(posed.output(x), axis)


def _write(
    out: pathlib.Path,
    results: dict[str, MAPResult],
    picture: Callable[[np.ndarray], np.ndarray],
    problem: Problem,
    title: str,
    settings: dict[str, str],
    force: bool,
) -> None:
    seen = {name: picture(res.x) for name, res in results.items()}
    for name, pixels in seen.items():
        write_image(out / f"{name}.png", pixels, force=force)
    with writing(out / "compare.json", force=force) as temporary:
        temporary.write_text(json.dumps({name: as_json(res) for name, res in results.items()}, indent=2) + "\n")
    plot(out / "energies.png", results, force=force)
    best = min(results, key=lambda name: results[name].fun)
    page = Section(
        f"{title}: {len(results)} methods",
        after=Picture(f"the best: {best}", seen[best]),
        runs={name: res.trace for name, res in results.items()},
        moments=[Picture(f"{name}: energy {number(results[name].fun)}", pixels) for name, pixels in seen.items()],
        facts={"model": repr(problem.mrf)} | settings,
        table=[_row(name, res) for name, res in results.items()],
    )
    write_page(out / "report.html", f"treefield compare {title}", [page], force=force)


def _row(name: str, res: MAPResult) -> dict[str, str]:
    facts = summary(res) | {"method": name, "iterations": f"{res.nit:,}", "time": f"{res.trace['seconds'][-1]:.2f} s"}
    return {column: facts.get(column, "") for column in _COLUMNS}


def plot(path: pathlib.Path, results: dict[str, MAPResult], *, force: bool) -> None:
    """Energy and bound against time, as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    ax = figure.subplots()
    for name, res in results.items():
        trace = res.trace
        (line,) = ax.plot(trace["seconds"], trace["best"], drawstyle="steps-post", label=f"{name}: {number(res.fun)}")
        if np.isfinite(trace["bound"]).any():
            ax.plot(trace["seconds"], trace["bound"], "--", color=line.get_color(), linewidth=1)
    finite = [res.trace["best"][len(res.trace) // 20 :] for res in results.values()]
    ends = np.concatenate([part[np.isfinite(part)] for part in finite])
    if ends.size and ends.min() < ends.max():
        bounds = [res.lower_bound for res in results.values() if np.isfinite(res.lower_bound)]
        low, high = min([ends.min(), *bounds]), np.quantile(ends, 0.9)
        ax.set_ylim(low - 0.05 * (high - low), high + 0.2 * (high - low))
    ax.set_xscale("symlog", linthresh=0.01)
    ax.set_xlim(left=0)
    ax.set_xlabel("seconds")
    ax.set_ylabel("energy (dashed: lower bound)")
    ax.legend()
    with writing(path, force=force) as temporary:
        figure.savefig(temporary, dpi=110)


def print_table(title: str, rows: list[dict[str, Any]]) -> None:
    """Rows with the same keys, on the terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2))
    for place, column in enumerate(rows[0]):
        table.add_column(column, justify="left" if place == 0 else "right", no_wrap=place > 0)
    for row in rows:
        table.add_row(*row.values())
    Console(width=None if Console().is_terminal else 120, markup=False, highlight=False).print(table)
