"""Claims that the paper makes in passing, each checked by a small experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from treefield.results import MAPResult
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.experiments.sweep_costs import add_costs
from treefield_reproduce.plotting import draw_curves, new_figure, zoom
from treefield_reproduce.runner import Runner
from treefield_reproduce.settings import FULL_MULTISTART, MULTISTART, PAPER, SHARES, Results, jumps_up_to, run_settings
from treefield_reproduce.summaries import format_percent, median_energy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEEDS = 3  # at most: there are many settings
_SAME = 0.001  # energies that differ by less than this share count as the same
_COLOURS = ("#d1495b", "#e08e45")  # of settings that are not among the methods


ExtraColumns = Callable[[list[MAPResult]], dict[str, str]]  # further columns of a table, from the runs of a row


class _Shown(TypedDict):
    table: list[dict[str, str]]
    name: str
    figures: dict[str, tuple[Figure, str]]


def experiment(runner: Runner) -> Experiment:
    """Search with all settings, then check one claim after the other."""
    claims = Experiment("claims", runner)
    seeds = runner.seeds()[:_SEEDS]
    runs = run_settings(claims, runner, seeds)
    equal = f"Every search gets {runner.effort.short:g} s with each of {len(seeds)} seeds."
    _check_local_search(claims, runs, equal)
    _check_inner_sweeps(claims, runs, equal)
    _check_great_jumps(claims, runs, equal)
    add_costs(claims, runner)
    _check_genetic(claims, runs, equal)
    _check_temperature(claims, runs, equal)
    return claims.finish()


def _check_local_search(claims: Experiment, runs: Results, equal: str) -> None:
    names = [PAPER, "ILS over ICM"]
    claims.add_section(
        "Iterated local search over trees and over single sites",
        [
            'Section 1: iterated local search over ICM "does not exploit any model-specific information, and thus '
            'could be inefficient"; T-ILS searches trees instead.',
            f"{equal} Here and below differences are taken seed by seed, on an Ising field (λ = 1) and a stereo pair, "
            f"and their median counts. Below {format_percent(_SAME)} they count as none; with few seeds, some tenths "
            "of a per cent may be chance.",
        ],
        **_table_and_curves("local-search", runs, names),
    )
    claims.check_claim(
        "Section 1: ILS is better over trees than over ICM",
        f"over ICM {_by_problem(runs, 'ILS over ICM')}",
        all(_excess(runs, PAPER, "ILS over ICM", problem) < 0 for problem in runs[PAPER]),
        "a sweep of ICM is so much cheaper that it makes up for what each of its sweeps misses",
    )


def _check_inner_sweeps(claims: Experiment, runs: Results, equal: str) -> None:
    names = [PAPER, "T_inner = 2", "full local minima"]
    claims.add_section(
        "One sweep after each jump, or all it takes",
        [
            'Section 5: "the inner loop has T_inner = 1, i.e., the full local minima may not be reached by the T-ICM, '
            'as does not seem to hurt the final performance".',
            equal,
        ],
        **_table_and_curves("inner-sweeps", runs, names),
    )
    claims.check_claim(
        "Section 5: one sweep after each jump does not hurt",
        f"full {_by_problem(runs, 'full local minima')}",
        _no_worse(runs, PAPER, "full local minima"),
        "in this time the jumps that are saved do not make up for the sweeps that are left out",
    )
    claims.check_claim(
        "One sweep after each jump is as good as two",
        f"two {_by_problem(runs, 'T_inner = 2')}",
        _no_worse(runs, PAPER, "T_inner = 2"),
        "after one sweep much can still be gained, and a jump that is taken back takes that with it",
        asked=False,
    )


def _check_great_jumps(claims: Experiment, runs: Results, equal: str) -> None:
    names = [*map(jumps_up_to, SHARES), MULTISTART, FULL_MULTISTART]
    claims.add_section(
        "Great jumps and multistart",
        [
            'Section 4.3: "If the jump is far enough (with large rho_max), the resulting algorithm will behave like '
            'the well-known multistart procedures." The paper takes rho_max = 10 %.',
            f"{equal} Multistart resets every site and keeps the best; like T-ILS it makes one sweep after each jump, "
            "in the last row as many as there is something to gain. From the scan-line start a random restart finds "
            "nothing better in this time, so that on the stereo pair multistart ends with its first local minimum.",
        ],
        table=_rows(runs, names, lambda results: {}),
        name="great-jumps",
        figures={
            "great-jumps": (
                _draw_jumps(runs),
                "Energy at the end against rho_max; the median, a bar from the least to the greatest. The lines are "
                "multistart's.",
            )
        },
    )
    greatest = jumps_up_to(SHARES[-1])
    claims.check_claim(
        "Section 4.3: with large jumps T-ILS behaves like multistart",
        f"{_by_problem(runs, greatest)}; multistart {_by_problem(runs, MULTISTART)}",
        all(_nearer_to_multistart(runs, greatest, problem) for problem in runs[PAPER]),
        "rho is drawn from U(0, rho_max): even with rho_max = 100 % half of the jumps leave half of the sites or more "
        "as they are, and the sweep mends the rest from them; only a rho that is always near 100 % is a restart",
    )


def _nearer_to_multistart(runs: Results, name: str, problem: str) -> bool:
    """Whether a setting's energy is nearer to multistart's than to that of the paper's jumps."""
    return abs(_excess(runs, name, MULTISTART, problem)) < abs(_excess(runs, name, PAPER, problem))


