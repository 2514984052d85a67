"""The result of a solver."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from treefield.apps.noise import Noise
    from treefield.models.graph import GraphMRF
    from treefield.models.grid import GridMRF
    from treefield.protocols import DualMessages

    OptimizeResult = dict[str, Any]  # SciPy has no type hints: with it as a base, no attribute would be checked
else:
    from scipy.optimize import OptimizeResult

TRACE = np.dtype([("iteration", "i8"), ("seconds", "f8"), ("energy", "f8"), ("best", "f8"), ("bound", "f8")])

_LONGEST_START = 20  # rows of a trace
_CLIPS = 2.5  # times the range of the settled values: a larger range is cut off
_MARGIN = 0.05  # of the range, above and below


class Status(enum.IntEnum):
    """Why a search ended.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.random.default_rng(0).random((8, 8, 3)), tf.Potts(0.3))
    >>> tf.t_ils(mrf, maxiter=5, rng=0).status is tf.Status.LIMIT
    True
    """

    RUNNING = -1  # not ended: what a callback sees
    CONVERGED = 0  # the search ended by itself: nothing more to gain, or proved optimal
    LIMIT = 1  # maxiter, time_limit or max_backtracks
    STOPPED = 2  # by the callback
    INTERRUPTED = 3  # by Ctrl-C or SIGTERM
    INFEASIBLE = 4  # the labelling contains a forbidden cost


class MAPResult(OptimizeResult):
    """The answer of a solver: a `scipy.optimize.OptimizeResult`.

    Attributes
    ----------
    x : int32 array
        The best labelling seen; for a `TiledMRF` the store that it was written to.
    fun : float
        Its energy, exactly ``mrf.energy(x)``.
    success : bool
        Whether `status` is `Status.CONVERGED`.
    status : Status
        Why the search ended.
    message : str
        The same in words.
    nit : int
        Iterations (sweeps) made.
    method : str
        The solver's name.
    lower_bound, gap : float
        A proved lower bound and (fun - lower_bound) / max(|fun|, |lower_bound|); nan without a bound.
    proof : str or None
        How the labelling was proved optimal: "tree" (the model is one), "elimination" (of all sites), "bound" (the
        lower bound has reached the energy, up to the rounding of float64 sums); None if it was not.
    trace : structured array
        Columns iteration, seconds, energy, best, bound; row 0 is the start, then one row per iteration. Seconds leave
        compilation out.
    runs : float array
        The energy of each search, where several were merged.
    messages : DualMessages
        The messages that give the bound, with ``keep_messages=True``: for ``x0`` of a model that differs in its costs.
    mrf, cost_volume, noise
        The model, the matching costs and the noise that was found, where an application with ``full_output=True`` keeps
        them.
    """

    x: np.ndarray
    fun: float
    success: bool
    status: Status
    message: str
    nit: int
    method: str
    lower_bound: float
    gap: float
    proof: str | None
    trace: np.ndarray
    runs: np.ndarray
    messages: DualMessages
    mrf: GridMRF | GraphMRF
    cost_volume: np.ndarray
    noise: Noise

    def __repr__(self) -> str:
        if "fun" not in self:
            return "MAPResult()"
        figures = [f"fun={self.fun:.10g}"]
        if not math.isnan(self.lower_bound):
            figures += [f"lower_bound={self.lower_bound:.10g}", f"gap={self.gap:.3g}"]
        shape = " x ".join(map(str, self.x.shape)) if "x" in self else "no"
        end = f"nit={self.nit}, {self.status.name}, {self.message!r}"
        return f"MAPResult({', '.join(figures)}, method={self.method!r}, {end}, x=<{shape} labels>)"

    def __dir__(self) -> list[str]:
        return sorted({*self, "plot", *dict.__dir__(self)})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw energy, best energy and bound against seconds; returns the Matplotlib axes.

        The y axis spans the curves without the first quarter of their points, at most 20, if those would make it more
        than 2.5 times as long: a start far off would flatten the rest. ``ax.autoscale()`` shows everything. Needs the
        extra ``treefield[plot]``.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError('plotting needs Matplotlib: pip install "treefield[plot]"') from error
        ax = plt.gca() if ax is None else ax
        trace = self.trace
        ax.plot(trace["seconds"], trace["energy"], ".-", label=f"{self.method}: energy", linewidth=1)
        if np.any(trace["best"] < trace["energy"]):
            ax.plot(trace["seconds"], trace["best"], label=f"{self.method}: best")
        if np.isfinite(trace["bound"]).any():
            ax.plot(trace["seconds"], trace["bound"], "--", label=f"{self.method}: lower bound")
        limits = _limits_without_start([np.asarray(line.get_ydata(), float) for line in ax.lines])
        if limits is not None:
            ax.set_ylim(limits)
        ax.set_xlabel("seconds")
        ax.set_ylabel("energy")
        ax.legend()
        return ax


def settled(values: np.ndarray) -> np.ndarray:
    """The finite values of a trace without the first quarter of them, at most 20: a start far off hides the rest."""
    values = values[np.isfinite(values)]
    return values[min(math.ceil((len(values) - 1) / 4), _LONGEST_START) :]


def _limits_without_start(curves: list[np.ndarray]) -> tuple[float, float] | None:
    """Limits for what the curves are once settled; None if all of their values are about as far apart."""
    values = np.concatenate([settled(curve) for curve in curves])
    everything = np.concatenate([curve[np.isfinite(curve)] for curve in curves])
    if not len(values) or not 0 < _CLIPS * np.ptp(values) < np.ptp(everything):
        return None
    margin = _MARGIN * np.ptp(values)
    return float(values.min() - margin), float(values.max() + margin)


def make_result(
    *,
    x: np.ndarray,
    fun: float,
    nit: int,
    status: Status,
    message: str,
    method: str,
    lower_bound: float,
    trace: np.ndarray,
    proof: str | None = None,
    **extra: object,
) -> MAPResult:
    """Build a result: `success` and `gap` follow from the status and the energies."""
    return MAPResult(
        x=x,
        fun=fun,
        nit=nit,
        success=status == Status.CONVERGED,
        status=status,
        message=message,
        method=method,
        lower_bound=lower_bound,
        gap=relative_gap(fun, lower_bound),
        proof=proof,
        trace=trace,
        **extra,
    )


def amend_result(result: MAPResult, **changes: object) -> MAPResult:
    """A copy of a result with other values; `success` and `gap` are computed again."""
    values = {name: value for name, value in result.items() if name not in ("success", "gap")}
    return make_result(**(values | changes))


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
