"""The commands denoise and inpaint."""

from __future__ import annotations

import pathlib
from typing import Annotated

import numpy as np
import typer

from treefield.apps.large_denoising import LargeDenoising
from treefield.apps.problem import Problem
from treefield.cli.input_images import join_alpha, read_mask, split_alpha
from treefield.cli.many_images import over_many
from treefield.cli.memory_plan import plan_memory
from treefield.cli.options import ModelMemory, Shared, shares_options
from treefield.cli.previews import draw_image, draw_masked
from treefield.cli.reporting import Summary, Task, run_task
from treefield.io import read_image, write_image
from treefield.io.images.image_formats import WRITABLE_SUFFIXES, as_writable_image, has_alpha
from treefield.models.grid import GridMRF
from treefield.report.page import Picture

In = Annotated[pathlib.Path, typer.Argument(metavar="IN", help="The image: PNG, JPEG, TIFF, PGM, PPM, PFM or NPY.")]
Out = Annotated[pathlib.Path, typer.Argument(metavar="OUT", help="The image to write, in the format of its suffix.")]
Levels = Annotated[int, typer.Option(help="Number of intensities; fewer are faster.")]
DenoiseLevels = Annotated[int | None, typer.Option(help="Number of intensities; fewer are faster [from the noise].")]
DenoiseData = Annotated[
    str | None,
    typer.Option(
        help="The data cost: patches (squared distance from the mean of similar patches), squared or absolute "
        "(distance from the observed value) [squared where there is salt and pepper, otherwise patches]."
    ),
]
Data = Annotated[
    str | None,
    typer.Option(help="The cost of differing by d from the observed value: squared (d**2) or absolute (d) [squared]."),
]
Tau = Annotated[
    float | None,
    typer.Option(help="The maximum of that cost, in the image's units (squared) [from the noise]."),
]
Smoothness = Annotated[str, typer.Option(help="The cost of differing from neighbours: linear, quadratic or potts.")]
Weight = Annotated[float | None, typer.Option(help="The factor of that cost [from the noise].")]
Cutoff = Annotated[
    float | None,
    typer.Option(help="The difference beyond which that cost is constant, in the image's units: 0..255 in 8 bits."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(help="Search tile by tile within this memory, such as 1GB, for large TIFF, Zarr and NPY images."),
]
Sigma = Annotated[
    float | None,
    typer.Option(help="Standard deviation of the noise, in the image's units: 0..255 in 8 bits [estimated]."),
]


@shares_options
@over_many("image", kept=(*WRITABLE_SUFFIXES, ".zarr"))
def denoise(
    image: In,
    out: Out,
    levels: DenoiseLevels = None,
    data: DenoiseData = None,
    tau: Tau = None,
    smoothness: Smoothness = "linear",
    weight: Weight = None,
    cutoff: Cutoff = None,
    sigma: Sigma = None,
    memory_limit: MemoryLimit = None,
    *,
    shared: Shared,
) -> Summary:
    """Take Gaussian noise, salt and pepper, or both, from an image."""
    from treefield.apps.denoise import plan_denoising
    from treefield.apps.restoration import Costs

    costs = Costs(data, tau, smoothness, weight, cutoff, sigma)
    if memory_limit is not None:
        from treefield.cli.commands.denoise_by_tiles import denoise_by_tiles

        return denoise_by_tiles(image, out, levels, costs, memory_limit, shared)
    shared.check_outputs(out)
    colours, alpha, axis = split_alpha(read_image(image))
    needs_model = shared.save_model is not None  # in memory
    search = {"method": "trw" if needs_model else shared.method, "time_limit": shared.time_limit}
    problem = plan_denoising(colours, levels, costs, axis, None, search)
    limit = None
    if isinstance(problem, Problem):
        limit = plan_memory(problem.mrf.size, problem.mrf.n_labels, problem.mrf.unary.itemsize, quiet=shared.quiet)
    return _restore("denoise", problem, out, alpha, axis, shared, limit, draw_image(colours, axis), image)


@shares_options
def inpaint(
    image: In,
    mask: Annotated[pathlib.Path, typer.Argument(metavar="MASK", help="An image that is not black (0) in the holes.")],
    out: Out,
    invert_mask: Annotated[bool, typer.Option("--invert-mask", help="The holes are black in the mask.")] = False,
    denoise: Annotated[bool, typer.Option("--denoise", help="Also take the noise from the rest of the image.")] = False,
    levels: Levels = 256,
    data: Data = None,
    tau: Tau = None,
    smoothness: Smoothness = "quadratic",
    weight: Weight = None,
    cutoff: Cutoff = None,
    sigma: Sigma = None,
    memory_limit: ModelMemory = None,
    *,
    shared: Shared,
) -> None:
    """Fill the holes of an image."""
    from treefield.apps.inpaint import inpaint_problem
    from treefield.apps.restoration import Costs

    costs = Costs(data, tau, smoothness, weight, cutoff, sigma)
    shared.check_outputs(out)
    colours, alpha, axis = split_alpha(read_image(image))
    hole = read_mask(mask, colours, axis) != invert_mask
    problem = inpaint_problem(
        colours,
        hole,
        keep_known=not denoise,
        levels=levels,
        costs=costs,
        channel_axis=axis,
        memory_limit=memory_limit,
    )
    before = draw_masked(colours, axis, hole)
    _restore("inpaint", problem, out, alpha, axis, shared, None, before, image)


def _restore(
    title: str,
    problem: Problem[GridMRF] | LargeDenoising,
    out: pathlib.Path,
    alpha: np.ndarray | None,
    axis: int | None,
    shared: Shared,
    limit: int | None,
    before: np.ndarray,
    source: pathlib.Path,
) -> Summary:
    kept = alpha if has_alpha(out) else None

    def write(restored: np.ndarray) -> str:
        write_image(out, join_alpha(restored, kept, axis), force=shared.force)
        return "" if kept is alpha else "without its alpha channel"

    as_writable_image(out, join_alpha(problem.example_output(), kept, axis))
    draw_labels = None
    if isinstance(problem, Problem):
        to_image = problem.output
        draw_labels = lambda x: draw_image(to_image(x), axis)  # noqa: E731
    task = Task(
        title,
        lambda **options: problem.solve(True, **options),
        draw_labels=draw_labels,
        draw_answer=lambda restored: draw_image(restored, axis),
        before=Picture(source.name, before),
        memory_limit=limit,
    )
    return run_task(task, shared, out, write)
