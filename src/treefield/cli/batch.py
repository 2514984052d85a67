"""Many images with one command: a folder, a pattern or a list, each written to a file of its own."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import glob
import importlib
import inspect
import itertools
import json
import os
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from treefield.cli import INTERRUPTED_EXIT
from treefield.cli.memory import searches_at_once
from treefield.cli.options import Shared
from treefield.cli.outcome import check_folder
from treefield.cli.streams import say, warn
from treefield.cli.watch import number, percent
from treefield.io.files import checked_input, one_line, shown
from treefield.io.images import WRITTEN, image_files
from treefield.solvers.minimize import takes
from treefield.validation import as_count, thread_count

_MANY = " Or several, a folder or a 'pattern*': OUT is then a folder."
_MANY_PAIRS = " Or a folder or a 'pattern*': OUT is then a folder."
_OPTIONS = {
    "suffix": Annotated[str | None, typer.Option(help="Of many images: the format to write, such as .tif.")],
    "workers": Annotated[int | None, typer.Option(help="Of many images: how many at once; all cores if not given.")],
    "scheduler": Annotated[
        str | None, typer.Option(help="Of many images: a Dask cluster to do it, as tcp://host:port.")
    ],
}


@dataclasses.dataclass(frozen=True)
class Files:
    """What one search reads, by the command's parameters, and what it writes."""

    inputs: dict[str, pathlib.Path]
    out: pathlib.Path

    def anywhere(self) -> Files:
        """The same for a worker that may be in another folder."""
        return Files({name: path.absolute() for name, path in self.inputs.items()}, self.out.absolute())


def over_many(*names: str, kept: Sequence[str] = WRITTEN) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Let a command from the files of these parameters to `out` take folders and patterns, too; if it is one, lists.

    Outputs have their (first) input's name, and its suffix if that is one of `kept`. The command must return what `run`
    does, and be found in its module under its name.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        own = dict(signature.parameters)
        for name in names:
            argument = copy.copy(own[name].annotation.__metadata__[0])
            argument.help += _MANY if len(names) == 1 else _MANY_PAIRS
            kind = list[pathlib.Path] if len(names) == 1 else pathlib.Path
            own[name] = own[name].replace(annotation=Annotated[kind, argument])
        shared = own.pop("shared")
        keyword = inspect.Parameter.KEYWORD_ONLY
        more = [inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in _OPTIONS.items()]

        @functools.wraps(function)
        def command(**given: Any) -> None:
            options = {name: given.pop(name) for name in _OPTIONS}
            inputs = {name: _as_list(given.pop(name)) for name in names}
            out, shared = given.pop("out"), given.pop("shared")
            if _is_one(inputs, out):
                for name in ("scheduler", "suffix"):
                    if options[name] is not None:
                        raise ValueError(f"--{name} is for many images: give several, a folder or a pattern")
                function(**{name: paths[0] for name, paths in inputs.items()}, out=out, **given, shared=shared)
                return
            many = _Many(function, given, shared, **options)
            many.run(_paired(inputs, out, options["suffix"], kept), out)

        command.__signature__ = signature.replace(parameters=[*own.values(), *more, shared])  # type: ignore[attr-defined]
        return command

    return decorate


def _as_list(paths: Any) -> list[pathlib.Path]:
    return paths if isinstance(paths, list) else [paths]


def _is_one(inputs: dict[str, list[pathlib.Path]], out: pathlib.Path) -> bool:
    """Whether a file is to be written, not a folder."""
    several = any(len(paths) > 1 or _is_folder(paths[0]) or _is_pattern(paths[0]) for paths in inputs.values())
    return not several and not (_is_folder(out) and out.suffix.lower() not in WRITTEN)


def _is_folder(path: pathlib.Path) -> bool:
    return path.is_dir() and not _is_zarr(path)


def _is_zarr(path: pathlib.Path) -> bool:
    """Whether it is one image, although it is a folder."""
    return path.suffix.lower() == ".zarr"


def _is_pattern(path: pathlib.Path) -> bool:
    return glob.has_magic(str(path)) and not path.exists()


def _found(paths: list[pathlib.Path]) -> list[pathlib.Path]:
    """The files that folders, patterns and names stand for."""
    files: list[pathlib.Path] = []
    for path in paths:
        if _is_pattern(path):
            files += _matches(path)
        else:
            files += image_files(path) if _is_folder(path) else [path]
    return files


def _matches(pattern: pathlib.Path) -> list[pathlib.Path]:
    plain = list(itertools.takewhile(lambda part: not glob.has_magic(part), pattern.parts))
    rest = pathlib.Path(*pattern.parts[len(plain) :])
    found = [path for path in pathlib.Path(*plain).glob(str(rest)) if path.name[0] != "."]
    found = [path for path in found if path.is_file() or _is_zarr(path)]
    if not found:
        raise FileNotFoundError(f"no file matches {shown(pattern)}")
    return sorted(found)


