"""The command segment."""

from __future__ import annotations

import pathlib
from typing import Annotated, Literal, cast

import numpy as np
import typer

from treefield.cli.input_images import split_alpha
from treefield.cli.options import ModelMemory, Shared, shares_options
from treefield.cli.previews import draw_image, draw_regions
from treefield.cli.reporting import Task, run_task
from treefield.io import read_image, write_labels
from treefield.io.images.image_formats import as_writable_labels, read_seeds
from treefield.report.page import Picture


@shares_options
def segment(
    image: Annotated[
        pathlib.Path, typer.Argument(metavar="IN", help="The image: PNG, JPEG, TIFF, PGM, PPM, PFM or NPY.")
    ],
    out: Annotated[pathlib.Path, typer.Argument(metavar="OUT", help="The labels: PNG with a palette, TIFF or NPY.")],
    labels: Annotated[int, typer.Option(help="Number of regions, found by colour.")] = 2,
    seeds: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="An image of the known labels: strokes, each colour a label, on black or transparent ground; or grey "
            "or palette values 1, 2, ..., and 0 elsewhere."
        ),
    ] = None,
    weight: Annotated[float, typer.Option(help="The cost of a border in nats; more makes borders smoother.")] = 6.0,
    contrast: Annotated[float, typer.Option(help="How much an edge lowers the cost of a border; 0: not at all.")] = 0.5,
    connectivity: Annotated[int, typer.Option(help="1: neighbours along the axes; 2: diagonal ones as well.")] = 1,
    spacing: Annotated[str | None, typer.Option(help="The size of a pixel along each axis: 2.5,1,1")] = None,
    memory_limit: ModelMemory = None,
    *,
    shared: Shared,
) -> None:
    """Cut an image into regions of similar colour."""
    from treefield.apps.segment import segment_problem

    shared.check_outputs(out)
    distances = None if spacing is None else _parse_numbers(spacing, "--spacing")
    colours, _, axis = split_alpha(read_image(image))
    known, strokes = (labels, {}) if seeds is None else read_seeds(seeds)
    problem = segment_problem(
        colours,
        known,
        weight=weight,
        contrast=contrast,
        spacing=distances,
        connectivity=cast(Literal[1, 2], connectivity),
        channel_axis=axis,
        rng=shared.seed,
        memory_limit=memory_limit,
    )

    as_writable_labels(out, problem.example_output())

    def write(regions: np.ndarray) -> str:
        write_labels(out, regions, force=shared.force)
        return f"labels {regions.min()} to {regions.max()}"

    task = Task(
        "segment",
        lambda **options: problem.solve(True, **options),
        draw_labels=lambda x: draw_regions(problem.output(x)),
        draw_answer=draw_regions,
        before=Picture(image.name, draw_image(colours, axis)),
        facts=_describe(strokes),
    )
    run_task(task, shared, out, write)


def _describe(strokes: dict[str, int]) -> dict[str, str]:
    """Which colour of the strokes is which label, and its number of pixels."""
    parts = [f"{colour} is {label} ({count} pixels)" for label, (colour, count) in enumerate(strokes.items(), 1)]
    return {"seeds": ", ".join(parts)} if parts else {}


def _parse_numbers(text: str, name: str) -> list[float]:
    """Parse numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be numbers separated by commas, such as 2.5,1,1; got {text!r}") from None
