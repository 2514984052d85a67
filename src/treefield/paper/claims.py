"""What the paper says in passing, each tried by a small experiment of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treefield.paper.costs import add_costs
from treefield.paper.drawing import draw_curves, new_figure, zoom
from treefield.paper.found import median_of, percent
from treefield.paper.lab import Experiment, Lab
from treefield.paper.trials import FULL_MULTISTART, MULTISTART, PAPER, SHARES, Results, jumps_up_to, searched
from treefield.results import MAPResult

_SEEDS = 3  # at most: there are many settings
_SAME = 0.001  # energies that differ by less than this share count as the same
_COLOURS = ("#d1495b", "#e08e45")  # of settings that are not among the methods


def experiment(lab: Lab) -> Experiment:
    """Search with all settings, then look at one claim after the other."""
    claims = Experiment("claims", lab)
    seeds = lab.seeds()[:_SEEDS]
    found = searched(claims, lab, seeds)
    equal = f"Every search gets {lab.effort.short:g} s with each of {len(seeds)} seeds."
    _local_search(claims, found, equal)
    _inner_sweeps(claims, found, equal)
    _great_jumps(claims, found, equal)
    add_costs(claims, lab)
    _genetic(claims, found, equal)
    _temperature(claims, found, equal)
    return claims.finish()


def _local_search(claims: Experiment, found: Results, equal: str) -> None:
    names = [PAPER, "ILS over ICM"]
    claims.section(
        "Iterated local search over trees and over single sites",
        [
            'Section 1: iterated local search over ICM "does not exploit any model-specific information, and thus '
            'could be inefficient"; T-ILS searches trees instead.',
            f"{equal} Here and below differences are taken seed by seed, on an Ising field (λ = 1) and a stereo pair, "
            f"and their median counts. Below {percent(_SAME)} they count as none; with so few seeds a few tenths of "
            "a per cent may be chance.",
        ],
        **_shown("local-search", found, names),
    )
    claims.claim(
        "Section 1: ILS is better over trees than over ICM",
        f"over ICM {_by_problem(found, 'ILS over ICM')}",
        all(_excess(found, PAPER, "ILS over ICM", problem) < 0 for problem in found[PAPER]),
        "a sweep of ICM is so much cheaper that it makes up for what each of its sweeps misses",
    )


def _inner_sweeps(claims: Experiment, found: Results, equal: str) -> None:
    names = [PAPER, "T_inner = 2", "full local minima"]
    claims.section(
        "One sweep after each jump, or all it takes",
        [
            'Section 5: "the inner loop has T_inner = 1, i.e., the full local minima may not be reached by the T-ICM, '
            'as does not seem to hurt the final performance".',
            equal,
        ],
        **_shown("inner-sweeps", found, names),
    )
    claims.claim(
        "Section 5: one sweep after each jump does not hurt",
        f"full {_by_problem(found, 'full local minima')}",
        _no_worse(found, PAPER, "full local minima"),
        "in this time the jumps that are saved do not make up for the sweeps that are left out",
    )
    claims.claim(
        "One sweep after each jump is as good as two",
        f"two {_by_problem(found, 'T_inner = 2')}",
        _no_worse(found, PAPER, "T_inner = 2"),
        "after one sweep much can still be gained, and a jump that is taken back takes that with it",
        asked=False,
    )


def _great_jumps(claims: Experiment, found: Results, equal: str) -> None:
    names = [*map(jumps_up_to, SHARES), MULTISTART, FULL_MULTISTART]
    claims.section(
        "Great jumps and multistart",
        [
            'Section 4.3: "If the jump is far enough (with large rho_max), the resulting algorithm will behave like '
            'the well-known multistart procedures." The paper takes rho_max = 10 %.',
            f"{equal} Multistart resets every site and keeps the best; like T-ILS it makes one sweep after each jump, "
            "in the last row as many as there is something to gain. From the scan-line start a random restart finds "
            "nothing better in this time, so that on the stereo pair multistart ends with its first local minimum.",
        ],
        table=_rows(found, names, lambda results: {}),
        name="great-jumps",
        figures={
            "great-jumps": (
                _jumps_figure(found),
                "Energy at the end against rho_max; the median, a bar from the least to the greatest. The lines are "
                "multistart's.",
            )
        },
    )
    greatest = jumps_up_to(SHARES[-1])
    claims.claim(
        "Section 4.3: with large jumps T-ILS behaves like multistart",
        f"{_by_problem(found, greatest)}; multistart {_by_problem(found, MULTISTART)}",
        all(_nearer_to_multistart(found, greatest, problem) for problem in found[PAPER]),
        "rho is drawn from U(0, rho_max): even with rho_max = 100 % half of the jumps leave half of the sites or more "
        "as they are, and the sweep mends the rest from them; only a rho that is always near 100 % is a restart",
    )


def _nearer_to_multistart(found: Results, name: str, problem: str) -> bool:
    """Whether a setting's energy is nearer to multistart's than to that of the paper's jumps."""
    return abs(_excess(found, name, MULTISTART, problem)) < abs(_excess(found, name, PAPER, problem))


