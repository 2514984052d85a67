"""The options that all commands share."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import pathlib
import typing
from collections.abc import Callable
from typing import Annotated

import typer

from treefield.apps.keywords import SearchKeywords
from treefield.io.models.npz_models import check_model_path
from treefield.io.paths import as_output_path, as_text
from treefield.solvers.minimize import METHODS

ModelMemory = Annotated[
    str | None,
    typer.Option(help="The memory for the costs and the search, such as 4GB [2.4GB, or less if not free]."),
]

_NO_SETTINGS = ("out", "out_file", "report", "save_model", "force", "quiet", "json")


@dataclasses.dataclass(frozen=True)
class Shared:
    """The options of every search."""

    time_limit: Annotated[float | None, typer.Option(help="Seconds at most, compilation left out.")] = None
    tol: Annotated[
        float | None, typer.Option(help="Stop when the gap between energy and bound is at most this [0.001].")
    ] = None
    method: Annotated[str, typer.Option(help=f"The solver: {', '.join(METHODS)}.")] = "auto"
    seed: Annotated[int | None, typer.Option(help="Seed of the random numbers, for a reproducible answer.")] = None
    threads: Annotated[int | None, typer.Option(help="Number of threads [all cores].")] = None
    report: Annotated[
        pathlib.Path | None, typer.Option(help="Write an HTML page with pictures and curves of the search.")
    ] = None
    save_model: Annotated[
        pathlib.Path | None, typer.Option(help="Write the model as .npz, for `treefield solve` and `compare`.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no summary.")] = False
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False
    settings: dict[str, str] = dataclasses.field(default_factory=dict)  # options that affect the answer, for the report

    def check_outputs(self, *outputs: pathlib.Path) -> None:
        """Raise, before any work, unless all outputs can be written."""
        paths = [*outputs, *(path for path in (self.report, self.save_model) if path is not None)]
        for path in paths:
            as_output_path(path, force=self.force)
        if self.save_model is not None:
            check_model_path(self.save_model)
        if self.report is not None and self.report.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"cannot write the report to {as_text(self.report)}: expected a name that ends in .html")
        names = [path.resolve() for path in paths]
        if len(set(names)) < len(names):
            twice = next(path for path, name in zip(paths, names, strict=True) if names.count(name) > 1)
            raise ValueError(f"{as_text(twice)} is named twice: give each output another name")

    def search_options(self) -> SearchKeywords:
        """The keywords of `minimize` that were given."""
        options: SearchKeywords = {"method": self.method}
        if self.time_limit is not None:
            options["time_limit"] = self.time_limit
        if self.tol is not None:
            options["tol"] = self.tol
        if self.seed is not None:
            options["rng"] = self.seed
        if self.threads is not None:
            options["threads"] = self.threads
        return options


def shares_options(function: Callable[..., object], without: tuple[str, ...] = ()) -> Callable[..., None]:
    """Give a command with a parameter `shared: Shared` the options of `Shared`, except those in `without`."""
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
    def command(**given: object) -> None:
        settings = {
            name.replace("_", " "): _as_text(value)
            for name, value in given.items()
            if value is not None and name not in _NO_SETTINGS
        }
        options = {parameter.name: given.pop(parameter.name) for parameter in shared}
        create: Callable[..., Shared] = Shared  # typer has converted the values to the types of the fields
        function(**given, shared=create(**options, settings=settings))

    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    command.__signature__ = signature.replace(parameters=own + shared)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in own + shared}
    return command


def _as_text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
