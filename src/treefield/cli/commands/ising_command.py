"""The command ising."""

from __future__ import annotations

import pathlib
from typing import Annotated

import numpy as np
import typer

from treefield.cli.memory_plan import plan_memory
from treefield.cli.options import Shared, shares_options
from treefield.cli.previews import draw_image, draw_shades
from treefield.cli.reporting import Task, run_task
from treefield.io import read_image, write_image
from treefield.io.files import explain_read_errors
from treefield.io.images.image_formats import as_writable_image
from treefield.io.numpy_files import read_npz
from treefield.io.paths import as_input_path, as_text
from treefield.report.page import Picture


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
    """Find spins of low energy on a grid.

    The energy is the sum of h_i s_i over spins and of J_ij s_i s_j over neighbours.
    """
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

    as_writable_image(out, stored(problem.example_output()))

    def shade(spins: np.ndarray) -> np.ndarray:
        return draw_shades(np.atleast_2d(spins + 1), 3)

    task = Task(
        "ising",
        lambda **options: problem.solve(True, **options),
        draw_labels=lambda x: shade(problem.output(x)),
        draw_answer=shade,
        before=Picture("fields", draw_image(np.atleast_2d(h), None)),
        memory_limit=limit,
    )
    run_task(task, shared, out, write)


def read_ising(path: pathlib.Path, coupling: float | None) -> tuple[np.ndarray, float | list[np.ndarray]]:
    """Read fields and couplings from a file."""
    if path.suffix.lower() != ".npz":
        if coupling is None:
            raise ValueError(
                f"{as_text(path)} holds fields alone: give --coupling, or an .npz file with fields and couplings_0, ..."
            )
        return read_image(path), coupling
    with explain_read_errors(as_input_path(path), "a file of fields and couplings"):
        arrays = read_npz(path, lambda names: [name for name in names if name.startswith(("fields", "couplings_"))])
        if "fields" not in arrays:
            raise ValueError("it has no array named fields")
    h = arrays["fields"]
    names = [f"couplings_{axis}" for axis in range(h.ndim)]
    present = [name for name in names if name in arrays]
    if present and coupling is not None:
        raise ValueError(f"{as_text(path)} holds couplings: leave --coupling out")
    if coupling is not None:
        return h, coupling
    if present != names:
        raise ValueError(
            f"{as_text(path)} needs the arrays {', '.join(names)}, or --coupling; it has {', '.join(arrays)}"
        )
    return h, [arrays[name] for name in names]
