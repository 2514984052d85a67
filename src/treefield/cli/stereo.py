"""stereo: two images in, a disparity map out."""

from __future__ import annotations

import pathlib
from typing import Annotated, Any

import numpy as np
import typer

from treefield.cli import pictures
from treefield.cli.memory import plan_memory
from treefield.cli.options import Shared, shares_options
from treefield.cli.outcome import Task, run
from treefield.io import read_image, write_image
from treefield.viz.report import Picture

_HOLDS_NUMBERS = (".npy", ".npz", ".tif", ".tiff", ".pfm")


@shares_options
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
) -> None:
    """Find the depth in a rectified stereo pair."""
    import treefield as tf

    shared.check_outputs(out)
    if min_disparity < 0 and out.suffix.lower() not in _HOLDS_NUMBERS:
        raise ValueError(f"{out} cannot hold negative disparities: write .npy, .tif or .pfm")
    pair, axes = [], []
    for path in (left, right):
        image, _, axis = pictures.split_alpha(read_image(path))
        pair.append(image)
        axes.append(axis)
    if pair[0].shape != pair[1].shape:
        raise ValueError(f"{left} has shape {pair[0].shape}, but {right} has {pair[1].shape}: they must be alike")
    given: dict[str, Any] = {"cost": cost, "smoothness": smoothness, "weight": weight, "cutoff": cutoff}
    given |= {"num_disparities": num_disparities, "min_disparity": min_disparity, "channel_axis": axes[0]}
    given |= {"contrast": contrast, "contrast_factor": contrast_factor, "subpixel": subpixel, "occlusion": occlusion}
    if mask is not None:
        given["mask"] = read_image(mask)
    sites = int(np.prod(pair[0].shape[:2]))
    limit = plan_memory(sites, max(num_disparities, 1), 1 if cost == "census" else 4, quiet=shared.quiet)

    def write(disparity: np.ndarray) -> str:
        return write_disparities(out, disparity, scale, min_disparity + num_disparities - 1, shared.force)

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
    run(task, shared, out, write)


def write_disparities(
    path: pathlib.Path, disparity: np.ndarray, scale: float | None, greatest: int, force: bool
) -> str:
    """Disparities as a file: as they are, or times a scale where the format holds whole numbers; says which."""
    if path.suffix.lower() in _HOLDS_NUMBERS:
        write_image(path, disparity.astype(np.float32), force=force)
        return "disparities as they are"
    if scale is None:
        scale = max(1, 255 // max(greatest, 1))
    scaled = np.round(np.nan_to_num(disparity.astype(np.float64), nan=0.0) * scale)
    if not 0 < scale < np.inf or scaled.max() > 65535:
        raise ValueError(f"--scale must be above 0 and leave disparities below 65536, got {scale:g}")
    write_image(path, scaled.astype(np.uint8 if scaled.max() < 256 else np.uint16), force=force)
    return f"disparities times {scale:g}"