def _check_genetic(claims: Experiment, runs: Results, equal: str) -> None:
    names = [PAPER, "genetic (paper)", "genetic (best)", "T-ILS (best)"]
    claims.add_section(
        "A genetic search over trees",
        [
            "Section 6.1 proposes, and does not try, a genetic search: individuals are improved by search on trees and "
            "crossed site by site.",
            "Genetic (paper) is that, with rows and columns; genetic (best) merges its parents component by component, "
            f"with mixed jumps as mutations. A population has 16 individuals. {equal}",
        ],
        **_table_and_curves("genetic", runs, names),
    )
    iterations = {
        name: np.median([res.nit for by_problem in runs[name].values() for res in by_problem]) for name in names[:2]
    }
    claims.check_claim(
        "Section 6.1: a genetic search over trees is as good as T-ILS",
        f"genetic {_by_problem(runs, 'genetic (paper)')}",
        _no_worse(runs, "genetic (paper)", PAPER),
        "each of 16 individuals is swept in every generation; generations made in this time: "
        f"{iterations['genetic (paper)']:.0f}, jumps of T-ILS: {iterations[PAPER]:.0f} (medians)",
        asked=False,
    )


def _check_temperature(claims: Experiment, runs: Results, equal: str) -> None:
    names = [PAPER, "β = 0", "β = ∞"]
    whole = ["full local minima", "full local minima, β = 0"]
    claims.add_section(
        "The temperature, adapted and fixed",
        [
            'Section 4.3: β is adapted to "maintain an average acceptance probability of 0.5"; with β = 0 "T-ILS '
            'becomes a greedy algorithm", and with a very large one "we would accept all the jumps". By the paper\'s '
            "own formula, min(1, exp(-β ΔE)), it is the other way round, and the formula is followed here.",
            equal,
        ],
        **_table_and_curves("temperature", runs, names, whole, _acceptance),
    )
    raised = {
        name: 100 * _share([res for results in runs[name].values() for res in results], "raise") for name in names
    }
    claims.check_claim(
        "Section 4.3: β = 0 is greedy, a large β accepts all jumps",
        f"{raised['β = 0']:.0f} %, {raised['β = ∞']:.0f} % of jumps go up",
        raised["β = 0"] == 0 < raised["β = ∞"],
        "the text contradicts the formula above it, min(1, exp(-β ΔE)): β = 0 accepts everything, β = ∞ is greedy",
    )
    claims.check_claim(
        "An adapted β is no worse than a fixed one",
        "; ".join(f"{fixed} {_by_problem(runs, fixed)}" for fixed in names[1:]),
        all(_no_worse(runs, PAPER, fixed) for fixed in names[1:]),
        f"the adapted β let {raised[PAPER]:.0f} % of the jumps raise the energy: it starts at 1 and has few jumps to "
        "fall in. To go back from a jump is to lose the sweep that followed it; where every jump ends in a full local "
        f"minimum, β = 0 changes the energy by {_by_problem(runs, whole[1], whole[0])}",
        asked=False,
    )


