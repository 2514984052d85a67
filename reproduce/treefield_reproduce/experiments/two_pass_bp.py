"""Figure 1: belief propagation on a tree in two passes, with every message."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from treefield.models.grid import GridMRF
from treefield.models.pairwise import Table
from treefield_reproduce.plotting import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARENTS = (-1, 0, 0, 1, 1, 2, 2)  # of sites that are numbered from the root down
PLACES = (4, 3, 5, 0, 6, 2, 8)  # where they lie in a grid of 3 x 3: an H, of which sites 1 and 7 are no part
UNARY = np.array([[4, 2, 3], [5, 1, 4], [0, 6, 3], [0, 5, 7], [6, 4, 0], [1, 3, 8], [7, 4, 0]], np.float32)
WEIGHT = 2.0  # cost of an edge: twice the difference of its labels

_NAMES = "abcdefg"
_SPOTS = ((3.5, 2.0), (1.5, 1.0), (5.5, 1.0), (0.2, 0.0), (2.8, 0.0), (4.2, 0.0), (6.8, 0.0))
_UP, _DOWN, _LABELS = "#1f4e9c", "#d1495b", ("#f3d9a4", "#a9cfdd", "#b8dcb4")


@dataclasses.dataclass(frozen=True)
class TwoPasses:
    """Messages to each site's parent (`up`) and from it (`down`), and each site's sum of costs; (sites, labels)."""

    up: np.ndarray
    down: np.ndarray
    sums: np.ndarray
    labels: np.ndarray


def two_passes(unary: np.ndarray, parents: tuple[int, ...], tables: np.ndarray) -> TwoPasses:
    """Min-sum belief propagation: parents have lower numbers; `tables[j]` is [label of j, label of its parent]."""
    up, down, sums = np.zeros_like(unary), np.zeros_like(unary), unary.copy()
    for j in range(len(parents) - 1, 0, -1):  # Eq. 5, leaves first: all from below is in the sum already
        up[j] = (sums[j][:, None] + tables[j]).min(axis=0)
        sums[parents[j]] += up[j]
    for j in range(1, len(parents)):  # Eq. 5, the root first: all the parent knows, but for what came from j
        down[j] = (sums[parents[j]] - up[j] + tables[j]).min(axis=1)
        sums[j] += down[j]
    return TwoPasses(up, down, sums, sums.argmin(axis=1))  # Eq. 6


def in_grid(unary: np.ndarray, weights: np.ndarray) -> GridMRF:
    """The same tree in a grid of 3 x 3, for the package's solver; `weights[j]` is of the edge from j to its parent."""
    costs = np.zeros((9, unary.shape[1]), np.float32)
    costs[list(PLACES)] = unary
    down, across = np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)
    for j, parent in enumerate(PARENTS[1:], 1):
        first, second = sorted((PLACES[j], PLACES[parent]))
        (across if second == first + 1 else down)[divmod(first, 3)] = weights[j]
    return GridMRF(costs.reshape(3, 3, -1), Table(differences(unary.shape[1])), weights=(down, across))


def differences(labels: int) -> np.ndarray:
    """|a - b| for every two labels."""
    return np.abs(np.subtract.outer(np.arange(labels), np.arange(labels))).astype(float)


def draw_passes() -> tuple[Figure, TwoPasses]:
    """The upward pass, the downward pass and the labels, one below the other; and the numbers."""
    tables = np.broadcast_to(WEIGHT * differences(UNARY.shape[1]), (len(UNARY), 3, 3))
    passes = two_passes(UNARY, PARENTS, tables)
    figure, axes = new_figure(3, 1, width=8.6, height=3.3)
    others = range(1, len(PARENTS))
    up_order = {j: number for number, j in enumerate(sorted(others, key=lambda j: _SPOTS[j][1]), 1)}
    down_order = {j: len(others) + j for j in others}
    _draw_messages(axes[0, 0], passes.up, up_order, up=True)
    _draw_messages(axes[1, 0], passes.down, down_order, up=False)
    _draw_labels(axes[2, 0], passes)
    return figure, passes


def _draw_messages(ax: Axes, messages: np.ndarray, order: dict[int, int], *, up: bool) -> None:
    colour = _UP if up else _DOWN
    for j, number in order.items():
        child, parent = np.array(_SPOTS[j]), np.array(_SPOTS[PARENTS[j]])
        tail, head = (child, parent) if up else (parent, child)
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkA": 17, "shrinkB": 17}
        ax.annotate("", tuple(head), tuple(tail), arrowprops=arrow)
        _draw_text(ax, 0.55 * child + 0.45 * parent, f"{number}:  {_format_row(messages[j])}", colour, box=True)
    for j, spot in enumerate(_SPOTS):
        _draw_circle(ax, spot, _NAMES[j], "white")
        _draw_text(ax, _text_spot(j), f"E = {_format_row(UNARY[j])}", "#444")
    title = "(a) upward pass: from the leaves to the root" if up else "(b) downward pass: from the root to the leaves"
    _tidy(ax, title)


def _draw_labels(ax: Axes, passes: TwoPasses) -> None:
    for j in range(1, len(PARENTS)):
        ax.plot(*zip(_SPOTS[j], _SPOTS[PARENTS[j]], strict=True), color="#8a8f98", linewidth=1.3, zorder=1)
    for j, spot in enumerate(_SPOTS):
        label = int(passes.labels[j])
        _draw_circle(ax, spot, f"{label}", _LABELS[label])
        sums = [rf"$\mathbf{{{value:g}}}$" if k == label else f"{value:g}" for k, value in enumerate(passes.sums[j])]
        _draw_text(ax, _text_spot(j), f"{_NAMES[j]}:  {'  '.join(sums)}", "#444")
    _tidy(ax, "(c) labels: where costs and all messages sum to the least")


def _text_spot(site: int) -> tuple[float, float]:
    """The position of a site's numbers: above it, below a leaf."""
    across, up = _SPOTS[site]
    return across, up + (0.36 if up > 0 else -0.36)


def _format_row(values: np.ndarray) -> str:
    return "  ".join(f"{value:g}" for value in values)


def _draw_circle(ax: Axes, spot: tuple[float, float], text: str, fill: str) -> None:
    ax.scatter(*spot, s=620, facecolors=fill, edgecolors="#2b2d33", linewidths=1.4, zorder=3)
    ax.text(*spot, text, ha="center", va="center", fontsize=13, zorder=4)


def _draw_text(ax: Axes, spot: tuple[float, float] | np.ndarray, text: str, colour: str, *, box: bool = False) -> None:
    frame = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": colour, "linewidth": 0.8} if box else None
    ax.text(spot[0], spot[1], text, ha="center", va="center", fontsize=10, color=colour, bbox=frame, zorder=5)


def _tidy(ax: Axes, title: str) -> None:
    ax.set(xlim=(-0.6, 7.6), ylim=(-0.6, 2.6))
    ax.set_title(title, fontsize=11, loc="left")
    ax.set_axis_off()
