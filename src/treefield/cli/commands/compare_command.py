"""The command compare: several methods on one problem."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer

from treefield.apps.problem import Problem
from treefield.cli.commands.ising_command import read_ising
from treefield.cli.input_images import split_alpha
from treefield.cli.memory_plan import plan_memory
from treefield.cli.options import Shared, shares_options
from treefield.cli.previews import draw_disparities, draw_image, draw_regions, draw_shades
from treefield.cli.progress_display import SearchDisplay, format_energy
from treefield.cli.reporting import check_folder, exit_if_interrupted, search_figures, summary_facts, write_page
from treefield.cli.streams import say, warn
from treefield.cli.tables import print_table
from treefield.errors import CycleError
from treefield.io import load_model, read_image, write_image
from treefield.io.files import write_atomically
from treefield.io.paths import as_text
from treefield.models.grid import GridMRF
from treefield.report.page import Picture, Section
from treefield.results import MAPResult, Status
from treefield.solvers.minimize import METHODS, takes
from treefield.validation import as_choice

PROBLEMS = {"denoise": "IN", "segment": "IN", "stereo": "LEFT RIGHT", "ising": "FIELDS", "solve": "MODEL"}

_METHODS = "icm,t_icm,t_ils,loopy_bp,trw,auto"
_TIME_LIMIT = 5.0
_COLUMNS = ("method", "energy", "lower bound", "gap", "time", "iterations")


@functools.partial(shares_options, without=("method", "report", "save_model"))
def compare(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help=f"{', '.join(PROBLEMS)}")],
    files: Annotated[
        list[pathlib.Path],
        typer.Argument(metavar="FILES", help="The inputs of the command of that name: IN; LEFT RIGHT; ..."),
    ],
    out: Annotated[pathlib.Path, typer.Option(help="The folder for the plot, the pictures and the figures.")],
    methods: Annotated[str, typer.Option(help=f"Separated by commas: {', '.join(METHODS)}.")] = _METHODS,
    start: Annotated[
        str, typer.Option(help="The start of all methods: unary (each site alone), random or scan-line.")
    ] = "unary",
    num_disparities: Annotated[int | None, typer.Option(help="Number of disparities, for stereo.")] = None,
    levels: Annotated[int, typer.Option(help="Number of intensities, for denoise.")] = 256,
    labels: Annotated[int, typer.Option(help="Number of regions, for segment.")] = 2,
    coupling: Annotated[float | None, typer.Option(help="The same coupling everywhere, for ising.")] = None,
    *,
    shared: Shared,
) -> None:
    """Run several methods on one problem, and show them side by side.

    Each has --time-limit seconds, 5 by default.
    """
    names = [as_choice(name.strip(), "--methods", METHODS) for name in methods.split(",")]
    as_choice(start, "--start", ("unary", "random", "scan-line"))
    shared = dataclasses.replace(shared, time_limit=_TIME_LIMIT if shared.time_limit is None else shared.time_limit)
    outputs = [f"{name}.png" for name in dict.fromkeys(names)] + ["energies.png", "compare.json", "report.html"]
    check_folder(out, outputs, force=shared.force)
    posed, draw = _build_problem(problem, files, num_disparities, levels, labels, coupling, shared.seed)
    results: dict[str, MAPResult] = {}
    for name in dict.fromkeys(names):
        try:
            results[name] = _run_method(name, posed, start, shared)
        except CycleError as error:  # tree_bp solves trees only
            warn(f"{name} is left out: {error}")
            continue
        if results[name].status == Status.INTERRUPTED:
            break
    if not results:
        raise ValueError(f"none of the methods {methods} can be used on this problem")
    out.mkdir(exist_ok=True)
    _write_files(out, results, draw, posed, problem, shared.settings, shared.force)
    if shared.json:
        say(json.dumps({name: search_figures(res) for name, res in results.items()}))
    elif not shared.quiet:
        print_table(f"{problem}: {posed.mrf!r}", [_row(name, res) for name, res in results.items()])
        say(f"Plot, pictures and report are in {as_text(out)}")
    exit_if_interrupted(list(results.values())[-1])


def _run_method(method: str, problem: Problem, start: str, shared: Shared) -> MAPResult:
    """Run one method with those of the options that it takes."""
    names = takes(method)
    with SearchDisplay(method, shared.time_limit, show=not (shared.quiet or shared.json), keep=False) as display:
        options = {**shared.search_options(), "x0": start, "callback": display}
        taken = {name: value for name, value in options.items() if name in names}
        problem.preparation = 0.0  # is shared, and counts for none
        return problem.minimize(**taken, method=method)


def _build_problem(
    problem: str,
    files: list[pathlib.Path],
    num_disparities: int | None,
    levels: int,
    labels: int,
    coupling: float | None,
    seed: int | None,
) -> tuple[Problem, Callable[[np.ndarray], np.ndarray]]:
    """Read a problem from files; returns it and a function that draws its labellings."""
    as_choice(problem, "PROBLEM", tuple(PROBLEMS))
    wanted = len(PROBLEMS[problem].split())
    if len(files) != wanted:
        raise ValueError(f"compare {problem} reads {PROBLEMS[problem]}, got {len(files)} files")
    if problem == "solve":
        mrf = load_model(files[0])
        if not isinstance(mrf, GridMRF):
            raise ValueError(f"{as_text(files[0])} is a graph, of which compare has no pictures; use treefield solve")
        return Problem(mrf, lambda x: x), lambda x: draw_shades(x, mrf.n_labels)
    if problem == "ising":
        from treefield.apps.ising import ising_problem

        posed = ising_problem(*read_ising(files[0], coupling))
        return posed, lambda x: draw_shades(x, 2)
    images = [split_alpha(read_image(path)) for path in files]
    image, _, axis = images[0]
    if problem == "stereo":
        from treefield.apps.stereo import stereo_problem

        posed = stereo_problem(image, images[1][0], num_disparities, channel_axis=axis)
        return posed, lambda x: draw_disparities(x.astype(np.float32), 0, posed.mrf.n_labels)
    if problem == "segment":
        from treefield.apps.segment import segment_problem

        posed = segment_problem(image, labels, channel_axis=axis, rng=seed)
        return posed, lambda x: draw_regions(posed.output(x))
    from treefield.apps.denoise import denoise_problem

    plan_memory(image.size, levels, 2, quiet=True)
    posed = denoise_problem(image, levels=levels, channel_axis=axis)
    return posed, lambda x: draw_image(posed.output(x), axis)


def _write_files(
    out: pathlib.Path,
    results: dict[str, MAPResult],
    draw: Callable[[np.ndarray], np.ndarray],
    problem: Problem,
    title: str,
    settings: dict[str, str],
    force: bool,
) -> None:
    pictures = {name: draw(res.x) for name, res in results.items()}
    for name, pixels in pictures.items():
        write_image(out / f"{name}.png", pixels, force=force)
    with write_atomically(out / "compare.json", force=force) as temporary:
        temporary.write_text(json.dumps({name: search_figures(res) for name, res in results.items()}, indent=2) + "\n")
    _plot_energies(out / "energies.png", results, force=force)
    best = min(results, key=lambda name: results[name].fun)
    page = Section(
        f"{title}: {len(results)} methods",
        after=Picture(f"the best: {best}", pictures[best]),
        runs={name: res.trace for name, res in results.items()},
        moments=[
            Picture(f"{name}: energy {format_energy(results[name].fun)}", pixels) for name, pixels in pictures.items()
        ],
        facts={"model": repr(problem.mrf)} | settings,
        table=[_row(name, res) for name, res in results.items()],
    )
    write_page(out / "report.html", f"treefield compare {title}", [page], force=force)


def _row(name: str, res: MAPResult) -> dict[str, str]:
    facts = summary_facts(res) | {
        "method": name,
        "iterations": f"{res.nit:,}",
        "time": f"{res.trace['seconds'][-1]:.2f} s",
    }
    return {column: facts.get(column, "") for column in _COLUMNS}


def _plot_energies(path: pathlib.Path, results: dict[str, MAPResult], *, force: bool) -> None:
    """Plot energy and bound against time as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    ax = figure.subplots()
    for name, res in results.items():
        trace = res.trace
        (line,) = ax.plot(
            trace["seconds"], trace["best"], drawstyle="steps-post", label=f"{name}: {format_energy(res.fun)}"
        )
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
    with write_atomically(path, force=force) as temporary:
        figure.savefig(temporary, dpi=110)
