"""The command solve."""

from __future__ import annotations

import pathlib
from typing import Annotated

import numpy as np
import typer

from treefield.apps.problem import Problem
from treefield.cli.memory_plan import plan_memory
from treefield.cli.options import Shared, shares_options
from treefield.cli.previews import draw_shades
from treefield.cli.reporting import Task, run_task
from treefield.io import read_model, write_labels, write_mpe
from treefield.io.files import write_atomically
from treefield.io.images.image_formats import as_writable_labels
from treefield.io.models.factors import count_own_sites
from treefield.io.models.uai import VALUES
from treefield.io.numpy_files import write_npy
from treefield.io.paths import as_text
from treefield.models.graph import GraphMRF
from treefield.models.grid import GridMRF

_MAX_PRINTED = 100


@shares_options
def solve(
    model: Annotated[
        pathlib.Path, typer.Argument(metavar="MODEL", help="NPZ, UAI, WCSP, CFN, OpenGM's H5, MC, COO, QUBO or BQM.")
    ],
    out: Annotated[
        pathlib.Path | None,
        typer.Argument(
            metavar="OUT",
            help="The labels: NPY; of a graph also MPE, of a grid also TIFF or PNG. Printed if not given.",
        ),
    ] = None,
    out_file: Annotated[pathlib.Path | None, typer.Option("--out", help="The same as OUT.")] = None,
    evid: Annotated[pathlib.Path | None, typer.Option(help="UAI: the file of labels that are known.")] = None,
    values: Annotated[
        str | None, typer.Option(help=f"UAI: what tables hold: {', '.join(VALUES)}; {VALUES[0]} if not given.")
    ] = None,
    *,
    shared: Shared,
) -> None:
    """Minimise the energy of a model that a file holds. Without OUT the labels are printed."""
    if out is not None and out_file is not None:
        raise ValueError("solve takes one file for the labels: treefield solve MODEL OUT, or --out OUT")
    out = out_file if out is None else out
    shared.check_outputs(*(() if out is None else (out,)))
    given = {"evidence": evid, "values": values}
    mrf = read_model(model, **{name: value for name, value in given.items() if value is not None})
    if isinstance(mrf, GraphMRF):
        _solve_graph(mrf, out, shared)
    else:
        _solve_grid(mrf, out, shared)


def _format_labels(x: np.ndarray) -> str:
    """The labels in a line, of a large model the first ones and how many there are."""
    shown = " ".join(map(str, x.reshape(-1)[:_MAX_PRINTED].tolist()))
    return shown if x.size <= _MAX_PRINTED else f"{shown} ... ({_MAX_PRINTED} of {x.size}; give OUT for all)"


def _solve_grid(mrf: GridMRF, out: pathlib.Path | None, shared: Shared) -> None:
    limit = plan_memory(mrf.size, mrf.n_labels, mrf.unary.itemsize, quiet=shared.quiet)
    problem = Problem(mrf, lambda x: x)
    if out is not None:
        as_writable_labels(out, problem.example_output())

    def write(x: np.ndarray) -> str:
        if out is None:
            return _format_labels(x)
        write_labels(out, x, force=shared.force)
        return f"labels {x.min()} to {x.max()}"

    task = Task(
        "solve",
        lambda **options: problem.solve(True, **options),
        draw_labels=lambda x: draw_shades(x, mrf.n_labels),
        draw_answer=lambda x: draw_shades(x, mrf.n_labels),
        memory_limit=limit,
    )
    run_task(task, shared, out, write)


def _solve_graph(mrf: GraphMRF, out: pathlib.Path | None, shared: Shared) -> None:
    if out is not None and out.suffix.lower() not in (".mpe", ".npy"):
        raise ValueError(f"cannot write {as_text(out)}: the labels of a graph go into .npy or .MPE")
    limit = plan_memory(int(mrf.label_counts.sum()), 1, 8, quiet=shared.quiet)
    sites = count_own_sites(mrf)
    problem = Problem(mrf, lambda x: x[:sites])

    def write(x: np.ndarray) -> str:
        if out is None:
            return _format_labels(x)
        if out.suffix.lower() == ".mpe":
            write_mpe(out, x, force=shared.force)
        else:
            with write_atomically(out, force=shared.force) as temporary:
                write_npy(temporary, x)
        return f"{len(x)} sites, labels {x.min()} to {x.max()}"

    run_task(
        Task(
            "solve",
            lambda **options: problem.solve(True, **options),
            draw_labels=None,
            draw_answer=None,
            memory_limit=limit,
        ),
        shared,
        out,
        write,
    )
