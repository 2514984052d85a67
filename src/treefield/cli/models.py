"""ising and solve: arrays in, labels out."""

from __future__ import annotations

import pathlib
from typing import Annotated, Any

import numpy as np
import typer

from treefield.apps.problem import Problem
from treefield.cli import pictures
from treefield.cli.memory import plan_memory
from treefield.cli.options import Shared, shares_options
from treefield.cli.outcome import Task, run
from treefield.io import read_image, read_model, write_image, write_labels, write_mpe
from treefield.io.arrays import read_npz, write_npy
from treefield.io.factors import own_sites
from treefield.io.files import checked_input, reading, shown, writing
from treefield.io.images import checked_format, checked_label_format
from treefield.io.uai import VALUES
from treefield.models.graph import GraphMRF
from treefield.models.grid import GridMRF
from treefield.viz.report import Picture


@shares_options
def ising(
    fields: Annotated[
        pathlib.Path,
        typer.Argument(metavar="FIELDS", help="NPY or an image: the fields; or NPZ: fields, couplings_0, couplings_1."),
    ],
    out: Annotated[pathlib.Path, typer.Argument(metavar="OUT", help="Spins: -1 and 1 in NPY, black and white in PNG.")],
    coupling: Annotated[
        float | None, typer.Option(help="The same coupling everywhere, unless FIELDS has them.")
    ] = None,
    *,
    shared: Shared,
) -> None:
    """Find spins of low energy, the sum of h_i s_i and J_ij s_i s_j, on a grid."""
    from treefield.apps.ising import ising_problem

    shared.check_outputs(out)
    h, couplings = read_ising(fields, coupling)
    limit = plan_memory(h.size, 2, 8, quiet=shared.quiet)
    problem = ising_problem(h, couplings)

    signed = out.suffix.lower() in (".npy", ".npz")

    def stored(spins: np.ndarray) -> np.ndarray:
        rows = np.atleast_2d(spins)  # a chain is one row
        return rows if signed else np.where(rows > 0, 255, 0).astype(np.uint8)

    def write(spins: np.ndarray) -> str:
        write_image(out, stored(spins), force=shared.force)
        return "spins -1 and 1" if signed else "black is -1, white is 1"

    checked_format(out, stored(problem.any_output()))

    def shade(spins: np.ndarray) -> np.ndarray:
        return pictures.ordered(np.atleast_2d(spins + 1), 3)

    task = Task(
        "ising",
        lambda **options: problem.solve(True, **options),
        picture=lambda x: shade(problem.output(x)),
        shows=shade,
        before=Picture("fields", pictures.grey_or_colour(np.atleast_2d(h), None)),
        memory_limit=limit,
    )
    run(task, shared, out, write)


def read_ising(path: pathlib.Path, coupling: float | None) -> tuple[np.ndarray, Any]:
    """Fields and couplings from a file."""
    if path.suffix.lower() != ".npz":
        if coupling is None:
            raise ValueError(
                f"{shown(path)} holds fields alone: give --coupling, or an .npz file with fields and couplings_0, ..."
            )
        return read_image(path), coupling
    with reading(checked_input(path), "a file of fields and couplings"):
        arrays = read_npz(path, lambda names: [name for name in names if name.startswith(("fields", "couplings_"))])
        if "fields" not in arrays:
            raise ValueError("it has no array named fields")
    h = arrays["fields"]
    names = [f"couplings_{axis}" for axis in range(h.ndim)]
    there = [name for name in names if name in arrays]
    if there and coupling is not None:
        raise ValueError(f"{shown(path)} has couplings of its own: leave --coupling out")
    if coupling is not None:
        return h, coupling
    if there != names:
        raise ValueError(
            f"{shown(path)} needs the arrays {', '.join(names)}, or --coupling; it has {', '.join(arrays)}"
        )
    return h, [arrays[name] for name in names]


@shares_options
def solve(
    model: Annotated[
        pathlib.Path, typer.Argument(metavar="MODEL", help="NPZ, UAI, WCSP, CFN, OpenGM's H5, MC, COO, QUBO or BQM.")
    ],
    out: Annotated[
        pathlib.Path | None,
        typer.Argument(metavar="OUT", help="The labels: NPY; of a graph also MPE, of a grid also TIFF or PNG."),
    ] = None,
    out_file: Annotated[pathlib.Path | None, typer.Option("--out", help="The same as OUT.")] = None,
    evid: Annotated[pathlib.Path | None, typer.Option(help="UAI: the file of labels that are known.")] = None,
    values: Annotated[
        str | None, typer.Option(help=f"UAI: what tables hold: {', '.join(VALUES)}; {VALUES[0]} if not given.")
    ] = None,
    *,
    shared: Shared,
) -> None:
    """Minimise the energy of a model that a file holds."""
    if (out is None) == (out_file is None):
        raise ValueError("solve needs the file for the labels once: treefield solve MODEL OUT, or --out OUT")
    out = out_file if out is None else out
    assert out is not None
    shared.check_outputs(out)
    given = {"evidence": evid, "values": values}
    mrf = read_model(model, **{name: value for name, value in given.items() if value is not None})
    if isinstance(mrf, GraphMRF):
        _solve_graph(mrf, out, shared)
    else:
        _solve_grid(mrf, out, shared)


def _solve_grid(mrf: GridMRF, out: pathlib.Path, shared: Shared) -> None:
    limit = plan_memory(mrf.size, mrf.labels, mrf.unary.itemsize, quiet=shared.quiet)
    problem = Problem(mrf, lambda x: x)
    checked_label_format(out, problem.any_output())

    def write(x: np.ndarray) -> str:
        write_labels(out, x, force=shared.force)
        return f"labels {x.min()} to {x.max()}"

    task = Task(
        "solve",
        lambda **options: problem.solve(True, **options),
        picture=lambda x: pictures.ordered(x, mrf.labels),
        shows=lambda x: pictures.ordered(x, mrf.labels),
        memory_limit=limit,
    )
    run(task, shared, out, write)


def _solve_graph(mrf: GraphMRF, out: pathlib.Path, shared: Shared) -> None:
    suffix = out.suffix.lower()
    if suffix not in (".mpe", ".npy"):
        raise ValueError(f"cannot write {shown(out)}: the labels of a graph go into .npy or .MPE")
    limit = plan_memory(int(mrf.label_counts.sum()), 1, 8, quiet=shared.quiet)
    sites = own_sites(mrf)
    problem = Problem(mrf, lambda x: x[:sites])

    def write(x: np.ndarray) -> str:
        if suffix == ".mpe":
            write_mpe(out, x, force=shared.force)
        else:
            with writing(out, force=shared.force) as temporary:
                write_npy(temporary, x)
        return f"{len(x)} sites, labels {x.min()} to {x.max()}"

    run(
        Task("solve", lambda **o: problem.solve(True, **o), picture=None, shows=None, memory_limit=limit),
        shared,
        out,
        write,
    )