def _genetic(claims: Experiment, found: Results, equal: str) -> None:
    names = [PAPER, "genetic (paper)", "genetic (best)", "T-ILS (best)"]
    claims.section(
        "A genetic search over trees",
        [
            "Section 6.1 proposes, and does not try, a genetic search: individuals are improved by search on trees and "
            "crossed site by site.",
            "Genetic (paper) is that, with rows and columns; genetic (best) merges its parents component by component, "
            f"with mixed jumps as mutations. A population has 16 individuals. {equal}",
        ],
        **_shown("genetic", found, names),
    )
    made = {name: np.median([res.nit for runs in found[name].values() for res in runs]) for name in names[:2]}
    claims.claim(
        "Section 6.1: a genetic search over trees is as good as T-ILS",
        f"genetic {_by_problem(found, 'genetic (paper)')}",
        _no_worse(found, "genetic (paper)", PAPER),
        "each of 16 individuals is swept in every generation; generations made in this time: "
        f"{made['genetic (paper)']:.0f}, jumps of T-ILS: {made[PAPER]:.0f} (medians)",
        asked=False,
    )


def _temperature(claims: Experiment, found: Results, equal: str) -> None:
    names = [PAPER, "β = 0", "β = ∞"]
    whole = ["full local minima", "full local minima, β = 0"]
    claims.section(
        "The temperature, adapted and fixed",
        [
            'Section 4.3: β is adapted to "maintain an average acceptance probability of 0.5"; with β = 0 "T-ILS '
            'becomes a greedy algorithm", and with a very large one "we would accept all the jumps". By the paper\'s '
            "own formula, min(1, exp(-β ΔE)), it is the other way round, and the formula is followed here.",
            equal,
        ],
        **_shown("temperature", found, names, whole, _acceptance),
    )
    raised = {
        name: 100 * _share([res for results in found[name].values() for res in results], "raise") for name in names
    }
    claims.claim(
        "Section 4.3: β = 0 is greedy, a large β accepts all jumps",
        f"{raised['β = 0']:.0f} %, {raised['β = ∞']:.0f} % of jumps go up",
        raised["β = 0"] == 0 < raised["β = ∞"],
        "the text contradicts the formula above it, min(1, exp(-β ΔE)): β = 0 accepts everything, β = ∞ is greedy",
    )
    claims.claim(
        "An adapted β is no worse than a fixed one",
        "; ".join(f"{fixed} {_by_problem(found, fixed)}" for fixed in names[1:]),
        all(_no_worse(found, PAPER, fixed) for fixed in names[1:]),
        f"the adapted β let {raised[PAPER]:.0f} % of the jumps raise the energy: it starts at 1 and has few jumps to "
        "fall in. To go back from a jump is to lose the sweep that followed it; where every jump ends in a full local "
        f"minimum, β = 0 changes the energy by {_by_problem(found, whole[1], whole[0])}",
        asked=False,
    )


