"""The commands, and their names."""

from __future__ import annotations

from typing import Annotated

import typer

from treefield import __version__
from treefield.cli.compare import compare
from treefield.cli.demo import demo
from treefield.cli.images import denoise, inpaint, segment
from treefield.cli.info import info
from treefield.cli.models import ising, solve
from treefield.cli.paper import paper
from treefield.cli.stereo import stereo
from treefield.cli.streams import say

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (denoise, inpaint, stereo, segment, ising, solve, compare, demo, paper, info):
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        say(__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def treefield(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Find the most probable labelling of a Markov random field: restore images, match stereo pairs, cut out regions.

    Ctrl-C ends a search early and writes the best that was found.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
