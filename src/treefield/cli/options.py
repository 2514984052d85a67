"""The options that all commands share, written once."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import pathlib
import typing
from collections.abc import Callable
from typing import Annotated, Any

import typer

from treefield.io.files import checked_output, shown
from treefield.io.models import check_model_path
from treefield.solvers.minimize import METHODS

_NO_SETTINGS = ("out", "out_file", "report", "save_model", "force", "quiet", "json")


@dataclasses.dataclass(frozen=True)
class Shared:
    """The options of every search."""

    time_limit: Annotated[float | None, typer.Option(help="Seconds the search may take, compilation left out.")] = None
    tol: Annotated[
        float | None, typer.Option(help="Stop when the gap between energy and bound is at most this [0.001].")
    ] = None
    method: Annotated[str, typer.Option(help=f"How to search: {', '.join(METHODS)}.")] = "auto"
    seed: Annotated[int | None, typer.Option(help="For the same answer again.")] = None
    threads: Annotated[int | None, typer.Option(help="How many threads to use; all cores if not given.")] = None
    report: Annotated[
        pathlib.Path | None, typer.Option(help="Write an HTML page with pictures and the course of the search.")
    ] = None
    save_model: Annotated[
        pathlib.Path | None, typer.Option(help="Write the model as .npz, for `treefield solve` and `compare`.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False
    settings: dict[str, str] = dataclasses.field(default_factory=dict)  # all of the command's that bear on its answer

    def check_outputs(self, *outputs: pathlib.Path) -> None:
        """Refuse, before any work, what could not be written after it."""
        paths = [*outputs, *(path for path in (self.report, self.save_model) if path is not None)]
        for path in paths:
            checked_output(path, force=self.force)
        if self.save_model is not None:
            check_model_path(self.save_model)
        if self.report is not None and self.report.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"{shown(self.report)} is no name for a report: it is a page, expected .html")
        names = [path.resolve() for path in paths]
        if len(set(names)) < len(names):
            twice = next(path for path, name in zip(paths, names, strict=True) if names.count(name) > 1)
            raise ValueError(f"{shown(twice)} is named twice: each file needs a name of its own")

    def search(self) -> dict[str, Any]:
        """The keywords of `minimize` that were given."""
        options = {"time_limit": self.time_limit, "tol": self.tol, "rng": self.seed, "threads": self.threads}
        return {"method": self.method} | {name: value for name, value in options.items() if value is not None}


def shares_options(function: Callable[..., Any], without: tuple[str, ...] = ()) -> Callable[..., None]:
    """Give a command with a parameter `shared: Shared` all its options, but for those it has no use for."""
    hints = typing.get_type_hints(Shared, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(Shared)
        if field.name not in ("settings", *without)
    ]
    signature = inspect.signature(function, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "shared"]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        told = {name: value for name, value in given.items() if value is not None and name not in _NO_SETTINGS}
        settings = {name.replace("_", " "): _text(value) for name, value in told.items()}
        options = {parameter.name: given.pop(parameter.name) for parameter in shared}
        function(**given, shared=Shared(**options, settings=settings))

    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    command.__signature__ = signature.replace(parameters=own + shared)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in own + shared}
    return command


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
