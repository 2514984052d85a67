"""The command demo: a noisy photograph, a stereo pair with known depth, and an Ising field."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
from collections.abc import Callable
from typing import Annotated, Protocol

import numpy as np
import typer

from treefield.cli.previews import draw_disparities, draw_shades
from treefield.cli.progress_display import SearchDisplay
from treefield.cli.reporting import Task, check_folder, exit_if_interrupted, summary_facts, task_section, write_page
from treefield.cli.streams import say
from treefield.cli.tables import print_table
from treefield.io import write_image
from treefield.io.paths import as_text
from treefield.report.page import Picture, Section
from treefield.results import MAPResult, Status

_NUM_DISPARITIES = 64
_SPINS = 300  # along each side


@dataclasses.dataclass
class DemoTask:
    """A task of the demo, the error of its answer as text, and the truth if it is known."""

    task: Task
    error: Callable[[np.ndarray], str]
    truth: Picture | None
    seconds: float


def demo(
    out: Annotated[pathlib.Path, typer.Option(help="The folder for the pictures and the report.")] = pathlib.Path(
        "treefield-demo"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no table.")] = False,
) -> None:
    """Restore a photograph, match a stereo pair, cool a spin glass.

    It takes under a minute.
    """
    names = ("photograph", "motorcycle", "ising")
    files = [f"{name}-{which}.png" for name in names for which in ("before", "after")]
    check_folder(out, [*files, "report.html"], force=force)
    rows: list[dict[str, str]] = []
    pages: list[Section] = []
    for name, prepare in zip(names, (_photograph, _motorcycle, _ising), strict=True):
        part = prepare()
        answer, res, page = _run_task(part, quiet)
        out.mkdir(exist_ok=True)
        for which, picture in (("before", page.before), ("after", page.after)):
            if picture is not None:
                write_image(out / f"{name}-{which}.png", picture.pixels, force=force)
        rows.append(_row(part, answer, res))
        pages.append(page)
        if res.status == Status.INTERRUPTED:
            break
    write_page(out / "report.html", "treefield: a demonstration", pages, force=force)
    if not quiet:
        print_table("", rows)
        say(f"\nOpen {as_text(out / 'report.html')} in a browser; the pictures are in the same folder.")
    exit_if_interrupted(res)


def _run_task(part: DemoTask, quiet: bool) -> tuple[np.ndarray, MAPResult, Section]:
    task = part.task
    with SearchDisplay(task.title, part.seconds, show=not quiet, keep=True) as display:
        answer, res = task.solve(time_limit=part.seconds, rng=0, callback=display)
    page = task_section(task, answer, res, display)
    page.facts["error"] = part.error(answer)
    if part.truth is not None:
        page.more.append(part.truth)
    return answer, res, page


def _row(part: DemoTask, answer: np.ndarray, res: MAPResult) -> dict[str, str]:
    facts = summary_facts(res) | {"time": f"{res.trace['seconds'][-1]:.1f} s"}
    columns = ("energy", "lower bound", "gap", "time")
    return {"": part.task.title} | {name: facts.get(name, "") for name in columns} | {"error": part.error(answer)}


class _ExampleImages(Protocol):
    """The part of skimage.data that is used."""

    def camera(self) -> np.ndarray: ...
    def stereo_motorcycle(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...


def _example_images() -> _ExampleImages:
    try:
        data: _ExampleImages = importlib.import_module("skimage.data")
    except ImportError as error:
        raise ImportError('the demo\'s photographs need scikit-image: pip install "treefield[demo]"') from error
    return data


def _photograph() -> DemoTask:
    """A cameraman with Gaussian noise and salt and pepper."""
    from treefield.apps.denoise import denoise_problem

    clean = _example_images().camera()
    rng = np.random.default_rng(0)
    noisy = np.clip(np.round(rng.normal(clean, 10)), 0, 255).astype(np.uint8)
    dice = rng.random(clean.shape)
    noisy[dice < 0.05], noisy[dice > 0.95] = 0, 255
    problem = denoise_problem(noisy)

    def error(restored: np.ndarray) -> str:
        from skimage.metrics import peak_signal_noise_ratio

        before, after = (peak_signal_noise_ratio(clean, image, data_range=255) for image in (noisy, restored))
        return f"PSNR {before:.1f} -> {after:.1f} dB"

    task = Task(
        "denoise: a photograph",
        lambda **options: problem.solve(True, **options),
        draw_labels=problem.output,
        draw_answer=lambda restored: restored,
        before=Picture("with Gaussian noise (10) and 10 % salt and pepper", noisy),
    )
    return DemoTask(task, error, Picture("the truth", clean), 5.0)


def _motorcycle() -> DemoTask:
    """Middlebury's motorcycle, with its measured disparities."""
    import treefield as tf

    left, right, truth = _example_images().stereo_motorcycle()
    left, right = left[..., :3], right[..., :3]
    known = np.isfinite(truth) & (truth > 0)

    def error(disparity: np.ndarray) -> str:
        return f"{np.mean(np.abs(disparity - truth)[known] > 1):.1%} of pixels off by more than 1"

    def draw(disparity: np.ndarray) -> np.ndarray:
        return draw_disparities(disparity.astype(np.float32), 0, _NUM_DISPARITIES)

    task = Task(
        "stereo: a motorcycle",
        lambda **options: tf.stereo(
            left, right, num_disparities=_NUM_DISPARITIES, channel_axis=-1, full_output=True, **options
        ),
        draw_labels=draw,
        draw_answer=draw,
        before=Picture("the left image", left),
    )
    return DemoTask(task, error, Picture("the truth (black: not known)", draw(np.where(known, truth, np.nan))), 5.0)


def _ising() -> DemoTask:
    """The paper's Ising field: fields and couplings between -1 and 1."""
    from treefield.apps.ising import ising_problem

    rng = np.random.default_rng(0)
    n = _SPINS
    fields = rng.uniform(-1, 1, (n, n)).astype(np.float32)
    problem = ising_problem(fields, [rng.uniform(-1, 1, s).astype(np.float32) for s in ((n - 1, n), (n, n - 1))])
    task = Task(
        "ising: a spin glass",
        lambda **options: problem.solve(True, **options),
        draw_labels=lambda x: draw_shades(x, 2),
        draw_answer=lambda spins: draw_shades(spins + 1, 3),
        before=Picture("each spin alone", draw_shades((fields < 0).astype(np.int32), 2)),
    )
    return DemoTask(task, lambda spins: "not known: no method proves it", None, 2.0)
