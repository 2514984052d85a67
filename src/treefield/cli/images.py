"""denoise, inpaint and segment: an image in, an image out."""

from __future__ import annotations

import pathlib
from typing import Annotated, Any

import numpy as np
import typer

from treefield.cli import pictures
from treefield.cli.batch import over_many
from treefield.cli.memory import plan_memory
from treefield.cli.options import Shared, shares_options
from treefield.cli.outcome import Task, run
from treefield.io import read_image, read_labels, write_image, write_labels
from treefield.io.files import shown
from treefield.io.images import WRITTEN, checked_format, checked_label_format, holds_alpha
from treefield.viz.report import Picture

In = Annotated[pathlib.Path, typer.Argument(metavar="IN", help="The image: PNG, JPEG, TIFF, PGM, PPM, PFM or NPY.")]
Out = Annotated[pathlib.Path, typer.Argument(metavar="OUT", help="The image to write; its suffix tells the format.")]
Levels = Annotated[int, typer.Option(help="How many intensities a pixel may have: fewer are faster.")]
Data = Annotated[str, typer.Option(help="The cost of differing from what was seen: squared or absolute.")]
Tau = Annotated[float | None, typer.Option(help="What that costs at most; from the noise if not given.")]
Smoothness = Annotated[str, typer.Option(help="The cost of differing from neighbours: linear, quadratic or potts.")]
Weight = Annotated[float | None, typer.Option(help="How much that costs; from the noise if not given.")]
Cutoff = Annotated[float, typer.Option(help="The difference, in steps of grey, from which on it costs no more.")]
MemoryLimit = Annotated[
    str | None,
    typer.Option(help="Such as 1GB: go tile by tile, for images larger than memory (TIFF, Zarr, NPY)."),
]
Sigma = Annotated[float | None, typer.Option(help="The noise in steps of grey (255); estimated if not given.")]


@shares_options
@over_many("image", kept=(*WRITTEN, ".zarr"))
def denoise(
    image: In,
    out: Out,
    levels: Levels = 256,
    data: Data = "squared",
    tau: Tau = None,
    smoothness: Smoothness = "linear",
    weight: Weight = None,
    cutoff: Cutoff = 100.0,
    sigma: Sigma = None,
    memory_limit: MemoryLimit = None,
    *,
    shared: Shared,
) -> dict[str, Any]:
    """Take Gaussian noise, salt and pepper, or both, from an image."""
    from treefield.apps.denoise import denoising
    from treefield.apps.restoration import Costs

    costs = Costs(data, tau, smoothness, weight, cutoff, sigma)
    if memory_limit is not None:
        from treefield.cli.large import denoise_large

        return denoise_large(image, out, levels, costs, memory_limit, shared)
    shared.check_outputs(out)
    colours, alpha, axis = pictures.split_alpha(read_image(image))
    limit = _plan(colours, levels, shared)
    problem = denoising(colours, levels=levels, costs=costs, channel_axis=axis)
    return _restore("denoise", problem, out, alpha, axis, shared, limit, pictures.grey_or_colour(colours, axis), image)


@shares_options
def inpaint(
    image: In,
    mask: Annotated[pathlib.Path, typer.Argument(metavar="MASK", help="An image: not black (0) where a hole is.")],
    out: Out,
    invert_mask: Annotated[bool, typer.Option("--invert-mask", help="Holes are where the mask is black.")] = False,
    denoise: Annotated[bool, typer.Option("--denoise", help="Take the noise from the rest at the same time.")] = False,
    levels: Levels = 256,
    data: Data = "squared",
    tau: Tau = None,
    smoothness: Smoothness = "quadratic",
    weight: Weight = None,
    cutoff: Cutoff = 60.0,
    sigma: Sigma = None,
    *,
    shared: Shared,
) -> None:
    """Fill the holes of an image."""
    from treefield.apps.inpaint import inpainting
    from treefield.apps.restoration import Costs

    costs = Costs(data, tau, smoothness, weight, cutoff, sigma)
    shared.check_outputs(out)
    colours, alpha, axis = pictures.split_alpha(read_image(image))
    hole = read_mask(mask, colours, axis) != invert_mask
    limit = _plan(colours, levels, shared)
    problem = inpainting(colours, hole, keep=not denoise, levels=levels, costs=costs, channel_axis=axis)
    before = pictures.masked(colours, axis, hole)
    _restore("inpaint", problem, out, alpha, axis, shared, limit, before, image)


