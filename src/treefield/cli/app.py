"""The commands by name. The module of a command is imported when the command is run, not for `treefield --help`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, cast

import typer
from typer.core import TyperCommand, TyperGroup

from treefield import __version__
from treefield.cli.streams import say

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

# The line of `treefield --help`, and the module with a function of the command's name. None: an entry point of the
# group `treefield.commands`, since the paper's experiments are not part of the installed package.
COMMANDS: dict[str, tuple[str, str | None]] = {
    "denoise": ("Take Gaussian noise, salt and pepper, or both, from an image.", "restore_commands"),
    "inpaint": ("Fill the holes of an image.", "restore_commands"),
    "stereo": ("Find the depth in a rectified stereo pair.", "stereo_command"),
    "segment": ("Cut an image into regions of similar colour.", "segment_command"),
    "ising": ("Find spins of low energy on a grid.", "ising_command"),
    "solve": ("Minimise the energy of a model that a file holds.", "solve_command"),
    "compare": ("Run several methods on one problem, and show them side by side.", "compare_command"),
    "demo": ("Restore a photograph, match a stereo pair, cool a spin glass.", "demo_command"),
    "paper": ("Run the experiments of the paper again.", None),
    "info": ("Show versions, threads, memory and the cache of compiled kernels.", "info_command"),
}
ENTRY_POINTS = "treefield.commands"

_SETTINGS = {"help_option_names": ["-h", "--help"]}


class _LazyCommand(TyperCommand):
    """Stands for a command until its arguments are parsed."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: typer.Context | None = None, **extra: object
    ) -> typer.Context:
        assert self.name is not None
        command = _load(self.name)
        try:
            return cast(typer.Context, command.make_context(info_name, list(args), parent=parent, **extra))
        except Exception as error:
            if type(error).__name__ != "MissingParameter":  # of the parser that typer brings or of click
                raise
            from treefield.cli.missing_arguments import describe_missing

            raise ValueError(describe_missing(command, error.ctx, args)) from None  # type: ignore[attr-defined]


class _LazyGroup(TyperGroup):
    """The command `treefield`, with a line of help for each of COMMANDS."""

    def list_commands(self, ctx: object) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: object, cmd_name: str) -> TyperCommand | None:
        if cmd_name not in COMMANDS:
            return None
        return _LazyCommand(cmd_name, short_help=COMMANDS[cmd_name][0], rich_markup_mode=None)


def _load(name: str) -> TyperCommand:
    """Import a command."""
    module = COMMANDS[name][1]
    function = _load_entry_point(name) if module is None else _load_function(module, name)
    single = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, context_settings=_SETTINGS, rich_markup_mode=None
    )
    single.command(name)(function)
    return cast(TyperCommand, typer.main.get_command(single))  # a group if there were several


def _load_function(module: str, name: str) -> Callable[..., object]:
    function: Callable[..., object] = getattr(importlib.import_module(f"treefield.cli.commands.{module}"), name)
    return function


def find_entry_points(name: str) -> EntryPoints:
    """The entry points that provide a command."""
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS, name=name)


def _load_entry_point(name: str) -> Callable[..., object]:
    try:
        (entry,) = find_entry_points(name)
        function: Callable[..., object] = entry.load()
    except (ValueError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("treefield_reproduce"):
            raise
        raise ImportError(
            "the paper's experiments are not part of the installed package: in a checkout of the repository, "
            "run `make paper` or pip install --editable '.[reproduce]'"
        ) from error
    return function


app = typer.Typer(
    cls=_LazyGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
    rich_markup_mode=None,  # plain text: to import Rich takes longer than all else that the help needs
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        say(__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def treefield(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Find the most probable labelling of a Markov random field: restore images, match stereo pairs, cut out regions.

    Ctrl-C ends a search early and writes the best labelling so far.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