def _shown(name: str, found: Results, names: list[str], beside: Sequence[str] = (), more: Any = None) -> dict[str, Any]:
    """What a section shows of some settings: a table, with a few more beside them, and curves."""
    return {
        "table": _rows(found, [*names, *beside], more or (lambda results: {})),
        "name": name,
        "figures": {name: (_curves(found, names), "Best energy against time: medians, least to greatest.")},
    }


def _acceptance(results: list[MAPResult]) -> dict[str, str]:
    return {f"jumps that {sign} the energy": percent(_share(results, sign)) for sign in ("lower", "raise")}


def _share(results: list[MAPResult], sign: str) -> float:
    """The share of the jumps that "lower" or "raise" the energy; what is taken back does neither."""
    # the first two rows of a trace are the start and the first local minimum
    changes = np.concatenate([np.diff(res.trace["energy"][1:]) for res in results])
    return float(np.mean(changes < 0 if sign == "lower" else changes > 0)) if len(changes) else 0.0


def _excess(found: Results, name: str, other: str, problem: str) -> float:
    """By what share the energy of a setting is above another's with the same seed, in the median."""
    pairs = zip(found[name][problem], found[other][problem], strict=True)
    return float(np.median([(res.fun - than.fun) / max(abs(than.fun), 1e-9) for res, than in pairs]))


def _no_worse(found: Results, name: str, other: str) -> bool:
    return all(_excess(found, name, other, problem) < _SAME for problem in found[name])


def _rows(found: Results, names: list[str], more: Any) -> list[dict[str, str]]:
    return [
        {
            "problem": problem,
            "search": name,
            "energy (median)": f"{median_of(results):,.0f}",
            "standard deviation": f"{np.std([res.fun for res in results]):,.0f}",
            f"against {PAPER}": percent(_excess(found, name, PAPER, problem), "+"),
            "iterations (median)": f"{np.median([res.nit for res in results]):,.0f}",
            **more(results),
        }
        for problem in found[names[0]]
        for name in names
        for results in [found[name][problem]]
    ]


def _by_problem(found: Results, name: str, other: str = PAPER) -> str:
    """How far the energies of a setting are from another's, on one problem and the other."""
    return ", ".join(percent(_excess(found, name, other, problem), "+") for problem in found[name])


def _curves(found: Results, names: list[str]) -> Any:
    problems = list(found[names[0]])
    figure, axes = new_figure(1, len(problems), height=3.6)
    for ax, problem in zip(axes.flat, problems, strict=True):
        ax.set_prop_cycle(color=_COLOURS)
        draw_curves(ax, {name: [res.trace for res in found[name][problem]] for name in names}, "seconds", problem)
        firsts = [float(np.median([res.trace["best"][1] for res in found[name][problem]])) for name in names]
        ax.set_xlim(left=min(res.trace["seconds"][1] for name in names for res in found[name][problem]) / 1.2)
        ax.xaxis.set_minor_formatter("")  # within a decade they would overlap
        zoom(ax, [*firsts, *(median_of(found[name][problem]) for name in names)])
    axes[0, 0].set_ylabel("energy")
    axes[0, -1].legend(fontsize=8)
    return figure


def _jumps_figure(found: Results) -> Any:
    problems = list(found[PAPER])
    figure, axes = new_figure(1, len(problems), height=3.6)
    for ax, problem in zip(axes.flat, problems, strict=True):
        energies = np.array([[res.fun for res in found[jumps_up_to(share)][problem]] for share in SHARES])
        middle = np.median(energies, axis=1)
        bars = np.stack([middle - energies.min(axis=1), energies.max(axis=1) - middle])
        ax.errorbar(SHARES, middle, bars, fmt="o-", capsize=3, color="#1f4e9c", label="T-ILS")
        for name, line in ((MULTISTART, "--"), (FULL_MULTISTART, ":")):
            ax.axhline(median_of(found[name][problem]), color="#d1495b", linestyle=line, label=name)
        ax.set_xscale("log")
        ax.set_xticks(SHARES, [f"{share} %" for share in SHARES])
        ax.minorticks_off()
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set(xlabel="rho_max", title=problem)
        ax.grid(alpha=0.25)
    axes[0, 0].set_ylabel("energy")
    axes[0, -1].legend(fontsize=8)
    return figure
