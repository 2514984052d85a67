"""paper: the experiments of the paper, run again."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import sys
import time
from typing import Annotated, Any

import typer
from rich.console import Console

from treefield.cli import INTERRUPTED_EXIT
from treefield.cli.options import Shared, shares_options
from treefield.cli.outcome import check_folder, write_page
from treefield.cli.streams import say
from treefield.io.files import shown, writing
from treefield.paper import book
from treefield.paper.lab import FULL, QUICK, Experiment, Lab
from treefield.paper.sources import data_folder, sources
from treefield.validation import as_choice

_PAGE = "index.html"


@functools.partial(shares_options, without=("time_limit", "tol", "method", "report", "save_model"))
def paper(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(metavar="EXPERIMENTS", help=f"Which, of {', '.join(book.EXPERIMENTS)}; or all."),
    ] = None,
    out: Annotated[pathlib.Path, typer.Option(help="A folder for the page and its files.")] = pathlib.Path(
        "treefield-paper"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Minutes, with fewer iterations than the paper's.")] = False,
    data: Annotated[
        pathlib.Path | None,
        typer.Option(help="Where tsukuba/, venus/ and penguin/ are [TREEFIELD_DATA, else ../shared/data]."),
    ] = None,
    *,
    shared: Shared,
) -> None:
    """Run the experiments of the paper again, and write a page with its tables and figures beside ours.

    Minutes with --quick, the better part of an hour without. Ctrl-C keeps the experiments that are done.
    """
    names = _names(experiments or ["all"])
    check_folder(out, [_PAGE], force=shared.force)
    for name in names:
        _check_part(out / name, force=shared.force)
    effort, folder = QUICK if quick else FULL, data_folder(data)
    given = sources(folder) if any(name in book.PICTURED for name in names) else None
    words = "" if given is None else given.words
    done: list[Experiment] = []
    ended: BaseException | None = None
    with _Status(show=not (shared.quiet or shared.json)) as status:
        try:
            for name in names:
                lab = Lab(effort, given, shared.seed or 0, shared.threads, functools.partial(status.tell, name))
                done.append(book.perform(name, lab))
                _write(out, done[-1], force=shared.force)
        except (KeyboardInterrupt, Exception) as error:  # what is done is worth a page whatever comes after it
            if not done:
                raise
            ended = error
    pages = book.pages(done, effort, words, names[len(done) :])
    write_page(out / _PAGE, "The paper, run again", pages, force=shared.force)
    _tell(out, done, words, shared)
    if isinstance(ended, KeyboardInterrupt):
        sys.exit(INTERRUPTED_EXIT)
    if ended is not None:
        raise ended


def _names(given: list[str]) -> list[str]:
    """The experiments that are wanted, each once, in the order of the page."""
    for name in given:
        as_choice(name, "EXPERIMENTS", (*book.EXPERIMENTS, "all"))
    return [name for name in book.EXPERIMENTS if name in given or "all" in given]


def _check_part(folder: pathlib.Path, *, force: bool) -> None:
    """Refuse, before any work, a folder of an experiment that cannot be written to, or that has something in it."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{shown(folder)} is a file, expected a folder; give another --out")
    if folder.exists() and not force and any(folder.iterdir()):
        raise FileExistsError(f"{shown(folder)} is not empty; give another --out, or --force to replace what is there")


def _write(out: pathlib.Path, experiment: Experiment, *, force: bool) -> None:
    folder = out / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in experiment.files.items():
        with writing(folder / name, force=force) as temporary:
            temporary.write_bytes(content)


def _tell(out: pathlib.Path, done: list[Experiment], words: str, shared: Shared) -> None:
    compared = [comparison for experiment in done for comparison in experiment.comparisons]
    if shared.json:
        rows = [dataclasses.asdict(comparison) for comparison in compared]
        say(json.dumps({"output": str(out / _PAGE), "pictures": words, "comparisons": rows}))
    elif not shared.quiet:
        for comparison in compared:
            say(f"{comparison.verdict:>14}  {comparison.what}: {comparison.ours}{_beside(comparison.paper)}")
        say(f"{words}\nOpen {shown(out / _PAGE)} in a browser.".lstrip())


def _beside(paper: str) -> str:
    """The paper's figure, where it has one."""
    return f" (the paper: {paper})" if paper[0].isdigit() else ""


class _Status:
    """A line that says what is being run, and one for each experiment that is done; both on a terminal alone."""

    def __init__(self, *, show: bool) -> None:
        self._console = Console(stderr=True)
        self._line = self._console.status("starting") if show and self._console.is_terminal else None
        self._name, self._since = "", 0.0

    def __enter__(self) -> _Status:
        if self._line is not None:
            self._line.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._line is not None:
            self._ended()
            self._line.stop()

    def tell(self, name: str, text: str) -> None:
        """Show what an experiment does."""
        if self._line is None:
            return
        if name != self._name:
            self._ended()
            self._name, self._since = name, time.monotonic()
        self._line.update(f"{name}, {time.monotonic() - self._since:.0f} s: {text}")

    def _ended(self) -> None:
        if self._name:
            self._console.print(f"{self._name}: {time.monotonic() - self._since:.0f} s", highlight=False)
