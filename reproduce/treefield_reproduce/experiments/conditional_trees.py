"""Figure 2: conditional trees on a grid, as the package's tree sets make them."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

import numpy as np

from treefield.backends.grid import schedules
from treefield.backends.grid.forests import combs
from treefield_reproduce.plotting import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_TREE, _BLANKET, _OTHER = "white", "#2b2d33", "#b9bdc6"  # how sites are filled
_EDGE, _DUMMY, _FAINT = "#1f4e9c", "#d1495b", "#c9ccd3"


@dataclasses.dataclass(frozen=True)
class ConditionalTree:
    """Sites (flat numbers) that are searched at once, and the dummy edges (pairs of sites) that join them."""

    title: str
    sites: np.ndarray
    dummies: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    cuts: list[int] = dataclasses.field(default_factory=list)  # rows (columns) with which a further band begins
    axis: int = 1  # along which the lines go: 1 for rows


def tree_sets(shape: tuple[int, int]) -> dict[str, list[ConditionalTree]]:
    """Every tree of every set, in the order of a sweep."""
    rows, columns = (1, "row"), (0, "column")
    return {
        "combs": [
            ConditionalTree(f"a comb of {word}s", sites)
            for word, sites in zip(("row", "row", "column", "column"), combs(shape), strict=True)
        ],
        "alternating": [
            ConditionalTree(f"every second {word}", lines.ravel(), _connect_lines(lines))
            for axis, word in (rows, columns)
            for lines in _phases(shape, schedules.alternating(shape, axis))
        ],
        "rows-columns": [
            ConditionalTree(f"one {word}", lines.ravel())
            for axis, word in (rows, columns)
            for lines in _steps(shape, schedules.rows_columns(shape, axis))
        ],
        "bands": [
            ConditionalTree(f"bands of {word}s, step {number}", lines.ravel(), cuts=_cuts(plan), axis=axis)
            for axis, word in (rows, columns)
            for plan in [schedules.bands(shape, axis, labels=2)]
            for number, lines in enumerate(_steps(shape, plan), 1)
        ],
    }


def _steps(shape: tuple[int, int], plan: schedules.Schedule) -> list[np.ndarray]:
    """The sites that each step of a schedule solves, (lines, length)."""
    order = np.concatenate([steps for queues in plan.phases(None) for steps in queues])
    return [_lines(shape, plan, step) for step in order]


def _phases(shape: tuple[int, int], plan: schedules.Schedule) -> list[np.ndarray]:
    """The sites of each phase: where no lines touch, its steps make one tree."""
    return [
        np.concatenate([_lines(shape, plan, step) for steps in queues for step in steps])
        for queues in plan.phases(None)
    ]


def _lines(shape: tuple[int, int], plan: schedules.Schedule, step: int) -> np.ndarray:
    active = plan.active[step] >> np.arange(schedules.LANES) & 1 == 1
    lines = np.moveaxis(np.arange(shape[0] * shape[1]).reshape(shape), plan.axis, -1)
    return lines[plan.lines[plan.blocks[step]][active]]


def _connect_lines(lines: np.ndarray) -> list[tuple[int, int]]:
    """From the first site of each line to that of the next."""
    first = [int(site) for site in np.sort(lines[:, 0])]
    return list(itertools.pairwise(first))


def _cuts(plan: schedules.Schedule) -> list[int]:
    """The lines with which bands begin, but for the first: those of the first step."""
    first = plan.lines[0]
    return [int(line) for line in first[first > 0]]


def edges(shape: tuple[int, int]) -> np.ndarray:
    """The edges of a grid: pairs of sites."""
    number = np.arange(shape[0] * shape[1]).reshape(shape)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def draw_trees(shape: tuple[int, int], trees: list[ConditionalTree], columns: int = 4) -> Figure:
    """A panel for each tree, lettered, and a key below."""
    rows = -(-len(trees) // columns)
    figure, axes = new_figure(rows, columns, width=11.0, height=11.0 / columns * shape[0] / shape[1] + 0.25)
    for letter, ax, tree in zip("abcdefghijkl", axes.flat, trees, strict=False):
        _draw_tree(ax, shape, tree)
        share = f"{len(tree.sites)} of {shape[0] * shape[1]} sites"
        ax.set_title(f"({letter}) {tree.title}: {share}", fontsize=9)
    figure.legend(handles=_legend_handles(), loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return figure


def _draw_tree(ax: Axes, shape: tuple[int, int], tree: ConditionalTree) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import FancyArrowPatch

    inside = np.isin(np.arange(shape[0] * shape[1]), tree.sites)
    pairs = edges(shape)
    ends = inside[pairs].sum(axis=1)  # how many ends of an edge are in the tree
    place = np.stack(np.unravel_index(np.arange(inside.size), shape)[::-1], axis=1).astype(float)
    ax.add_collection(LineCollection(list(place[pairs[ends == 2]]), colors=_EDGE, linewidths=2.2, zorder=2))
    unused = LineCollection(list(place[pairs[ends == 0]]), colors=_FAINT, linewidths=0.9, linestyles="--", zorder=1)
    ax.add_collection(unused)
    _draw_absorbed(ax, place, pairs[ends == 1], inside)
    blanket = np.zeros_like(inside)
    blanket[pairs[ends == 1].ravel()] = True
    for sites, fill in ((inside, _TREE), (blanket & ~inside, _BLANKET), (~blanket & ~inside, _OTHER)):
        edge = _EDGE if fill == _TREE else fill
        ax.scatter(place[sites, 0], place[sites, 1], s=44, facecolors=fill, edgecolors=edge, linewidths=1.3, zorder=3)
    for a, b in tree.dummies:
        bow = 0.55 if place[a, 0] == place[b, 0] else -0.55  # outside the grid, on its left or above it
        curve = FancyArrowPatch(
            tuple(place[a]),
            tuple(place[b]),
            arrowstyle="-",
            connectionstyle=f"arc3,rad={bow}",
            shrinkA=4,
            shrinkB=4,
            linestyle=":",
            linewidth=1.8,
            color=_DUMMY,
            zorder=2,
        )
        ax.add_patch(curve)
    for cut in tree.cuts:
        (ax.axhline if tree.axis == 1 else ax.axvline)(cut - 0.5, color="#8a8f98", linewidth=0.8)
    ax.set(xlim=(-1.1, shape[1] - 0.4), ylim=(shape[0] - 0.4, -1.1), aspect="equal")
    ax.set_axis_off()


def _draw_absorbed(ax: Axes, place: np.ndarray, pairs: np.ndarray, inside: np.ndarray) -> None:
    """Arrows from fixed sites to those of the tree that absorb their costs."""
    fixed = np.where(inside[pairs[:, 0]], pairs[:, 1], pairs[:, 0])
    tail, head = place[fixed], place[pairs.sum(axis=1) - fixed]
    reach = 0.72 * (head - tail)  # up to the head's circle
    ax.quiver(
        *tail.T,
        *reach.T,
        color="#6f7480",
        zorder=1,
        width=0.012,
        headwidth=5,
        headlength=6,
        headaxislength=5,
        angles="xy",
        scale_units="xy",
        scale=1,
        units="inches",
    )


def _legend_handles() -> list[Line2D]:
    from matplotlib.lines import Line2D

    def dot(fill: str, label: str) -> Line2D:
        edge = _EDGE if fill == _TREE else fill
        return Line2D([], [], marker="o", linestyle="", markerfacecolor=fill, markeredgecolor=edge, label=label)

    return [
        dot(_TREE, "site of the tree"),
        dot(_BLANKET, "fixed, next to the tree (its Markov blanket)"),
        dot(_OTHER, "fixed, does not matter now"),
        Line2D([], [], color=_EDGE, linewidth=2.2, label="edge of the tree"),
        Line2D([], [], color="#6f7480", marker=">", markersize=4, linewidth=1, label="cost that is absorbed (Eq. 8)"),
        Line2D([], [], color=_FAINT, linestyle="--", label="edge not in use"),
        Line2D([], [], color=_DUMMY, linestyle=":", linewidth=1.8, label="dummy edge, of cost 0"),
        Line2D([], [], color="#8a8f98", linewidth=0.8, label="between two bands"),
    ]