def _paired(
    inputs: dict[str, list[pathlib.Path]], out: pathlib.Path, suffix: str | None, kept: Sequence[str]
) -> list[Files]:
    """What is read and written by each search."""
    found = {name: _found(paths) for name, paths in inputs.items()}
    counts = {name: len(files) for name, files in found.items()}
    if len(set(counts.values())) > 1:
        what = ", ".join(f"{many} for {name.upper()}" for name, many in counts.items())
        raise ValueError(f"files are taken in pairs, by name, but there are {what}: there must be as many of each")
    if out.is_file() or (out.suffix.lower() in (*WRITTEN, *kept) and not _is_folder(out)):
        raise ValueError(f"{shown(out)} is no folder: OUT must be one for several images")
    if suffix is not None:
        suffix = f".{suffix.lower().lstrip('.')}"
        if suffix not in (*WRITTEN, *kept):
            raise ValueError(f"--suffix must be one of {' '.join(WRITTEN)}, got {suffix}")
    paired = []
    for files in zip(*found.values(), strict=True):
        for path in files:
            if not (_is_zarr(path) and path.is_dir()):
                checked_input(path)
        ending = suffix or (files[0].suffix if files[0].suffix.lower() in kept else ".png")
        paired.append(Files(dict(zip(found, files, strict=True)), out / f"{files[0].stem}{ending}"))
    return paired


def _check_outputs(paired: list[Files], folder: pathlib.Path, *, force: bool) -> None:
    """Refuse, before any work, outputs that are there, that are inputs, or that are those of two images."""
    inputs = {os.path.realpath(path) for files in paired for path in files.inputs.values()}
    first: dict[str, Files] = {}
    for files in paired:
        target = os.path.realpath(files.out)
        if target in inputs:
            raise FileExistsError(f"{shown(files.out)} is one of the images that are read: give another folder")
        if target in first:
            two = " and ".join(shown(next(iter(each.inputs.values()))) for each in (first[target], files))
            raise ValueError(f"{two} would both be written to {shown(files.out)}: rename one, or write two folders")
        first[target] = files
    check_folder(folder, [files.out.name for files in paired], force=force)


class _Many:
    """A command that is done for many files."""

    def __init__(
        self,
        function: Callable[..., Any],
        given: dict[str, Any],
        shared: Shared,
        *,
        workers: int | None,
        scheduler: str | None,
        suffix: str | None,
    ) -> None:
        for option, value in {"--report": shared.report, "--save-model": shared.save_model}.items():
            if value is not None:
                raise ValueError(f"{option} is for one image: leave it out, or give a single one and a file to write")
        self._workers = None if workers is None else as_count(workers, "--workers", 1)
        one_thread = "threads" in takes(shared.method) and workers != 1 and shared.threads is None
        # silent: what there is to tell of an image is told here
        alone = dataclasses.replace(shared, quiet=True, json=False, threads=1 if one_thread else shared.threads)
        self._work = {"module": function.__module__, "name": function.__name__, "given": given, "shared": alone}
        self._title, self._shared, self._scheduler = function.__name__, shared, scheduler

    def run(self, paired: list[Files], folder: pathlib.Path) -> None:
        """Search and write, tell how it went, and leave with exit code 1 if any of it failed."""
        from treefield.apps.batch import BatchInterrupted, run_batch

        _check_outputs(paired, folder, force=self._shared.force)
        new = not folder.exists()
        folder.mkdir(exist_ok=True)
        ends: collections.Counter[str] = collections.Counter()
        waiting = iter(paired)

        def tell(item: Any) -> None:
            files = next(waiting)  # told in their order
            if isinstance(item.error, BatchInterrupted):
                ends[str(item.error)] += 1
            else:
                ends["written" if item.error is None else "failed"] += 1
                self._tell(files, item)

        sent = [files.anywhere() for files in paired] if self._scheduler is not None else paired
        given = {**self._work, "at_once": 1 if self._scheduler is not None else self._at_once(len(paired))}
        try:
            run_batch(_write_one, sent, given, workers=self._workers, scheduler=self._scheduler, tell=tell)
        finally:
            if new and not ends["written"] and not any(folder.iterdir()):
                folder.rmdir()
        if not (self._shared.quiet or self._shared.json):
            images = "1 image" if len(paired) == 1 else f"{len(paired)} images"
            say(f"{images}: {', '.join(f'{many} {how}' for how, many in ends.items())}")
        if set(ends) - {"written"}:
            sys.exit(1 if set(ends) <= {"written", "failed"} else INTERRUPTED_EXIT)

    def _at_once(self, total: int) -> int:
        return min(total, thread_count(None) if self._workers is None else self._workers)

    def _tell(self, files: Files, item: Any) -> None:
        """A line about one image: what was written, or why not."""
        names = [str(path) for path in files.inputs.values()]
        error = None if item.error is None else one_line(item.error)
        if self._shared.json:
            figures = {"output": None, "title": self._title} if error else {**item.value, "output": str(files.out)}
            say(json.dumps({"inputs": names, **figures, "error": error}))
        elif error is not None:
            name = shown(names[0])
            warn(error if name in error else f"{name}: {error}")
        elif not self._shared.quiet:
            figures = item.value
            gap = "" if figures["gap"] is None else f", gap {percent(figures['gap'])}"
            energy = "infinite" if figures["energy"] is None else number(figures["energy"])
            note = f" ({figures['note']})" if figures["note"] else ""
            say(f"{shown(files.out)}{note}: energy {energy}{gap}, {figures['seconds']:.2f} s")


def _write_one(
    files: Files, *, module: str, name: str, given: dict[str, Any], shared: Shared, at_once: int
) -> dict[str, Any]:
    """Do the command of that name for one image; its module knows it, since what is decorated cannot be pickled."""
    searches_at_once.set(at_once)
    command = inspect.unwrap(getattr(importlib.import_module(module), name))
    return command(**files.inputs, out=files.out, **given, shared=shared)
