"""Figure 3: basin hopping, recorded from a run of T-ILS, and the landscapes that local searches see."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from treefield import moves
from treefield.models.grid import GridMRF
from treefield.results import MAPResult
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.methods import METHODS
from treefield_reproduce.plotting import legend_below, new_figure
from treefield_reproduce.runner import Runner

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEARCHES = "ICM", "T-ICM"
POINTS = 240  # of a path, about

_PROBLEM = "basin hopping"
_LEGS = {
    "jump": ("#e08e45", "-", "jump"),
    "search": ("#1f4e9c", "-", "local search"),
    "back": ("#b07aa1", "--", "way back"),
}


@dataclasses.dataclass(frozen=True)
class Hop:
    """One iteration of T-ILS: the labelling before the jump (`left`), after it (`jumped`), and after the local search
    (`improved`)."""

    left: np.ndarray
    jumped: np.ndarray
    improved: np.ndarray
    accepted: bool


@dataclasses.dataclass(frozen=True)
class Path:
    """Labellings on the way of a run, and their energies.

    `changed` is the number of sites changed so far, `legs` what each leg is ("jump", "search" or "back") with the
    positions of its first and last labelling.
    """

    labellings: list[np.ndarray]
    changed: np.ndarray
    energies: np.ndarray
    legs: list[tuple[str, int, int]]


def record_hops(experiment: Experiment, mrf: GridMRF, seed: int, iterations: int) -> tuple[list[Hop], MAPResult]:
    """Run T-ILS with the paper's settings from a random labelling, and record every iteration."""
    jump, accept = moves.UniformJump(), moves.Metropolis()
    places: list[tuple[np.ndarray, np.ndarray]] = []
    hops: list[Hop] = []

    def recorded_jump(x: np.ndarray, mrf: GridMRF, rng: np.random.Generator) -> np.ndarray:
        y = jump(x, mrf, rng)
        places.append((x.copy(), y.copy()))
        return y

    def recorded_accept(mrf: GridMRF, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float | None:
        change = accept(mrf, x, y, rng)
        hops.append(Hop(*places[-1], y.copy(), change is not None))
        return change

    res = experiment.run(
        _PROBLEM,
        "T-ILS (paper)",
        mrf,
        "random",
        seed=seed,
        maxiter=iterations,
        jump=recorded_jump,
        accept=recorded_accept,
    )
    return hops, res


def build_path(mrf: GridMRF, hops: list[Hop], seed: int, points: int = POINTS) -> Path:
    """The way through these hops: from one labelling to the next the sites that differ change one after the other, in
    random order."""
    rng = np.random.default_rng(seed)
    ways = []
    for hop in hops:
        ways += [("jump", hop.left, hop.jumped), ("search", hop.jumped, hop.improved)]
        if not hop.accepted:
            ways.append(("back", hop.improved, hop.left))
    every = max(1, sum(np.count_nonzero(a != b) for _, a, b in ways) // points)
    labellings, changed, legs = [hops[0].left], [0], []
    for kind, a, b in ways:
        first = len(labellings) - 1
        order = rng.permutation(np.flatnonzero(a != b))
        for count in [*range(every, len(order), every), len(order)]:
            x = a.copy()
            x.flat[order[:count]] = b.flat[order[:count]]
            labellings.append(x)
            changed.append(changed[first] + count)
        legs.append((kind, first, len(labellings) - 1))
    energies = np.array([mrf.energy(x) for x in labellings])
    return Path(labellings, np.array(changed), energies, legs)


def surrogate_energies(runner: Runner, mrf: GridMRF, path: Path, search: str) -> np.ndarray:
    """The energies a local search ends with, started from each labelling of a path."""
    return np.array([runner.run(_PROBLEM, search, mrf, x).fun for x in path.labellings])


def unevenness(path: Path, energies: np.ndarray, kind: str | None = None) -> float:
    """The mean absolute difference between one point of a path and the next, on legs of one kind or on all."""
    steps = np.abs(np.diff(energies))
    legs = [steps[first:last] for leg, first, last in path.legs if kind in (None, leg)]
    return float(np.concatenate(legs).mean())


def constancy(energies: np.ndarray) -> float:
    """The share of points with the energy of the point before: how often a search ends where it ended."""
    return float(np.isclose(np.diff(energies), 0, atol=1e-6).mean())


def draw_path(path: Path, surrogates: dict[str, np.ndarray]) -> Figure:
    """Above, the energy on the way, with what local searches make of it; below, the latter alone."""
    figure, axes = new_figure(2, 1, height=3.6)
    whole, below = axes[:, 0]
    for kind, (colour, line, label) in _LEGS.items():
        for number, (first, last) in enumerate((a, b) for leg, a, b in path.legs if leg == kind):
            part = slice(first, last + 1)
            style = {"color": colour, "linestyle": line, "label": label if number == 0 else None}
            whole.plot(path.changed[part], path.energies[part], linewidth=1.6, **style)
    for ax in (whole, below):
        for search, energies in surrogates.items():
            colour, label = METHODS[search].colour, f"where {search} ends from there"
            ax.plot(path.changed, energies, ":", color=colour, linewidth=2, label=label)
        _mark_minima(ax, path)
        ax.grid(alpha=0.25)
        ax.set_ylabel("energy")
    _letters(
        axes, ("the way of T-ILS through the landscape", "the landscapes that local searches make of it, enlarged")
    )
    below.set_xlabel("sites changed on the way")
    legend_below(figure, whole)
    return figure


def _mark_minima(ax: Axes, path: Path) -> None:
    """Where jumps begin, and the end: filled circles; where a search ended that was not accepted: crosses."""
    starts = [first for leg, first, _ in path.legs if leg == "jump"] + [len(path.energies) - 1]
    ends = [first for leg, first, _ in path.legs if leg == "back"]
    label = "labelling that T-ILS goes on from"
    ax.scatter(path.changed[starts], path.energies[starts], s=34, c="#1b8a5a", marker="o", zorder=4, label=label)
    label = "not accepted: it goes back"
    ax.scatter(path.changed[ends], path.energies[ends], s=46, c="#d1495b", marker="X", zorder=4, label=label)


def draw_run(mrf: GridMRF, hops: list[Hop], best: np.ndarray) -> Figure:
    """Energies after each jump and after the local search that follows, on the left; the latter alone on the right."""
    figure, axes = new_figure(1, 2)
    number = np.arange(1, len(hops) + 1)
    jumped, improved = (np.array([mrf.energy(getattr(hop, name)) for hop in hops]) for name in ("jumped", "improved"))
    accepted = np.array([hop.accepted for hop in hops])
    for ax in axes[0]:
        if ax is axes[0, 0]:
            ax.plot(number, jumped, "^", color="#e08e45", markersize=3.5, label="after the jump")
        ax.plot(
            number[accepted],
            improved[accepted],
            "o",
            color="#1b8a5a",
            markersize=3.5,
            label="after the local search: accepted",
        )
        ax.plot(
            number[~accepted],
            improved[~accepted],
            "x",
            color="#d1495b",
            markersize=4.5,
            label="after the local search: not accepted",
        )
        ax.step(number, best, color="#111111", linewidth=1.2, where="post", label="best so far")
        ax.set(xlabel="iteration", ylabel="energy")
        ax.grid(alpha=0.25)
    _letters(axes, ("jump up, search down", "what the local search found, enlarged"))
    legend_below(figure, axes[0, 0])
    return figure


def _letters(axes: np.ndarray, titles: tuple[str, ...]) -> None:
    for letter, ax, title in zip("abc", axes.flat, titles, strict=False):
        ax.set_title(f"({letter}) {title}", fontsize=10, loc="left")
