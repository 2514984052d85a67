"""What a solver returns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

TRACE = np.dtype([("iteration", "i8"), ("seconds", "f8"), ("energy", "f8"), ("best", "f8"), ("bound", "f8")])


class MAPResult(OptimizeResult):
    """The answer of a solver: a `scipy.optimize.OptimizeResult`.

    Attributes
    ----------
    x : int32 array
        The best labelling seen.
    fun : float
        Its energy, exactly ``mrf.energy(x)``.
    nit : int
        Iterations (sweeps) made.
    success, status, message
        Whether the run ended as asked, a code, and the reason in words. 0: converged; 1: `maxiter`; 2: `time_limit`; 3:
        stopped by the callback; 4: interrupted; 5: the labelling holds a forbidden cost.
    method : str
        The solver's name.
    lower_bound, gap : float
        A proven lower bound and (fun - lower_bound) / max(|fun|, |lower_bound|); nan without a bound.
    trace : structured array
        Columns iteration, seconds, energy, best, bound; row 0 is the start, then one row per iteration. Seconds leave
        compilation out.
    """

    def plot(self, ax: Any = None) -> Any:
        """Draw energy and bound against time; returns the Matplotlib axes. Needs the extra ``treefield[plot]``."""
        from treefield.viz.trace import plot_trace

        return plot_trace(self, ax)


def tightened(bound: float, is_whole: bool) -> float:
    """A lower bound, rounded up where all energies are integers."""
    return float(math.ceil(bound)) if is_whole and math.isfinite(bound) else float(bound)


def relative_gap(fun: float, lower_bound: float) -> float:
    """(fun - lower_bound) / max(|fun|, |lower_bound|), 0 where they are equal."""
    if fun == lower_bound:
        return 0.0
    if math.isnan(lower_bound):
        return math.nan
    if math.isinf(fun) or math.isinf(lower_bound):
        return math.inf
    return (fun - lower_bound) / max(abs(fun), abs(lower_bound))
