"""Figure 4: Ising fields with weak and strong couplings."""

from __future__ import annotations

import numpy as np

from treefield.paper.drawing import draw_curves, legend_below, new_figure, zoom
from treefield.paper.found import median_of, percent, seconds_of
from treefield.paper.lab import Experiment, Lab
from treefield.paper.problems import ising_field
from treefield.results import MAPResult

STRENGTHS = 0.5, 1.0
SHOWN = (
    "ICM",
    "T-ICM",
    "loopy BP (paper)",
    "loopy BP (strong)",
    "T-ILS (paper)",
    "T-ILS (best)",
    "annealing",
    "TRW-S",
    "minimize",
)

Runs = dict[str, list[MAPResult]]


def experiment(lab: Lab) -> Experiment:
    """Every method on every field for the same time: energies against time and against iterations."""
    ising = Experiment("ising", lab)
    size, limit = lab.effort.size, lab.effort.seconds
    found = {strength: _searched(ising, lab, strength) for strength in STRENGTHS}
    figures = {
        f"energies-against-{against}": (
            _figure(found, against),
            f"Figure 4: Ising fields of {size} x {size} sites, best energy against {against}; the median of "
            f"{lab.effort.seeds} fields and a band from the least to the greatest. Dashed: belief propagation.",
        )
        for against in ("time", "iterations")
    }
    ising.section(
        f"Ising fields, {size} x {size}",
        [
            "Fields are drawn from U(-1, 1), couplings from U(-λ, λ). The paper shows curves of T-ILS and loopy BP and "
            "no numbers: belief propagation does well where couplings are weak (λ = 0.5), T-ILS where they are strong "
            "(λ = 1).",
            f"Each method gets {limit:g} s on each of {lab.effort.seeds} fields, each with a seed of its own; local "
            "searches (ICM, T-ICM) end where they find nothing better. Above the bound is the gap to the lower bound "
            "that TRW-S proves for the same field.",
        ],
        table=[row for strength in STRENGTHS for row in _rows(strength, found[strength])],
        name="energies",
        figures=figures,
    )
    _compare(ising, found)
    return ising.finish()


def _searched(ising: Experiment, lab: Lab, strength: float) -> Runs:
    runs: Runs = {method: [] for method in SHOWN}
    for seed in lab.seeds():
        mrf = ising_field(lab.effort.size, strength, seed)
        for method in SHOWN:
            problem = f"Ising, lambda = {strength:g}"
            runs[method].append(ising.run(problem, method, mrf, seed=seed, time_limit=lab.effort.seconds))
    return runs


def _figure(found: dict[float, Runs], against: str) -> object:
    figure, axes = new_figure(1, len(found), height=4.2)
    for ax, (strength, runs) in zip(axes.flat, found.items(), strict=True):
        column = "seconds" if against == "time" else "iteration"
        draw_curves(ax, {method: [res.trace for res in runs[method]] for method in runs}, column, f"λ = {strength:g}")
        ends = [median_of(results) for results in runs.values()]
        bound = float(np.median([res.lower_bound for res in runs["TRW-S"]]))
        ax.axhline(bound, color="black", linestyle=":", linewidth=1, label="lower bound")
        zoom(ax, [*ends, bound])
    axes[0, 0].set_ylabel("energy")
    legend_below(figure, axes[0, 0])
    return figure


def _rows(strength: float, runs: Runs) -> list[dict[str, str]]:
    bounds = [res.lower_bound for res in runs["TRW-S"]]
    rows = []
    for method, results in runs.items():
        energies = np.array([res.fun for res in results])
        above = np.mean((energies - bounds) / np.abs(bounds))
        rows.append(
            {
                "λ": f"{strength:g}",
                "method": method,
                "energy (mean)": f"{energies.mean():,.0f}",
                "standard deviation": f"{energies.std():,.0f}",
                "above the bound": percent(float(above)),
                "iterations (median)": f"{np.median([res.nit for res in results]):,.0f}",
                "seconds (median)": f"{np.median([seconds_of(res) for res in results]):.2f}",
            }
        )
    return rows


def _compare(ising: Experiment, found: dict[float, Runs]) -> None:
    weak, strong = (found[strength] for strength in STRENGTHS)
    energies = [median_of(runs[name]) for runs in (strong, weak) for name in ("T-ILS (paper)", "loopy BP (paper)")]
    ising.claim(
        "Ising, λ = 1: T-ILS has a clear advantage over loopy BP",
        f"{energies[0]:,.0f}, {energies[1]:,.0f}",
        energies[0] < energies[1],
        "the fields are random and smaller or the time shorter than the paper's",
    )
    ising.claim(
        "Ising, λ = 0.5: loopy BP performs well",
        f"{energies[3]:,.0f}, T-ILS {energies[2]:,.0f}",
        energies[3] < energies[2],
        "undamped messages, all at once, as the paper describes them, do not settle on these fields; damped ones that "
        f"are decoded one after the other come to {median_of(weak['loopy BP (strong)']):,.0f}",
    )
    strongest = median_of(strong["loopy BP (strong)"])
    ising.claim(
        "Ising, λ = 1: T-ILS also beats the stronger loopy BP",
        f"{energies[0]:,.0f}, {strongest:,.0f}",
        energies[0] < strongest,
        "damped messages that are decoded one after the other are much better than those the paper compares with; "
        f"T-ILS with this package's jumps and acceptance finds {median_of(strong['T-ILS (best)']):,.0f}",
        asked=False,
    )
