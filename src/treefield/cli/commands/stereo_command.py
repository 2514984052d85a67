"""The command stereo."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Annotated, cast

import numpy as np
import typer

from treefield.apps.keywords import MatchingCost, Occlusion, Smoothness, StereoKeywords
from treefield.cli.input_images import read_mask, split_alpha
from treefield.cli.many_images import over_many
from treefield.cli.options import ModelMemory, Shared, shares_options
from treefield.cli.previews import draw_disparities, draw_image
from treefield.cli.reporting import Summary, Task, run_task
from treefield.io import read_image, write_image
from treefield.io.images.image_formats import as_writable_image
from treefield.io.paths import as_text
from treefield.report.page import Picture

_HOLDS_NUMBERS = (".npy", ".npz", ".tif", ".tiff", ".pfm")


@shares_options
@over_many("left", "right", kept=(*_HOLDS_NUMBERS, ".png", ".pgm"))
def stereo(
    left: Annotated[pathlib.Path, typer.Argument(metavar="LEFT", help="The left image of a rectified pair.")],
    right: Annotated[pathlib.Path, typer.Argument(metavar="RIGHT", help="The right image of the pair.")],
    out: Annotated[
        pathlib.Path,
        typer.Argument(metavar="OUT", help="Disparities: as they are in NPY, TIFF and PFM; times --scale in PNG."),
    ],
    num_disparities: Annotated[int, typer.Option(help="Number of disparities.")],
    min_disparity: Annotated[int, typer.Option(help="The smallest of them.")] = 0,
    cost: Annotated[
        str, typer.Option(help="The cost of matching two pixels: census, birchfield-tomasi, absolute, squared.")
    ] = "census",
    smoothness: Annotated[
        str, typer.Option(help="The cost of differing from neighbours: linear, quadratic or potts.")
    ] = "linear",
    weight: Annotated[
        float | None, typer.Option(help="The factor, in the units of --cost: bits for census, else the image's units.")
    ] = None,
    cutoff: Annotated[float, typer.Option(help="The difference, in pixels, beyond which that cost is constant.")] = 4.0,
    contrast: Annotated[
        float | None,
        typer.Option(
            help="Neighbours that differ by less count as one surface; in the image's units: 0..255 in 8 bits."
        ),
    ] = None,
    contrast_factor: Annotated[float, typer.Option(help="The factor of the weight within one surface.")] = 3.0,
    mask: Annotated[
        pathlib.Path | None, typer.Option(help="An image that is black (0) where LEFT is not to be trusted.")
    ] = None,
    subpixel: Annotated[bool, typer.Option("--subpixel", help="Refine disparities to fractions.")] = False,
    occlusion: Annotated[
        str, typer.Option(help="Where the two views disagree: keep the disparity, mark (NaN, 0 in PNG) or fill.")
    ] = "keep",
    scale: Annotated[float | None, typer.Option(help="The factor for PNG [the largest becomes white].")] = None,
    memory_limit: ModelMemory = None,
    *,
    shared: Shared,
) -> Summary:
    """Find the depth in a rectified stereo pair."""
    import treefield as tf

    shared.check_outputs(out)
    if min_disparity < 0 and out.suffix.lower() not in _HOLDS_NUMBERS:
        raise ValueError(f"{as_text(out)} cannot hold negative disparities: write .npy, .tif or .pfm")
    pair, axes = [], []
    for path in (left, right):
        image, _, axis = split_alpha(read_image(path))
        pair.append(image)
        axes.append(axis)
    if pair[0].shape != pair[1].shape:
        raise ValueError(
            f"{as_text(left)} has shape {pair[0].shape}, but {as_text(right)} has {pair[1].shape}: they must be alike"
        )
    given: StereoKeywords = {
        "num_disparities": num_disparities,
        "min_disparity": min_disparity,
        "cost": cast(MatchingCost, cost),  # `stereo` checks these
        "smoothness": cast(Smoothness, smoothness),
        "weight": weight,
        "cutoff": cutoff,
        "contrast": contrast,
        "contrast_factor": contrast_factor,
        "subpixel": subpixel,
        "occlusion": cast(Occlusion, occlusion),
        "channel_axis": axes[0],
        "memory_limit": memory_limit,
    }
    if mask is not None:
        given["mask"] = read_mask(mask, pair[0], axes[0])
    greatest = min_disparity + num_disparities - 1
    stored, note = _storage_format(out, scale, greatest)

    def write(disparity: np.ndarray) -> str:
        write_image(out, stored(disparity), force=shared.force)
        return note

    as_writable_image(out, stored(np.full(pair[0].shape[:2], greatest)))

    def colours(disparity: np.ndarray) -> np.ndarray:
        return draw_disparities(disparity.astype(np.float32), min_disparity, num_disparities)

    task = Task(
        "stereo",
        lambda **options: tf.stereo(pair[0], pair[1], **given, **options, full_output=True),
        draw_labels=lambda x: colours(x + min_disparity),
        draw_answer=colours,
        before=Picture(left.name, draw_image(pair[0], axes[0])),
    )
    return run_task(task, shared, out, write)


def _storage_format(
    path: pathlib.Path, scale: float | None, greatest: int
) -> tuple[Callable[[np.ndarray], np.ndarray], str]:
    """The function that converts disparities for a file, and a note on it: formats of whole numbers hold them times a
    scale, the others unchanged."""
    if path.suffix.lower() in _HOLDS_NUMBERS:
        return lambda disparity: disparity.astype(np.float32), "disparities as they are"
    factor = max(1, 255 // max(greatest, 1)) if scale is None else scale
    if not (0 < factor < np.inf and greatest * factor < 65535.5):
        raise ValueError(f"--scale must be above 0 and leave disparities below 65536, got {factor:g}")
    dtype = np.uint8 if greatest * factor < 255.5 else np.uint16

    def stored(disparity: np.ndarray) -> np.ndarray:
        return np.round(np.nan_to_num(disparity.astype(np.float64), nan=0.0) * factor).astype(dtype)

    return stored, f"disparities times {factor:g}"
