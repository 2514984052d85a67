"""The cost of a sweep of T-ICM relative to ICM: operations counted, and time measured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from treefield.models.grid import GridMRF
from treefield.models.pairwise import Pairwise, Potts, Table
from treefield.protocols import TreeSet
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.plotting import new_figure
from treefield_reproduce.runner import Runner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETS = {"rows-columns": "#1f4e9c", "bands": "#1b8a5a"}  # and their colours
TABLE, POTTS = "table", "Potts"

_REPEATS = 15
_SLOWER = {  # why a sweep may take longer than its operations
    "rows-columns": "one row at a time fills an eighth of the vectors that ICM fills here",
    "bands": "only looking up pairwise costs is counted, not the rest of a sweep",
}

Times = dict[str, dict[int, dict[str, float]]]  # seconds by kind of cost, labels and tree set


def icm_operations(shape: tuple[int, int], labels: int) -> int:
    """Number of pairwise costs that a sweep of ICM looks up: one per label and neighbour of each site."""
    return 2 * _edges(shape) * labels


def t_icm_operations(shape: tuple[int, int], labels: int, kind: str = TABLE) -> int:
    """Number of pairwise costs that a sweep of T-ICM over rows and columns looks up.

    An edge lies in one tree, where two messages pass it, of labels**2 costs each (Potts: of `labels`). Two other
    trees, next to it, absorb it: `labels` costs each.
    """
    message = labels**2 if kind == TABLE else labels
    return 2 * _edges(shape) * (message + labels)


def _edges(shape: tuple[int, int]) -> int:
    rows, columns = shape
    return (rows - 1) * columns + rows * (columns - 1)


def add_costs(claims: Experiment, runner: Runner) -> None:
    """Time the sweeps; add the section and its claims."""
    shape = runner.effort.size // 2, runner.effort.size // 2
    times: Times = {kind: {} for kind in (TABLE, POTTS)}
    for labels in runner.effort.cost_labels:
        for kind in times:
            runner.notify(f"sweeps with {labels} labels, {kind}")
            times[kind][labels] = _time_sweeps(shape, labels, kind, runner.seed)
    claims.add_section(
        "What a sweep of T-ICM costs",
        [
            'Section 4.2, "Properties of T-ICM": "the time complexity per iteration of T-ICM is only S times higher '
            'than that of ICM", where S is the number of labels L.',
            "Counted are the pairwise costs looked up in one sweep. ICM looks at L labels for each neighbour of a "
            "site. In T-ICM two messages of L² costs pass every edge of a tree, and L costs are absorbed from each "
            "neighbour outside it, which together makes L + 1 times as many.",
            f"Measured are sweeps from a random labelling of {shape[0]} x {shape[1]} sites in float32, one thread, the "
            f"median of {_REPEATS}. ICM and bands have eight rows side by side in the processor's vectors; "
            "rows-columns, the paper's order, has one row at a time and fills only an eighth. Both send messages "
            "one way only and go back by pointers. Potts messages cost O(L) here instead of O(L²), so that the ratio "
            "does not grow with L.",
        ],
        table=_rows(shape, times),
        name="costs",
        figures={
            "costs": (
                _draw_ratios(times),
                "The time of one sweep of T-ICM, divided by that of ICM, against the number of labels; dashed: as "
                "many times as there are labels, as the paper has it.",
            )
        },
    )
    _compare(claims, times[TABLE])


def _time_sweeps(shape: tuple[int, int], labels: int, kind: str, seed: int) -> dict[str, float]:
    """The seconds of a sweep over each tree set."""
    rng = np.random.default_rng(seed)
    mrf = GridMRF(rng.random((*shape, labels), dtype=np.float32), _cost(kind, labels, rng))
    x = rng.integers(labels, size=shape, dtype=np.int32)
    sets = {name: mrf.backend.tree_set(name, threads=1) for name in ("sites", *SETS)}
    # in turn, so that what else the machine does slows all of them; the first round may compile
    rounds = [{name: _time_sweep(trees, x.copy()) for name, trees in sets.items()} for _ in range(_REPEATS + 1)][1:]
    return {name: float(np.median([seconds[name] for seconds in rounds])) for name in sets}


def _time_sweep(trees: TreeSet, x: np.ndarray) -> float:
    start = time.perf_counter()
    trees.sweep(x)
    return time.perf_counter() - start


def _cost(kind: str, labels: int, rng: np.random.Generator) -> Pairwise:
    if kind == POTTS:
        return Potts(0.5)
    half = rng.random((labels, labels))
    return Table(half + half.T)


def _rows(shape: tuple[int, int], times: Times) -> list[dict[str, str]]:
    return [
        {
            "costs": kind,
            "labels": f"{labels}",
            "operations, T-ICM / ICM": f"{t_icm_operations(shape, labels, kind) / icm_operations(shape, labels):.1f}",
            "ICM": f"{1e3 * seconds['sites']:.2f} ms",
            **{f"{name} / ICM": f"{seconds[name] / seconds['sites']:.1f}" for name in SETS},
        }
        for kind, by_labels in times.items()
        for labels, seconds in by_labels.items()
    ]


def _draw_ratios(times: Times) -> Figure:
    figure, axes = new_figure(1, len(times), height=3.6)
    for ax, (kind, by_labels) in zip(axes.flat, times.items(), strict=True):
        labels = np.array(list(by_labels))
        for name, colour in SETS.items():
            ratios = [seconds[name] / seconds["sites"] for seconds in by_labels.values()]
            ax.plot(labels, ratios, "o-", color=colour, label=name)
        ax.plot(labels, labels, "--", color="black", linewidth=1, label="L times")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
        ax.set_xticks(labels, [f"{count}" for count in labels])
        ax.yaxis.set_major_formatter("{x:g}")
        title = "a table of costs: messages in O(L²)" if kind == TABLE else "Potts: messages in O(L)"
        ax.set(xlabel="labels L", title=title)
        ax.grid(alpha=0.25)
        ax.sharey(axes[0, 0])
    axes[0, 0].set_ylabel("time of a sweep, T-ICM / ICM")
    axes[0, 0].legend(fontsize=8)
    return figure


def _compare(claims: Experiment, by_labels: dict[int, dict[str, float]]) -> None:
    """Add a claim for each tree set: the ratio of times is at most that of operations."""
    few, many = min(by_labels), max(by_labels)
    for name, why in _SLOWER.items():
        ratios = {labels: seconds[name] / seconds["sites"] for labels, seconds in by_labels.items()}
        over = [f"{labels}" for labels, ratio in ratios.items() if ratio > labels + 1]
        claims.check_claim(
            f"Section 4.2: a sweep of T-ICM costs L times ICM's ({name})",
            f"{ratios[few]:.1f} (L = {few}), {ratios[many]:.1f} (L = {many})",
            not over,
            f"more than L + 1 times the time with {', '.join(over)} labels: {why}",
        )
