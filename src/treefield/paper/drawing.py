"""How the experiments draw: curves with bands, and rows of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefield.paper.methods import METHODS

_POINTS = 160  # of a curve


def new_figure(rows: int, columns: int, width: float = 9.6, height: float = 3.8) -> tuple[Any, np.ndarray]:
    """A figure and its axes, (rows, columns) of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * rows), layout="constrained", facecolor="white")
    return figure, figure.subplots(rows, columns, squeeze=False)


def draw_curves(ax: Any, runs: dict[str, list[np.ndarray]], against: str, title: str) -> None:
    """The best energy of each method's traces against "seconds" or "iteration", logarithmic: the median, and a band
    from the least to the greatest."""
    for method, traces in runs.items():
        grid = _grid([trace[against][1:].astype(float) for trace in traces])  # row 0 is the start
        curves = np.array([_sampled(trace, against, grid) for trace in traces])
        style = {"color": METHODS[method].colour, "linestyle": METHODS[method].line} if method in METHODS else {}
        (drawn,) = ax.plot(grid, np.median(curves, axis=0), label=method, **style)
        if len(traces) > 1:
            band = {"color": drawn.get_color(), "alpha": 0.18, "linewidth": 0}
            ax.fill_between(grid, curves.min(axis=0), curves.max(axis=0), **band)
    ax.set_xscale("log")
    ax.set(xlabel=against if against == "seconds" else "iterations", title=title)
    ax.grid(alpha=0.25)
    _thousands(ax)


def _grid(columns: list[np.ndarray]) -> np.ndarray:
    """Where curves are drawn: over what they cover together, evenly on a logarithmic axis."""
    values = np.concatenate(columns)
    values = values[values > 0]
    return np.geomspace(values.min(), values.max(), _POINTS) if len(values) else np.ones(1)


def _sampled(trace: np.ndarray, against: str, grid: np.ndarray) -> np.ndarray:
    """The best energy at each point of the grid."""
    return trace["best"][np.maximum(0, np.searchsorted(trace[against], grid, side="right") - 1)]


def legend_below(figure: Any, ax: Any) -> None:
    """One legend for all axes, where it hides nothing."""
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(4, len(names)), fontsize=8, frameon=False)


def zoom(ax: Any, energies: list[float], share: float = 0.15) -> None:
    """Show the range of the energies, and a little more."""
    low, high = min(energies), max(energies)
    room = max(high - low, 1e-3 * abs(high), 1e-9)
    ax.set_ylim(low - share * room, high + share * room)


def _thousands(ax: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def draw_pictures(pictures: list[tuple[str, np.ndarray]], columns: int, width: float = 9.6) -> Any:
    """Pictures in rows, each under its title: uint8, grey or colour."""
    rows = -(-len(pictures) // columns)
    height, across = pictures[0][1].shape[:2]
    figure, axes = new_figure(rows, columns, width, width / columns * height / across + 0.3)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, (title, pixels) in zip(axes.flat, pictures, strict=False):
        ax.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        ax.set_title(title, fontsize=9)
    return figure
