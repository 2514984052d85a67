"""The command `treefield paper`: the experiments of the paper, run again."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import sys
from typing import Annotated

import typer

from treefield.cli.exit_codes import INTERRUPTED
from treefield.cli.options import Shared, shares_options
from treefield.cli.progress_display import StepDisplay
from treefield.cli.reporting import check_folder, write_page
from treefield.cli.streams import say
from treefield.io.files import write_atomically
from treefield.io.paths import as_text
from treefield.validation import as_choice
from treefield_reproduce import report_page
from treefield_reproduce.datasets import data_folder, load_datasets
from treefield_reproduce.experiment import Comparison, Experiment
from treefield_reproduce.experiments import EXPERIMENTS, NEED_IMAGES, run_experiment
from treefield_reproduce.runner import FULL, QUICK, Runner

_PAGE = "index.html"


@functools.partial(shares_options, without=("time_limit", "tol", "method", "report", "save_model"))
def paper(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(metavar="EXPERIMENTS", help=f"One or several of {', '.join(EXPERIMENTS)}; or all."),
    ] = None,
    out: Annotated[pathlib.Path, typer.Option(help="The folder for the page and its files.")] = pathlib.Path(
        "treefield-paper"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Run for minutes, with fewer iterations than the paper.")
    ] = False,
    data: Annotated[
        pathlib.Path | None,
        typer.Option(help="The folder with tsukuba/, venus/ and penguin/ [TREEFIELD_DATA]."),
    ] = None,
    *,
    shared: Shared,
) -> None:
    """Run the experiments of the paper again.

    Writes a page with the paper's tables and figures next to ours. Minutes with --quick, the better part of an hour
    without. Ctrl-C keeps the experiments that are done.
    """
    names = _chosen_names(experiments or ["all"])
    check_folder(out, [_PAGE], force=shared.force)
    for name in names:
        _check_experiment_folder(out / name, force=shared.force)
    effort, folder = QUICK if quick else FULL, data_folder(data)
    datasets = load_datasets(folder) if any(name in NEED_IMAGES for name in names) else None
    images = "" if datasets is None else datasets.description
    done: list[Experiment] = []
    ended: BaseException | None = None
    with StepDisplay("paper", len(names), "experiment", show=not (shared.quiet or shared.json)) as display:
        try:
            for name in names:
                display.start_step(name)
                runner = Runner(effort, datasets, shared.seed or 0, shared.threads, display.show)
                done.append(run_experiment(name, runner))
                _write_files(out, done[-1], force=shared.force)
                display.end_step()
        except (KeyboardInterrupt, Exception) as error:  # the experiments that are done get their page all the same
            if not done:
                raise
            ended = error
    sections = report_page.build_sections(done, effort, images, names[len(done) :])
    write_page(out / _PAGE, "The paper, run again", sections, force=shared.force)
    _print_comparisons(out, done, images, shared)
    if isinstance(ended, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    if ended is not None:
        raise ended


def _chosen_names(given: list[str]) -> list[str]:
    """The chosen experiments, each once, in the order of the page."""
    for name in given:
        as_choice(name, "EXPERIMENTS", (*EXPERIMENTS, "all"))
    return [name for name in EXPERIMENTS if name in given or "all" in given]


def _check_experiment_folder(folder: pathlib.Path, *, force: bool) -> None:
    """Raise, before any work, if an experiment's folder is a file, or not empty without --force."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{as_text(folder)} is a file, expected a folder; give another --out")
    if folder.exists() and not force and any(folder.iterdir()):
        raise FileExistsError(f"{as_text(folder)} is not empty; give another --out, or --force to replace its files")


def _write_files(out: pathlib.Path, experiment: Experiment, *, force: bool) -> None:
    folder = out / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in experiment.files.items():
        with write_atomically(folder / name, force=force) as temporary:
            temporary.write_bytes(content)


def _print_comparisons(out: pathlib.Path, done: list[Experiment], images: str, shared: Shared) -> None:
    compared = [comparison for experiment in done for comparison in experiment.comparisons]
    if shared.json:
        rows = [dataclasses.asdict(comparison) for comparison in compared]
        say(json.dumps({"output": str(out / _PAGE), "pictures": images, "comparisons": rows}))
    elif not shared.quiet:
        for comparison in compared:
            say(f"{comparison.verdict:>14}  {comparison.what}: {comparison.ours}{_paper_figure(comparison)}")
        say(f"{images}\nOpen {as_text(out / _PAGE)} in a browser.".lstrip())


def _paper_figure(comparison: Comparison) -> str:
    """The paper's figure in brackets; empty if it gives none."""
    return f" (the paper: {comparison.paper})" if comparison.paper[0].isdigit() else ""
