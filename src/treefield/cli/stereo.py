"""stereo: two images in, a disparity map out."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from treefield.cli import pictures
from treefield.cli.batch import over_many
from treefield.cli.images import read_mask
from treefield.cli.memory import plan_memory
from treefield.cli.options import Shared, shares_options
from treefield.cli.outcome import Task, run
from treefield.io import read_image, write_image
from treefield.io.files import shown
from treefield.io.images import checked_format
from treefield.viz.report import Picture

_HOLDS_NUMBERS = (".npy", ".npz", ".tif", ".tiff", ".pfm")


@shares_options
@over_many("left", "right", kept=(*_HOLDS_NUMBERS, ".png", ".pgm"))
def stereo(
    left: Annotated[pathlib.Path, typer.Argument(metavar="LEFT", help="The left image of a rectified pair.")],
    right: Annotated[pathlib.Path, typer.Argument(metavar="RIGHT", help="The right one.")],
    out: Annotated[
        pathlib.Path,
        typer.Argument(metavar="OUT", help="Disparities: as they are in NPY, TIFF and PFM; times --scale in PNG."),
    ],
    num_disparities: Annotated[int, typer.Option(help="How many disparities to look at.")],
    min_disparity: Annotated[int, typer.Option(help="The least of them.")] = 0,
    cost: Annotated[
        str, typer.Option(help="How pixels are compared: census, birchfield-tomasi, absolute, squared.")
    ] = "census",
    smoothness: Annotated[str, typer.Option(help="What neighbours cost: linear, quadratic or potts.")] = "linear",
    weight: Annotated[float | None, typer.Option(help="How much; the default suits --cost.")] = None,
    cutoff: Annotated[float, typer.Option(help="The difference of disparities from which on it costs no more.")] = 4.0,
    contrast: Annotated[float, typer.Option(help="Neighbours nearer than this, in steps of grey, are alike,")] = 8.0,
    contrast_factor: Annotated[float, typer.Option(help="and so many times more strongly tied.")] = 3.0,
    mask: Annotated[
        pathlib.Path | None, typer.Option(help="An image: black (0) where LEFT is not to be trusted.")
    ] = None,
    subpixel: Annotated[bool, typer.Option("--subpixel", help="Refine disparities to fractions.")] = False,
    occlusion: Annotated[
        str, typer.Option(help="Where the two views disagree: keep the disparity, mark (NaN, 0 in PNG) or fill.")
    ] = "keep",
    scale: Annotated[float | None, typer.Option(help="For PNG: so that the greatest is white, if not given.")] = None,
    *,
    shared: Shared,
) -> dict[str, Any]:
    """Find the depth in a rectified stereo pair."""
    import treefield as tf

    shared.check_outputs(out)
    if min_disparity < 0 and out.suffix.lower() not in _HOLDS_NUMBERS:
        raise ValueError(f"{shown(out)} cannot hold negative disparities: write .npy, .tif or .pfm")
    pair, axes = [], []
    for path in (left, right):
        image, _, axis = pictures.split_alpha(read_image(path))
        pair.append(image)
        axes.append(axis)
    if pair[0].shape != pair[1].shape:
        raise ValueError(
            f"{shown(left)} has shape {pair[0].shape}, but {shown(right)} has {pair[1].shape}: they must be alike"
        )
    given: dict[str, Any] = {"cost": cost, "smoothness": smoothness, "weight": weight, "cutoff": cutoff}
    given |= {"num_disparities": num_disparities, "min_disparity": min_disparity, "channel_axis": axes[0]}
    given |= {"contrast": contrast, "contrast_factor": contrast_factor, "subpixel": subpixel, "occlusion": occlusion}
    if mask is not None:
        given["mask"] = read_mask(mask, pair[0], axes[0])
    sites = int(np.prod(pair[0].shape[:2]))
    limit = plan_memory(sites, max(num_disparities, 1), 1 if cost == "census" else 4, quiet=shared.quiet)

    greatest = min_disparity + num_disparities - 1
    stored, note = storing(out, scale, greatest)

    def write(disparity: np.ndarray) -> str:
        write_image(out, stored(disparity), force=shared.force)
        return note

    checked_format(out, stored(np.full(pair[0].shape[:2], greatest)))

    def colours(disparity: np.ndarray) -> np.ndarray:
        return pictures.depths(disparity.astype(np.float32), min_disparity, num_disparities)

    task = Task(
        "stereo",
        lambda **options: tf.stereo(pair[0], pair[1], **given, **options, full_output=True),
        picture=lambda x: colours(x + min_disparity),
        shows=colours,
        before=Picture(left.name, pictures.grey_or_colour(pair[0], axes[0])),
        memory_limit=limit,
    )
    return run(task, shared, out, write)


def storing(path: pathlib.Path, scale: float | None, greatest: int) -> tuple[Callable[[np.ndarray], np.ndarray], str]:
    """How disparities are put into a file: as they are, or times a scale where the format holds whole numbers; and that
    in words."""
    if path.suffix.lower() in _HOLDS_NUMBERS:
        return lambda disparity: disparity.astype(np.float32), "disparities as they are"
    factor = max(1, 255 // max(greatest, 1)) if scale is None else scale
    if not (0 < factor < np.inf and greatest * factor < 65535.5):
        raise ValueError(f"--scale must be above 0 and leave disparities below 65536, got {factor:g}")
    dtype = np.uint8 if greatest * factor < 255.5 else np.uint16

    def stored(disparity: np.ndarray) -> np.ndarray:
        return np.round(np.nan_to_num(disparity.astype(np.float64), nan=0.0) * factor).astype(dtype)

    return stored, f"disparities times {factor:g}"