def _table_and_curves(
    name: str, runs: Results, names: list[str], also: Sequence[str] = (), extra: ExtraColumns | None = None
) -> _Shown:
    """The keywords of `add_section` for some settings: a table, with the rows `also`, and curves of `names` alone."""
    return {
        "table": _rows(runs, [*names, *also], extra or (lambda results: {})),
        "name": name,
        "figures": {name: (_draw_curves(runs, names), "Best energy against time: medians, least to greatest.")},
    }


def _acceptance(results: list[MAPResult]) -> dict[str, str]:
    return {f"jumps that {sign} the energy": format_percent(_share(results, sign)) for sign in ("lower", "raise")}


def _share(results: list[MAPResult], sign: str) -> float:
    """The share of the jumps that "lower" or "raise" the energy; what is taken back does neither."""
    # the first two rows of a trace are the start and the first local minimum
    changes = np.concatenate([np.diff(res.trace["energy"][1:]) for res in results])
    return float(np.mean(changes < 0 if sign == "lower" else changes > 0)) if len(changes) else 0.0


def _excess(runs: Results, name: str, other: str, problem: str) -> float:
    """By what share the energy of a setting is above another's with the same seed, in the median."""
    pairs = zip(runs[name][problem], runs[other][problem], strict=True)
    return float(np.median([(res.fun - than.fun) / max(abs(than.fun), 1e-9) for res, than in pairs]))


def _no_worse(runs: Results, name: str, other: str) -> bool:
    return all(_excess(runs, name, other, problem) < _SAME for problem in runs[name])


def _rows(runs: Results, names: list[str], extra: ExtraColumns) -> list[dict[str, str]]:
    return [
        {
            "problem": problem,
            "search": name,
            "energy (median)": f"{median_energy(results):,.0f}",
            "standard deviation": f"{np.std([res.fun for res in results]):,.0f}",
            f"against {PAPER}": format_percent(_excess(runs, name, PAPER, problem), "+"),
            "iterations (median)": f"{np.median([res.nit for res in results]):,.0f}",
            **extra(results),
        }
        for problem in runs[names[0]]
        for name in names
        for results in [runs[name][problem]]
    ]


def _by_problem(runs: Results, name: str, other: str = PAPER) -> str:
    """How far the energies of a setting are from another's, on one problem and the other."""
    return ", ".join(format_percent(_excess(runs, name, other, problem), "+") for problem in runs[name])


def _draw_curves(runs: Results, names: list[str]) -> Figure:
    problems = list(runs[names[0]])
    figure, axes = new_figure(1, len(problems), height=3.6)
    for ax, problem in zip(axes.flat, problems, strict=True):
        ax.set_prop_cycle(color=_COLOURS)
        draw_curves(ax, {name: [res.trace for res in runs[name][problem]] for name in names}, "seconds", problem)
        firsts = [float(np.median([res.trace["best"][1] for res in runs[name][problem]])) for name in names]
        ax.set_xlim(left=min(res.trace["seconds"][1] for name in names for res in runs[name][problem]) / 1.2)
        ax.xaxis.set_minor_formatter("")  # within a decade they would overlap
        zoom(ax, [*firsts, *(median_energy(runs[name][problem]) for name in names)])
    axes[0, 0].set_ylabel("energy")
    axes[0, -1].legend(fontsize=8)
    return figure


def _draw_jumps(runs: Results) -> Figure:
    problems = list(runs[PAPER])
    figure, axes = new_figure(1, len(problems), height=3.6)
    for ax, problem in zip(axes.flat, problems, strict=True):
        energies = np.array([[res.fun for res in runs[jumps_up_to(share)][problem]] for share in SHARES])
        middle = np.median(energies, axis=1)
        bars = np.stack([middle - energies.min(axis=1), energies.max(axis=1) - middle])
        ax.errorbar(SHARES, middle, bars, fmt="o-", capsize=3, color="#1f4e9c", label="T-ILS")
        for name, line in ((MULTISTART, "--"), (FULL_MULTISTART, ":")):
            ax.axhline(median_energy(runs[name][problem]), color="#d1495b", linestyle=line, label=name)
        ax.set_xscale("log")
        ax.set_xticks(SHARES, [f"{share} %" for share in SHARES])
        ax.minorticks_off()
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set(xlabel="rho_max", title=problem)
        ax.grid(alpha=0.25)
    axes[0, 0].set_ylabel("energy")
    axes[0, -1].legend(fontsize=8)
    return figure
