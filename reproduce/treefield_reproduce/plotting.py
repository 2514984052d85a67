"""Matplotlib figures of the experiments: curves with bands, and rows of pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treefield_reproduce.methods import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 160  # of a curve


def new_figure(rows: int, columns: int, width: float = 9.6, height: float = 3.8) -> tuple[Figure, np.ndarray]:
    """A figure and its axes, (rows, columns) of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * rows), layout="constrained", facecolor="white")
    return figure, figure.subplots(rows, columns, squeeze=False)


def draw_curves(ax: Axes, runs: dict[str, list[np.ndarray]], against: str, title: str) -> None:
    """Plot the best energy of each method against "seconds" or "iteration" on a logarithmic axis: the median of its
    traces, and a band from the least to the greatest."""
    for method, traces in runs.items():
        grid = _grid([trace[against][1:].astype(float) for trace in traces])  # row 0 is the start
        curves = np.array([_sampled(trace, against, grid) for trace in traces])
        (drawn,) = ax.plot(grid, np.median(curves, axis=0), label=method)
        if method in METHODS:
            drawn.set(color=METHODS[method].colour, linestyle=METHODS[method].line)
        if len(traces) > 1:
            low, high = curves.min(axis=0), curves.max(axis=0)
            ax.fill_between(grid, low, high, color=drawn.get_color(), alpha=0.18, linewidth=0)
    ax.set_xscale("log")
    ax.set(xlabel=against if against == "seconds" else "iterations", title=title)
    ax.grid(alpha=0.25)
    _thousands(ax)


def _grid(columns: list[np.ndarray]) -> np.ndarray:
    """Points spread evenly on a logarithmic axis over the range of all columns."""
    values = np.concatenate(columns)
    values = values[values > 0]
    return np.geomspace(values.min(), values.max(), _POINTS) if len(values) else np.ones(1)


def _sampled(trace: np.ndarray, against: str, grid: np.ndarray) -> np.ndarray:
    """The best energy at each point of the grid."""
    return trace["best"][np.maximum(0, np.searchsorted(trace[against], grid, side="right") - 1)]


def legend_below(figure: Figure, ax: Axes) -> None:
    """Add one legend for all axes below them."""
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(4, len(names)), fontsize=8, frameon=False)


def zoom(ax: Axes, energies: list[float], share: float = 0.15) -> None:
    """Limit the y axis to the range of the energies plus a margin."""
    low, high = min(energies), max(energies)
    room = max(high - low, 1e-3 * abs(high), 1e-9)
    ax.set_ylim(low - share * room, high + share * room)


def _thousands(ax: Axes) -> None:
    from matplotlib.ticker import FuncFormatter

    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def draw_pictures(pictures: list[tuple[str, np.ndarray]], columns: int, width: float = 9.6) -> Figure:
    """Draw uint8 pictures, grey or colour, in rows, each with its title."""
    rows = -(-len(pictures) // columns)
    height, across = pictures[0][1].shape[:2]
    figure, axes = new_figure(rows, columns, width, width / columns * height / across + 0.3)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, (title, pixels) in zip(axes.flat, pictures, strict=False):
        ax.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        ax.set_title(title, fontsize=9)
    return figure
