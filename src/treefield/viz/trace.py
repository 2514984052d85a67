"""Energy against time."""

from __future__ import annotations

from typing import Any

import numpy as np


def plot_trace(result: Any, ax: Any = None) -> Any:
    """Draw a result's energy, best energy and bound against seconds; returns the Matplotlib axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('plotting needs Matplotlib: pip install "treefield[plot]"') from error
    ax = plt.gca() if ax is None else ax
    trace = result.trace
    ax.plot(trace["seconds"], trace["energy"], ".-", label=f"{result.method}: energy", linewidth=1)
    if np.any(trace["best"] < trace["energy"]):
        ax.plot(trace["seconds"], trace["best"], label=f"{result.method}: best")
    if np.isfinite(trace["bound"]).any():
        ax.plot(trace["seconds"], trace["bound"], "--", label=f"{result.method}: lower bound")
    ax.set_xlabel("seconds")
    ax.set_ylabel("energy")
    ax.legend()
    return ax
