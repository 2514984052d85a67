"""The effect of each part of T-ILS: every kind of jump with every acceptance on every tree set."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from treefield import moves
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.plotting import new_figure
from treefield_reproduce.runner import Runner
from treefield_reproduce.settings import PAPER, Problem, build_problems
from treefield_reproduce.summaries import median_energy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# the paper's choice comes first
FACTORS: dict[str, dict[str, object]] = {
    "jump": {
        "uniform": moves.UniformJump(),
        "Beta": moves.BetaJump(),
        "Lévy": moves.LevyJump(),
        "boxes": moves.BoxJump("best"),
        "segments": moves.SegmentJump("neighbour"),
        "mixed": moves.MixedJump(),
    },
    "accept": {"Metropolis": moves.Metropolis(), "greedy": moves.Greedy(), "per component": moves.PerComponent()},
    "trees": {name: name for name in ("rows-columns", "alternating", "bands", "combs")},
}
PAPER_LEVELS = tuple(next(iter(levels)) for levels in FACTORS.values())

_NAMES = {"jump": "jump", "accept": "acceptance", "trees": "tree set"}
_SEEDS = 3  # at most; one in a quick run

Cells = dict[tuple[str, ...], float]  # an energy for each combination of levels, one of each factor


def experiment(runner: Runner) -> Experiment:
    """Search with all combinations for the same time, and compute the effect of each factor."""
    ablation = Experiment("ablation", runner)
    seeds = runner.seeds()[: 1 if runner.effort.name == "quick" else _SEEDS]
    energies_by_problem = {
        problem.name: _run_combinations(runner, problem) for problem in build_problems(runner, seeds)
    }
    cells = len(next(iter(energies_by_problem.values())))
    ablation.add_section(
        "Which part of T-ILS does what",
        [
            f"Ours, not the paper's: {_counted()} make {cells} searches, each for {runner.effort.short:g} s"
            f"{_repeated(len(seeds))}, on both problems. The paper's are the first of each: {', '.join(PAPER_LEVELS)}.",
            "For every level of every factor the mean is over all the combinations it is in, and compared with that of "
            "the paper's level; alone is the energy where this one level is changed and all else is the paper's. Combs "
            "are swept by the code for trees of any shape, slower than that for lines: with equal time that counts.",
            "The searches are short and few: what is close may change places from one run to the next.",
            *[_lesson(problem, energies) for problem, energies in energies_by_problem.items()],
        ],
        table=[row for problem, energies in energies_by_problem.items() for row in effects(problem, energies)],
        name="effects",
        figures={
            f"combinations-{number}": (
                _draw_combinations(energies),
                f"{problem}: every combination, by how many per cent its energy is above the best of all "
                f"({min(energies.values()):,.0f}). A panel for each tree set; framed: the paper's.",
            )
            for number, (problem, energies) in enumerate(energies_by_problem.items(), 1)
        },
    )
    combinations = [
        (name, *levels, energy) for name, energies in energies_by_problem.items() for levels, energy in energies.items()
    ]
    ablation.add_csv("combinations", ["problem", *FACTORS, "energy"], combinations)
    return ablation.finish()


def _run_combinations(runner: Runner, problem: Problem) -> Cells:
    """The median energy of every combination."""
    cells: Cells = {}
    for levels in itertools.product(*FACTORS.values()):
        chosen = {name: FACTORS[name][level] for name, level in zip(FACTORS, levels, strict=True)}
        limit = runner.effort.short
        where = f"{problem.name}, {', '.join(levels)}"
        runs = [
            runner.run(where, PAPER, mrf, problem.x0, seed=seed, time_limit=limit, **chosen)
            for seed, mrf in problem.models.items()
        ]
        cells[levels] = median_energy(runs)
    return cells


def _means(cells: Cells, factor: int) -> dict[str, float]:
    """The mean energy of each level of a factor, over everything else."""
    levels = list(FACTORS.values())[factor]
    return {level: float(np.mean([cells[key] for key in cells if key[factor] == level])) for level in levels}


def effects(problem: str, cells: Cells) -> list[dict[str, str]]:
    """The main effects: a row for each level of each factor."""
    rows = []
    for factor, name in enumerate(FACTORS):
        means = _means(cells, factor)
        paper = means[PAPER_LEVELS[factor]]
        for level, mean in means.items():
            alone = cells[(*PAPER_LEVELS[:factor], level, *PAPER_LEVELS[factor + 1 :])]
            rows.append(
                {
                    "problem": problem,
                    "factor": name,
                    "level": level,
                    "mean energy": f"{mean:,.0f}",
                    "against the paper's": f"{mean - paper:+,.0f}",
                    "alone": f"{alone:,.0f}",
                    "alone, against the paper's": f"{alone - cells[PAPER_LEVELS]:+,.0f}",
                }
            )
    return rows


def _lesson(problem: str, cells: Cells) -> str:
    """A sentence on the factors that lower the mean energy, the strongest first."""
    gains = []
    for factor, name in enumerate(FACTORS):
        means = _means(cells, factor)
        least = min(means, key=lambda level: means[level])
        gains.append((means[PAPER_LEVELS[factor]] - means[least], _NAMES[name], least))
    gains.sort(reverse=True)
    helpful = [
        f"the {factor_name} ({least}: {gain:,.0f} lower in the mean)" for gain, factor_name, least in gains if gain > 0
    ]
    best = min(cells, key=lambda key: cells[key])
    start = f"{problem}: most comes from {', then from '.join(helpful)}" if helpful else f"{problem}: nothing helps"
    return (
        f"{start}. The best combination is {', '.join(best)} with {cells[best]:,.0f}; the paper's has "
        f"{cells[PAPER_LEVELS]:,.0f}."
    )


def _counted() -> str:
    return " x ".join(f"{len(levels)} {_NAMES[name]}s" for name, levels in FACTORS.items())


def _repeated(seeds: int) -> str:
    return "" if seeds == 1 else f" with each of {seeds} seeds (the median counts)"


def _draw_combinations(cells: Cells) -> Figure:
    from matplotlib.colors import PowerNorm
    from matplotlib.patches import Rectangle

    jumps, accepts, sets = (list(levels) for levels in FACTORS.values())
    best = min(cells.values())
    above = {key: 100 * (energy - best) / max(abs(best), 1e-9) for key, energy in cells.items()}
    most = max(max(above.values()), 1e-9)
    figure, axes = new_figure(1, len(sets), width=11.0, height=3.8)
    for ax, trees in zip(axes.flat, sets, strict=True):
        values = np.array([[above[jump, accept, trees] for accept in accepts] for jump in jumps])
        # a root: a few bad combinations would hide what sets the good ones apart
        ax.imshow(values, cmap="viridis_r", norm=PowerNorm(0.5, 0, most), aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if value > 0.25 * most else "black"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=9)
        ax.set_xticks(range(len(accepts)), accepts, fontsize=8)
        ax.set_yticks(range(len(jumps)), jumps if trees == sets[0] else [""] * len(jumps))
        ax.set_title(trees)
        if trees == PAPER_LEVELS[2]:
            ax.add_patch(Rectangle((-0.5, -0.5), 1, 1, fill=False, edgecolor="#d1495b", linewidth=3))
    return figure
