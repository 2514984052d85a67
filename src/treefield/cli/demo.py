"""demo: a noisy photograph, a stereo pair with known depth, and an Ising field."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from treefield.apps.pictures import psnr
from treefield.cli import pictures
from treefield.cli.compare import print_table
from treefield.cli.outcome import Task, check_folder, exit_if_interrupted, section, summary, write_page
from treefield.cli.streams import say
from treefield.cli.watch import Watch
from treefield.io import write_image
from treefield.io.files import shown
from treefield.results import MAPResult
from treefield.solvers.run import INTERRUPTED
from treefield.viz.report import Picture, Section

_NUM_DISPARITIES = 64
_SPINS = 300  # along each side


@dataclasses.dataclass
class Part:
    """A task of the demo whose answer is known."""

    task: Task
    error: Callable[[np.ndarray], str]
    truth: Picture | None
    seconds: float


def demo(
    out: Annotated[pathlib.Path, typer.Option(help="A folder for the pictures and the report.")] = pathlib.Path(
        "treefield-demo"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no table.")] = False,
) -> None:
    """Restore a noisy photograph, find the depth in a stereo pair, cool an Ising field; under a minute."""
    names = ("photograph", "motorcycle", "ising")
    files = [f"{name}-{which}.png" for name in names for which in ("before", "after")]
    check_folder(out, [*files, "report.html"], force=force)
    rows: list[dict[str, str]] = []
    pages: list[Section] = []
    for name, prepare in zip(names, (_photograph, _motorcycle, _ising), strict=True):
        part = prepare()
        answer, res, page = _run(part, quiet)
        out.mkdir(exist_ok=True)
        for which, picture in (("before", page.before), ("after", page.after)):
            if picture is not None:
                write_image(out / f"{name}-{which}.png", picture.pixels, force=force)
        rows.append(_row(part, answer, res))
        pages.append(page)
        if res.status == INTERRUPTED:
            break
    write_page(out / "report.html", "treefield: a demonstration", pages, force=force)
    if not quiet:
        print_table("", rows)
        say(f"\nOpen {shown(out / 'report.html')} in a browser; the pictures are beside it.")
    exit_if_interrupted(res)


def _run(part: Part, quiet: bool) -> tuple[np.ndarray, MAPResult, Section]:
    task = part.task
    with Watch(task.title, part.seconds, show=not quiet, keep=True) as watch:
        answer, res = task.solve(time_limit=part.seconds, rng=0, callback=watch)
    page = section(task, answer, res, watch)
    page.facts["error"] = part.error(answer)
    if part.truth is not None:
        page.more.append(part.truth)
    return answer, res, page


def _row(part: Part, answer: np.ndarray, res: MAPResult) -> dict[str, str]:
    facts = summary(res) | {"time": f"{res.trace['seconds'][-1]:.1f} s"}
    columns = ("energy", "lower bound", "gap", "time")
    return {"": part.task.title} | {name: facts.get(name, "") for name in columns} | {"error": part.error(answer)}


def _photographs() -> Any:
    try:
        from skimage import data
    except ImportError as error:
        raise ImportError('the demo\'s photographs need scikit-image: pip install "treefield[demo]"') from error
    return data


def _photograph() -> Part:
    """A cameraman with Gaussian noise and salt and pepper."""
    from treefield.apps.denoise import denoising

    clean = _photographs().camera()
    rng = np.random.default_rng(0)
    noisy = np.clip(np.round(rng.normal(clean, 10)), 0, 255).astype(np.uint8)
    dice = rng.random(clean.shape)
    noisy[dice < 0.05], noisy[dice > 0.95] = 0, 255
    problem = denoising(noisy)

    def error(restored: np.ndarray) -> str:
        return f"PSNR {psnr(noisy, clean):.1f} -> {psnr(restored, clean):.1f} dB"

    task = Task(
        "denoise: a photograph",
        lambda **options: problem.solve(True, **options),
        picture=problem.output,
        shows=lambda restored: restored,
        before=Picture("with Gaussian noise (10) and 10 % salt and pepper", noisy),
    )
    return Part(task, error, Picture("the truth", clean), 5.0)


def _motorcycle() -> Part:
    """Middlebury's motorcycle, with its measured disparities."""
    import treefield as tf

    left, right, truth = _photographs().stereo_motorcycle()
    left, right = left[..., :3], right[..., :3]
    known = np.isfinite(truth) & (truth > 0)

    def error(disparity: np.ndarray) -> str:
        return f"{np.mean(np.abs(disparity - truth)[known] > 1):.1%} of pixels off by more than 1"

    def colours(disparity: np.ndarray) -> np.ndarray:
        return pictures.depths(disparity.astype(np.float32), 0, _NUM_DISPARITIES)

    task = Task(
        "stereo: a motorcycle",
        lambda **options: tf.stereo(
            left, right, num_disparities=_NUM_DISPARITIES, channel_axis=-1, full_output=True, **options
        ),
        picture=colours,
        shows=colours,
        before=Picture("the left image", left),
    )
    return Part(task, error, Picture("the truth (black: not known)", colours(np.where(known, truth, np.nan))), 5.0)


def _ising() -> Part:
    """The paper's Ising field: fields and couplings between -1 and 1."""
    from treefield.apps.ising import ising_problem

    rng = np.random.default_rng(0)
    n = _SPINS
    fields = rng.uniform(-1, 1, (n, n)).astype(np.float32)
    problem = ising_problem(fields, [rng.uniform(-1, 1, s).astype(np.float32) for s in ((n - 1, n), (n, n - 1))])
    task = Task(
        "ising: a spin glass",
        lambda **options: problem.solve(True, **options),
        picture=lambda x: pictures.ordered(x, 2),
        shows=lambda spins: pictures.ordered(spins + 1, 3),
        before=Picture("each spin alone", pictures.ordered((fields < 0).astype(np.int32), 2)),
    )
    return Part(task, lambda spins: "not known: no method proves it", None, 2.0)
