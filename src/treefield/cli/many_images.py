"""Commands on many images: a folder, a pattern or a list, each image written to its own file."""

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
from typing import Annotated

import typer

from treefield.apps.batch import BatchInterrupted, BatchItem, run_batch
from treefield.apps.memory import searches_at_once
from treefield.cli.exit_codes import FAILED_ITEMS, INTERRUPTED
from treefield.cli.options import Shared
from treefield.cli.progress_display import format_energy, format_gap
from treefield.cli.reporting import Summary, check_folder
from treefield.cli.streams import say, warn
from treefield.io.images.image_formats import WRITABLE_SUFFIXES, list_images
from treefield.io.paths import as_input_path, as_text, error_text
from treefield.solvers.minimize import takes
from treefield.validation import as_count, as_thread_count

Inputs = dict[str, list[pathlib.Path]]  # the paths given for each parameter

_MANY = " Or several, a folder or a 'pattern*': OUT is then a folder."
_MANY_PAIRS = " Or a folder or a 'pattern*': OUT is then a folder."
_OPTIONS = {
    "suffix": Annotated[str | None, typer.Option(help="Of many images: the format to write, such as .tif.")],
    "workers": Annotated[int | None, typer.Option(help="Of many images: how many at once [all cores].")],
    "scheduler": Annotated[
        str | None, typer.Option(help="Of many images: the Dask cluster to run on, as tcp://host:port.")
    ],
}


@dataclasses.dataclass(frozen=True)
class Files:
    """The files that one search reads, by the command's parameters, and the file it writes."""

    inputs: dict[str, pathlib.Path]
    out: pathlib.Path

    def absolute(self) -> Files:
        """The same with absolute paths, for workers in another folder."""
        return Files({name: path.absolute() for name, path in self.inputs.items()}, self.out.absolute())


def over_many(
    *names: str, kept: Sequence[str] = WRITABLE_SUFFIXES
) -> Callable[[Callable[..., Summary]], Callable[..., None]]:
    """Let a command that reads the files of these parameters and writes `out` also take folders and patterns.

    A command with one such parameter also takes a list of files.

    Outputs have the name of their (first) input, and its suffix if that is one of `kept`. Worker processes import the
    command by its module and name.
    """

    def decorate(function: Callable[..., Summary]) -> Callable[..., None]:
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
        def command(
            *,
            out: pathlib.Path,
            suffix: str | None,
            workers: int | None,
            scheduler: str | None,
            shared: Shared,
            **given: object,
        ) -> None:
            inputs = {name: _as_paths(given.pop(name)) for name in names}
            if _is_one_image(inputs, out):
                for name, value in {"scheduler": scheduler, "suffix": suffix}.items():
                    if value is not None:
                        raise ValueError(f"--{name} is for many images: give several, a folder or a pattern")
                function(**{name: paths[0] for name, paths in inputs.items()}, out=out, **given, shared=shared)
                return
            many = _ManyImages(function, given, shared, workers, scheduler)
            many.run(_pair_files(inputs, out, suffix, kept), out)

        command.__signature__ = signature.replace(parameters=[*own.values(), *more, shared])  # type: ignore[attr-defined]
        return command

    return decorate


def _as_paths(given: object) -> list[pathlib.Path]:
    """The value of a parameter as a list of paths."""
    return [path for path in (given if isinstance(given, list) else [given]) if isinstance(path, pathlib.Path)]


def _is_one_image(inputs: Inputs, out: pathlib.Path) -> bool:
    """Whether the output is a file, not a folder."""
    several = any(len(paths) > 1 or _is_folder(paths[0]) or _is_pattern(paths[0]) for paths in inputs.values())
    return not several and not (_is_folder(out) and out.suffix.lower() not in WRITABLE_SUFFIXES)


def _is_folder(path: pathlib.Path) -> bool:
    return path.is_dir() and not _is_zarr(path)


def _is_zarr(path: pathlib.Path) -> bool:
    """Whether the path names a Zarr array: one image, although it is a folder."""
    return path.suffix.lower() == ".zarr"


def _is_pattern(path: pathlib.Path) -> bool:
    return glob.has_magic(str(path)) and not path.exists()


def _expand(paths: list[pathlib.Path]) -> list[pathlib.Path]:
    """Replace folders and patterns by their files."""
    files: list[pathlib.Path] = []
    for path in paths:
        if _is_pattern(path):
            files += _match_pattern(path)
        else:
            files += list_images(path) if _is_folder(path) else [path]
    return files


def _match_pattern(pattern: pathlib.Path) -> list[pathlib.Path]:
    fixed = list(itertools.takewhile(lambda part: not glob.has_magic(part), pattern.parts))
    rest = pathlib.Path(*pattern.parts[len(fixed) :])
    visible = [path for path in pathlib.Path(*fixed).glob(str(rest)) if path.name[0] != "."]
    matches = [path for path in visible if path.is_file() or _is_zarr(path)]
    if not matches:
        raise FileNotFoundError(f"no file matches {as_text(pattern)}")
    return sorted(matches)