def read_mask(path: pathlib.Path, image: np.ndarray, axis: int | None) -> np.ndarray:
    """A mask from a file, of an image's shape; of a mask in colours a pixel counts that is not black."""
    mask, _, channels = pictures.split_alpha(read_image(path))
    mask = mask != 0 if channels is None else np.any(mask != 0, axis=-1)
    shape = image.shape if axis is None else image.shape[:-1]
    if mask.shape != shape:
        raise ValueError(
            f"{shown(path)} has shape {mask.shape}, but the image's is {shape}: the mask must be of the same size"
        )
    return mask


def _plan(colours: np.ndarray, levels: int, shared: Shared) -> int | None:
    return plan_memory(colours.size, levels, 2 if colours.dtype.itemsize == 1 else 4, quiet=shared.quiet)


def _restore(
    title: str,
    problem: Any,
    out: pathlib.Path,
    alpha: np.ndarray | None,
    axis: int | None,
    shared: Shared,
    limit: int | None,
    before: np.ndarray,
    source: pathlib.Path,
) -> dict[str, Any]:
    kept = alpha if holds_alpha(out) else None

    def write(restored: np.ndarray) -> str:
        write_image(out, pictures.join_alpha(restored, kept, axis), force=shared.force)
        return "" if kept is alpha else "without its alpha channel"

    checked_format(out, pictures.join_alpha(problem.any_output(), kept, axis))
    task = Task(
        title,
        lambda **options: problem.solve(True, **options),
        picture=lambda x: pictures.grey_or_colour(problem.output(x), axis),
        shows=lambda restored: pictures.grey_or_colour(restored, axis),
        before=Picture(source.name, before),
        memory_limit=limit,
    )
    return run(task, shared, out, write)


@shares_options
def segment(
    image: In,
    out: Annotated[pathlib.Path, typer.Argument(metavar="OUT", help="The labels: PNG with a palette, TIFF or NPY.")],
    labels: Annotated[int, typer.Option(help="Into how many regions, by colour.")] = 2,
    seeds: Annotated[
        pathlib.Path | None, typer.Option(help="An image of labels: from 1 on where a label is known, 0 elsewhere.")
    ] = None,
    weight: Annotated[float, typer.Option(help="The cost of a border: more gives smoother ones.")] = 6.0,
    contrast: Annotated[float, typer.Option(help="How soon an edge makes a border cheap; 0 for never.")] = 0.5,
    spacing: Annotated[str | None, typer.Option(help="The size of a pixel along each axis: 2.5,1,1")] = None,
    *,
    shared: Shared,
) -> None:
    """Cut an image into regions of similar colour."""
    from treefield.apps.segment import segmenting

    shared.check_outputs(out)
    distances = None if spacing is None else numbers(spacing, "--spacing")
    colours, _, axis = pictures.split_alpha(read_image(image))
    known = labels if seeds is None else read_labels(seeds)
    sites = colours.size // (1 if axis is None else colours.shape[-1])
    number = labels if seeds is None else len(np.unique(known))
    limit = plan_memory(sites, number, 4, quiet=shared.quiet)
    problem = segmenting(
        colours, known, weight=weight, contrast=contrast, spacing=distances, channel_axis=axis, rng=shared.seed
    )

    checked_label_format(out, problem.any_output())

    def write(regions: np.ndarray) -> str:
        write_labels(out, regions, force=shared.force)
        return f"labels {regions.min()} to {regions.max()}"

    task = Task(
        "segment",
        lambda **options: problem.solve(True, **options),
        picture=lambda x: pictures.regions(problem.output(x)),
        shows=pictures.regions,
        before=Picture(image.name, pictures.grey_or_colour(colours, axis)),
        memory_limit=limit,
    )
    run(task, shared, out, write)


def numbers(text: str, name: str) -> list[float]:
    """Numbers with commas between them, or an error."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be numbers with commas between them, such as 2.5,1,1; got {text!r}") from None
