"""Figure 8: Penguin restored."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from treefield_reproduce.datasets import NoisyImage
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.methods import BELIEFS, METHODS
from treefield_reproduce.plotting import draw_curves, draw_pictures, legend_below, new_figure, zoom
from treefield_reproduce.problems import DENOISING_CUTOFF, DENOISING_WEIGHT, denoising_field
from treefield_reproduce.runner import Runner
from treefield_reproduce.summaries import MethodSummary, Row, excess_over_bound, format_percent, missing_peer_notes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATIENCE = 5  # "Algorithms stop after 5 unsuccessful iterations"


def experiment(runner: Runner) -> Experiment:
    """Run T-ILS and loopy BP until they gain nothing, and other methods for comparison."""
    denoise = Experiment("denoise", runner)
    image = runner.datasets.image
    summaries, bound = _run_methods(denoise, runner, image)
    height, width = image.noisy.shape
    denoise.add_section(
        f"Denoising: {image.name}, {width} x {height}, 256 labels",
        [
            f"min(|x - y|, {DENOISING_CUTOFF}) and Potts {DENOISING_WEIGHT:g}. As in the paper, T-ILS and loopy BP "
            f"start from a random labelling and stop after {PATIENCE} iterations without a new best; both use messages "
            "that cost O(L) for Potts. The paper shows pictures and a bar of running times and says that T-ILS is "
            "faster, lower in energy and smoother; it gives no numbers.",
            f"T-ILS (best) and minimize have {runner.effort.seconds:g} s. Energies of random searches are medians of "
            f"{runner.effort.seeds} seeds. PSNR compares with the image without noise, "
            f"{psnr(image.noisy, image.clean):.1f} dB before.",
            *missing_peer_notes(summaries),
        ],
        table=[_row(name, result, image, bound) for name, result in summaries.items()]
        + [{"method": "lower bound", "energy": f"{bound:,.0f}"}],
        name="energies",
        figures={
            "restored": (
                draw_pictures(_pictures(image, summaries), 4),
                "Figure 8 (a) to (c): the noisy image, restored by T-ILS and by loopy BP as the paper describes it; "
                "then loopy BP with messages in turn, T-ILS with this package's jumps, minimize, and the image without "
                "noise.",
            ),
            "energies": (
                _draw_curves(summaries),
                "Figure 8 (d): running time until the search stops (left), and energy against time (right). Above the "
                f"range: loopy BP (paper), which ends at {summaries['loopy BP (paper)'].energy:,.0f}.",
            ),
        },
    )
    _compare(denoise, image.name, summaries)
    return denoise.finish()


def _run_methods(denoise: Experiment, runner: Runner, image: NoisyImage) -> tuple[dict[str, MethodSummary], float]:
    mrf = denoising_field(image.noisy)
    stop, time = {"patience": PATIENCE, "maxiter": 1000}, {"time_limit": runner.effort.seconds}
    seeds, one = list(runner.seeds()), [runner.seed]
    return denoise.run_rows(
        image.name,
        mrf,
        [
            Row("T-ILS (paper)", "T-ILS (paper)", "random", seeds, stop),
            Row("unary → T-ILS (paper)", "T-ILS (paper)", "unary", seeds, stop),
            *(Row(method, method, "random", one, stop) for method in BELIEFS),
            Row("T-ILS (best)", "T-ILS (best)", "random", seeds, time),
            Row("minimize", "minimize", None, seeds, time),
        ],
    )


def _row(name: str, result: MethodSummary, image: NoisyImage, bound: float) -> dict[str, str]:
    return {
        "method": name,
        "energy": f"{result.energy:,.0f}",
        "above the bound": excess_over_bound(result.energy, bound),
        "seconds": f"{result.seconds:.2f}",
        "iterations": f"{np.median([res.nit for res in result.runs]):,.0f}" if result.runs else "-",
        "edges that differ": format_percent(roughness(result.x)),
        "PSNR": f"{psnr(result.x, image.clean):.1f}",
    }


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    """Peak signal-to-noise ratio of an 8-bit image in dB; inf if it equals the truth."""
    from skimage.metrics import peak_signal_noise_ratio

    with np.errstate(divide="ignore"):
        return float(peak_signal_noise_ratio(truth, image, data_range=255))


def roughness(x: np.ndarray) -> float:
    """The share of edges whose ends have different labels."""
    steps = [np.diff(x.astype(np.int32), axis=axis) != 0 for axis in (0, 1)]
    return float(np.mean(np.concatenate([step.ravel() for step in steps])))


def _pictures(image: NoisyImage, summaries: dict[str, MethodSummary]) -> list[tuple[str, np.ndarray]]:
    rows = ("T-ILS (paper)", "loopy BP (paper)", "loopy BP (sequential)", "T-ILS (best)", "minimize")
    restored = [(f"{row}: {summaries[row].energy:,.0f}", summaries[row].x.astype(np.uint8)) for row in rows]
    return [("noisy", image.noisy), *restored, ("without noise", image.clean)]


def _draw_curves(summaries: dict[str, MethodSummary]) -> Figure:
    figure, (axes,) = new_figure(1, 2)
    stopped = ("T-ILS (paper)", *BELIEFS)
    bars = axes[0].bar(
        range(len(stopped)),
        [summaries[row].seconds for row in stopped],
        color=[METHODS[row].colour for row in stopped],
    )
    axes[0].bar_label(bars, [f"{summaries[row].energy:,.0f}" for row in stopped], fontsize=8)
    axes[0].set_xticks(range(len(stopped)), [row.replace(" (", "\n(") for row in stopped], fontsize=8)
    axes[0].set(ylabel="seconds", title="until the search stops (on the bars: energy)")
    shown = (*stopped, "T-ILS (best)", "minimize")
    draw_curves(axes[1], {row: [res.trace for res in summaries[row].runs] for row in shown}, "seconds", "")
    zoom(axes[1], [summaries[row].energy for row in shown if row != "loopy BP (paper)"], 0.6)
    axes[1].set_ylabel("energy")
    legend_below(figure, axes[1])
    return figure


def _compare(denoise: Experiment, name: str, summaries: dict[str, MethodSummary]) -> None:
    search = summaries["T-ILS (paper)"]
    for method in BELIEFS:
        beliefs = summaries[method]
        check_claim = functools.partial(denoise.check_claim, asked=method == "loopy BP (paper)")
        check_claim(
            f"{name}: T-ILS is faster than {method}",
            f"{search.seconds:.2f} s, {beliefs.seconds:.2f} s",
            search.seconds < beliefs.seconds,
            f"this belief propagation gives up after {beliefs.runs[0].nit} iterations, at a higher energy"
            if beliefs.energy > search.energy
            else "this belief propagation needs fewer iterations",
        )
        check_claim(
            f"{name}: T-ILS is lower than {method}",
            f"{search.energy:,.0f}, {beliefs.energy:,.0f}",
            search.energy < beliefs.energy,
            "messages in turn are stronger than the belief propagation that the paper describes; T-ILS with this "
            f"package's jumps finds {summaries['T-ILS (best)'].energy:,.0f}",
        )
        check_claim(
            f"{name}: T-ILS is smoother than {method}",
            f"{format_percent(roughness(search.x))}, {format_percent(roughness(beliefs.x))} of edges",
            roughness(search.x) < roughness(beliefs.x),
            "it stops with single sites still unlike their neighbours, which a lower energy would not have",
        )