def _pair_files(inputs: Inputs, out: pathlib.Path, suffix: str | None, kept: Sequence[str]) -> list[Files]:
    """The inputs and the output of each search."""
    expanded = {name: _expand(paths) for name, paths in inputs.items()}
    counts = {name: len(files) for name, files in expanded.items()}
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"{count} for {name.upper()}" for name, count in counts.items())
        raise ValueError(f"files are paired by name, but there are {numbers}: give the same number of each")
    if out.is_file() or (out.suffix.lower() in (*WRITABLE_SUFFIXES, *kept) and not _is_folder(out)):
        raise ValueError(f"{as_text(out)} is no folder: OUT must be one for several images")
    if suffix is not None:
        suffix = f".{suffix.lower().lstrip('.')}"
        if suffix not in (*WRITABLE_SUFFIXES, *kept):
            raise ValueError(f"--suffix must be one of {' '.join(WRITABLE_SUFFIXES)}, got {suffix}")
    paired = []
    for files in zip(*expanded.values(), strict=True):
        for path in files:
            if not (_is_zarr(path) and path.is_dir()):
                as_input_path(path)
        ending = suffix or (files[0].suffix if files[0].suffix.lower() in kept else ".png")
        paired.append(Files(dict(zip(expanded, files, strict=True)), out / f"{files[0].stem}{ending}"))
    return paired


def _check_outputs(paired: list[Files], folder: pathlib.Path, *, force: bool) -> None:
    """Raise, before any work, if an output exists, is an input, or is the output of two images."""
    inputs = {os.path.realpath(path) for files in paired for path in files.inputs.values()}
    first: dict[str, Files] = {}
    for files in paired:
        target = os.path.realpath(files.out)
        if target in inputs:
            raise FileExistsError(f"{as_text(files.out)} is one of the images that are read: give another folder")
        if target in first:
            two = " and ".join(as_text(next(iter(each.inputs.values()))) for each in (first[target], files))
            raise ValueError(f"{two} would both be written to {as_text(files.out)}: rename one, or write two folders")
        first[target] = files
    check_folder(folder, [files.out.name for files in paired], force=force)


class _ManyImages:
    """A command that runs on many files."""

    def __init__(
        self,
        function: Callable[..., Summary],
        given: dict[str, object],
        shared: Shared,
        workers: int | None,
        scheduler: str | None,
    ) -> None:
        for option, value in {"--report": shared.report, "--save-model": shared.save_model}.items():
            if value is not None:
                raise ValueError(f"{option} is for one image: leave it out, or give a single one and a file to write")
        self._workers = None if workers is None else as_count(workers, "--workers", 1)
        one_thread = "threads" in takes(shared.method) and workers != 1 and shared.threads is None
        # quiet: `_print_item` reports on each image
        alone = dataclasses.replace(shared, quiet=True, json=False, threads=1 if one_thread else shared.threads)
        self._function, self._given, self._alone = function, given, alone
        self._title, self._shared, self._scheduler = function.__name__, shared, scheduler

    def run(self, paired: list[Files], folder: pathlib.Path) -> None:
        """Search, write and report each image, and leave with exit code 1 if any of them failed."""
        _check_outputs(paired, folder, force=self._shared.force)
        is_new = not folder.exists()
        folder.mkdir(exist_ok=True)
        counts: collections.Counter[str] = collections.Counter()
        remaining = iter(paired)

        def report_item(item: BatchItem[Summary]) -> None:
            files = next(remaining)  # items are reported in their order
            if isinstance(item.error, BatchInterrupted):
                counts[str(item.error)] += 1
            else:
                counts["written" if item.error is None else "failed"] += 1
                self._print_item(files, item)

        sent = [files.absolute() for files in paired] if self._scheduler is not None else paired
        work = self._work(len(paired))
        try:
            run_batch(_write_one, sent, work, workers=self._workers, scheduler=self._scheduler, on_item=report_item)
        finally:
            if is_new and not counts["written"] and not any(folder.iterdir()):
                folder.rmdir()
        if not (self._shared.quiet or self._shared.json):
            images = "1 image" if len(paired) == 1 else f"{len(paired)} images"
            say(f"{images}: {', '.join(f'{count} {outcome}' for outcome, count in counts.items())}")
        if set(counts) - {"written"}:
            sys.exit(FAILED_ITEMS if set(counts) <= {"written", "failed"} else INTERRUPTED)

    def _work(self, total: int) -> dict[str, object]:
        """The keywords of `_write_one`."""
        workers = as_thread_count(None) if self._workers is None else self._workers
        return {
            "module": self._function.__module__,
            "name": self._function.__name__,
            "given": self._given,
            "shared": self._alone,
            "at_once": 1 if self._scheduler is not None else min(total, workers),
        }

    def _print_item(self, files: Files, item: BatchItem[Summary]) -> None:
        """Print a line about one image: its output and figures, or its error."""
        names = [str(path) for path in files.inputs.values()]
        if self._shared.json:
            self._print_json(names, files, item)
        elif item.error is not None:
            name, error = as_text(names[0]), error_text(item.error)
            warn(error if name in error else f"{name}: {error}")
        elif not self._shared.quiet and item.value is not None:
            figures = item.value
            gap = "" if figures["gap"] is None else f", gap {format_gap(figures['gap'])}"
            energy = "infinite" if figures["energy"] is None else format_energy(figures["energy"])
            note = f" ({figures['note']})" if figures["note"] else ""
            say(f"{as_text(files.out)}{note}: energy {energy}{gap}, {figures['seconds']:.2f} s")

    def _print_json(self, names: list[str], files: Files, item: BatchItem[Summary]) -> None:
        if item.error is not None or item.value is None:
            error = "" if item.error is None else error_text(item.error)
            say(json.dumps({"inputs": names, "output": None, "title": self._title, "error": error}))
        else:
            say(json.dumps({"inputs": names, **item.value, "output": str(files.out), "error": None}))


def _write_one(
    files: Files, *, module: str, name: str, given: dict[str, object], shared: Shared, at_once: int
) -> Summary:
    """Run the command `name` on one image. It is imported here because a decorated function cannot be pickled."""
    searches_at_once.set(at_once)
    command: Callable[..., Summary] = inspect.unwrap(getattr(importlib.import_module(module), name))
    return command(**files.inputs, out=files.out, **given, shared=shared)
