"""The stereo table and figures 5 to 7: Tsukuba and Venus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import treefield as tf
from treefield.models.grid import GridMRF
from treefield_reproduce.datasets import StereoPair
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.methods import BELIEFS
from treefield_reproduce.plotting import draw_curves, draw_pictures, legend_below, new_figure, zoom
from treefield_reproduce.problems import STEREO_WEIGHT, stereo_field
from treefield_reproduce.runner import Runner
from treefield_reproduce.summaries import (
    MethodSummary,
    Row,
    excess_over_bound,
    format_percent,
    missing_peer_notes,
    relative_difference,
)
from treefield_reproduce.variants import variants_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ITERATIONS = 1000  # in the paper's table
# The paper's table, by our names of the rows.
PAPER = {
    "Tsukuba": {
        "scan-line, nu = 1": 814_121,
        "scan-line, nu = 0.4": 658_946,
        "random → T-ICM(1)": 739_370,
        "scan-line → T-ICM(1)": 427_860,
        "loopy BP (paper)": 413_269,
        "loopy BP (sequential)": 413_269,
        "scan-line → T-ILS (paper)": 403_129,
    },
    "Venus": {
        "scan-line, nu = 1": 1_362_067,
        "scan-line, nu = 0.4": 1_198_324,
        "random → T-ICM(1)": 1_048_587,
        "scan-line → T-ICM(1)": 669_973,
        "loopy BP (paper)": 640_385,
        "loopy BP (sequential)": 640_385,
        "scan-line → T-ILS (paper)": 635_305,
    },
}
_NOT_SPECIFIED = (
    "the paper gives neither the intensity, nor the border, nor how ties are broken: the table of other rules shows "
    "what they move"
)
_WHY = {
    "loopy BP (paper)": "the paper describes messages that all go at once, but took its figure from a C++ framework "
    "whose messages go in turn, which is the row loopy BP (sequential)",
    "loopy BP (sequential)": "the framework's order of messages and its ties are not the ones here",
}


def experiment(runner: Runner) -> Experiment:
    """The table, disparity maps and energy curves of every pair."""
    stereo = Experiment("stereo", runner)
    curves: dict[str, dict[str, MethodSummary]] = {}
    for pair in runner.datasets.pairs:
        mrf = stereo_field(pair.left, pair.right, pair.labels)
        summaries, bound = _run_methods(stereo, runner, pair, mrf)
        _add_pair_section(stereo, runner, pair, summaries, bound)
        _compare(stereo, pair.name, summaries, runner.effort.iterations)
        curves[pair.name] = summaries
    stereo.add_section(
        "Stereo: energy against iterations and time",
        [
            "Figure 7 of the paper: loopy BP (dashed) and T-ILS with the paper's settings from scan-line. Beside them "
            "the stronger variants of belief propagation, T-ILS with this package's jumps, and minimize.",
        ],
        figures={
            "energies": (
                _draw_curves(curves),
                "Figure 7: stereo energies, against iterations (left) and seconds (right). Bands: from the least to "
                f"the greatest of {runner.effort.seeds} seeds. Above the range: loopy BP (paper), which ends at "
                + " and ".join(
                    f"{summaries['loopy BP (paper)'].energy:,.0f} ({name})" for name, summaries in curves.items()
                )
                + ".",
            )
        },
    )
    for pair in runner.datasets.pairs:
        runner.notify(f"{pair.name}: other rules")
        stereo.add_section(
            f"{pair.name}: what other rules give",
            [
                "The energies of scan-line and of one sweep of T-ICM depend on what the paper does not say. Each row "
                "changes one rule.",
                *(["None of these rules gives all of the paper's figures."] if pair.name in PAPER else []),
            ],
            table=variants_table(pair, PAPER.get(pair.name, {}), runner.seed),
            name=f"{pair.name.lower()}-rules",
        )
    return stereo.finish()


def _run_methods(
    stereo: Experiment, runner: Runner, pair: StereoPair, mrf: GridMRF
) -> tuple[dict[str, MethodSummary], float]:
    """Every row of the table, and the lower bound."""
    effort, seeds, one = runner.effort, list(runner.seeds()), [runner.seed]
    line = {nu: tf.scan_line(mrf, nu=nu) for nu in (1.0, 0.4)}
    sweep, turns, time = {"maxiter": 1}, {"maxiter": effort.iterations}, {"time_limit": effort.seconds}
    start = line[0.4].x
    rows = [
        Row("random → T-ICM(1)", "T-ICM", "random", seeds, sweep),
        Row("scan-line → T-ICM(1)", "T-ICM", start, one, sweep),
        *(Row(method, method, "random", one, turns) for method in BELIEFS),
        Row("scan-line → T-ILS (paper)", "T-ILS (paper)", start, seeds, turns),
        Row("scan-line → T-ILS (best)", "T-ILS (best)", start, seeds, time),
        Row("annealing", "annealing", "random", seeds, time),
        Row("minimize", "minimize", None, seeds, time),
    ]
    summaries, bound = stereo.run_rows(pair.name, mrf, rows)
    return {f"scan-line, nu = {nu:g}": MethodSummary.of_runs([res]) for nu, res in line.items()} | summaries, bound


def _add_pair_section(
    stereo: Experiment, runner: Runner, pair: StereoPair, summaries: dict[str, MethodSummary], bound: float
) -> None:
    paper = PAPER.get(pair.name, {})
    rows = []
    for row, result in summaries.items():
        rows.append(
            {
                "method": row,
                "energy": f"{result.energy:,.0f}",
                "paper": f"{paper[row]:,}" if row in paper else "-",
                "against the paper": relative_difference(result.energy, paper[row]) if row in paper else "-",
                "above the bound": excess_over_bound(result.energy, bound),
                "seconds": f"{result.seconds:.2f}",
                "wrong pixels": format_percent(wrong(result.x, pair.truth)),
            }
        )
    rows.append(dict.fromkeys(rows[0], "") | {"method": "lower bound", "energy": f"{bound:,.0f}"})
    height, width = pair.left.shape[:2]
    number = 5 if pair.name != "Venus" else 6
    stereo.add_section(
        f"Stereo: {pair.name}, {width} x {height}, {pair.labels} labels",
        [
            f"|I_l - I_r| and Potts {STEREO_WEIGHT:g}. T-ILS and loopy BP make {runner.effort.iterations} iterations "
            f"(the paper: {ITERATIONS}); T-ILS (best), annealing and minimize have {runner.effort.seconds:g} s. "
            f"Energies of random searches are medians of {runner.effort.seeds} seeds. Wrong pixels differ from "
            "the truth by more than 1: a lower energy of this simple model is not always the better map.",
            *missing_peer_notes(summaries),
        ],
        table=rows,
        name=pair.name.lower(),
        figures={
            f"{pair.name.lower()}-maps": (
                draw_pictures(_maps(pair, summaries), 3),
                f"Figure {number}: {pair.name}. Top: left image, right image, truth; middle: scan-line, loopy BP, "
                "T-ILS from scan-line, all as in the paper; bottom: stronger belief propagation, T-ILS with this "
                "package's jumps, and minimize.",
            )
        },
    )


def _maps(pair: StereoPair, summaries: dict[str, MethodSummary]) -> list[tuple[str, np.ndarray]]:
    top = [("left", pair.left), ("right", pair.right), ("truth", shades(pair.truth, pair.labels))]
    rows = (
        "scan-line, nu = 0.4",
        "loopy BP (paper)",
        "scan-line → T-ILS (paper)",
        "loopy BP (strong)",
        "scan-line → T-ILS (best)",
        "minimize",
    )
    return top + [(f"{row}: {summaries[row].energy:,.0f}", shades(summaries[row].x, pair.labels)) for row in rows]


def shades(disparity: np.ndarray, labels: int) -> np.ndarray:
    """Disparities as grey, near ones bright; black where they are not known."""
    return np.round(np.nan_to_num(disparity, nan=0.0) * (255 / max(1, labels - 1))).clip(0, 255).astype(np.uint8)


def wrong(disparity: np.ndarray, truth: np.ndarray) -> float:
    """The share of known pixels that are off by more than 1."""
    known = np.isfinite(truth)
    return float(np.mean(np.abs(disparity[known] - truth[known]) > 1)) if known.any() else 0.0


def _draw_curves(curves: dict[str, dict[str, MethodSummary]]) -> Figure:
    figure, axes = new_figure(len(curves), 2)
    shown = {"scan-line → T-ILS (paper)": "T-ILS (paper)", "scan-line → T-ILS (best)": "T-ILS (best)"}
    shown = {method: method for method in BELIEFS} | shown | {"minimize": "minimize"}
    for row, (name, summaries) in zip(axes, curves.items(), strict=True):
        traces = {method: [res.trace for res in summaries[key].runs] for key, method in shown.items()}
        for ax, against in zip(row, ("iteration", "seconds"), strict=True):
            draw_curves(ax, traces, against, name)
            zoom(ax, [summaries[key].energy for key in shown if key != "loopy BP (paper)"], 0.6)
        row[0].set_ylabel("energy")
    legend_below(figure, axes[0, 0])
    return figure


def _compare(stereo: Experiment, name: str, summaries: dict[str, MethodSummary], iterations: int) -> None:
    for row, paper in PAPER.get(name, {}).items():
        why = _WHY.get(row, _NOT_SPECIFIED)
        if iterations < ITERATIONS and row in (*BELIEFS, "scan-line → T-ILS (paper)"):
            why = f"{iterations} iterations instead of {ITERATIONS}; {why}"
        stereo.compare_energy(f"{name}: {row}", summaries[row].energy, paper, why)
    search = summaries["scan-line → T-ILS (paper)"].energy
    for method in BELIEFS:
        energy = summaries[method].energy
        stereo.check_claim(
            f"{name}: scan-line → T-ILS is lower than {method}",
            f"{search:,.0f}, {energy:,.0f}",
            search < energy,
            asked=method == "loopy BP (paper)",
            why="this belief propagation is stronger than the one the paper compares with",
        )
    line, random, swept = (
        summaries[row].energy for row in ("scan-line, nu = 0.4", "random → T-ICM(1)", "scan-line → T-ICM(1)")
    )
    stereo.check_claim(
        f"{name}: random → T-ICM(1) is near scan-line, nu = 0.4",
        f"{random:,.0f}, {line:,.0f}",
        random < 1.1 * line,
        "the sweep's first rows see random neighbours",
    )
    stereo.check_claim(
        f"{name}: scan-line → T-ICM(1) is much better than random → T-ICM(1)",
        f"{swept:,.0f}, {random:,.0f}",
        swept < random,
        "the start from scan-line ends in a worse minimum",
    )
