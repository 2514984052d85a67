"""TRW-S: sequential tree-reweighted message passing (Kolmogorov 2006), a lower bound from trees."""

from __future__ import annotations

from treefield.protocols import Callback, Model, Seed, StartOrResult
from treefield.results import MAPResult, Status, amend_result
from treefield.solvers.loop import as_limits
from treefield.solvers.run import begin, split_start
from treefield.validation import as_choice, as_model, as_real_scalar

_MAXITER = 1000  # where no limit is given
_WINDOW = 20  # iterations in which the bound must rise


def trw(
    mrf: Model,
    x0: StartOrResult = "unary",
    *,
    arithmetic: str = "auto",
    keep_messages: bool = False,
    tol: float = 1e-6,
    maxiter: int | None = None,
    patience: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    progress: bool = False,
) -> MAPResult:
    """Bound the energy from below by sequential tree-reweighted message passing, and decode its messages.

    An iteration passes messages to all sites in raster order and back. The grid's edges are shared out among chains
    whose least energies, added up, can be no more than the least energy of the whole; the messages shift costs between
    the chains so that this sum rises. On a tree, and on models of two labels with submodular costs, the bound reaches
    the least energy; on hard models a gap stays. Every forward pass suggests a labelling, and the best is returned.

    Parameters
    ----------
    mrf : GridMRF or GraphMRF
    x0 : labelling, MAPResult, "random", "unary" or "scan-line"
        The labelling to beat, row 0 of the trace. Messages start at 0 unless it is a result that has `messages`.
    arithmetic : "auto", "int16", "float32" or "float64"
        The numbers that messages are made of. In int16 and float32 costs are integers (times a scale, rounded down),
        and the bound is exact; float64 takes any costs, and a margin for rounding is taken off. "auto" starts with the
        first of these that can hold the costs and goes on to the next when its bound no longer rises; to float64, where
        another holds the costs, only with ``tol=0``.
    keep_messages : bool
        Keep the messages as ``res.messages``: as `x0` of a model of the same sites, labels and edges whose costs differ
        a little, the result saves most of the time.
    tol : float
        Stop when the gap is at most this, or when the bound has risen by less than this share in 20 iterations.
    maxiter, time_limit : optional
        The largest number of iterations, and of seconds; 1000 iterations if neither is given.
    patience, callback, rng, progress
        As in `t_ils`.

    Returns
    -------
    MAPResult
        With `lower_bound`, which holds for every labelling, rounding included, and `gap`. Memory: three numbers (four
        in 3-D) of the arithmetic per site and label, so 6, 12 or 24 bytes, and seven per site; rows and columns are
        padded by up to 16. While int16 is refined to float32 both are there.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.random.default_rng(0).integers(0, 50, (16, 16, 4)), tf.Potts(10))
    >>> res = tf.trw(mrf)
    >>> res.lower_bound <= res.fun, res.gap < 0.01
    (True, True)
    """
    as_model(mrf)
    as_choice(arithmetic, "arithmetic", ("auto", "int16", "float32", "float64"))
    tol = as_real_scalar(tol, "tol")
    limits = as_limits(maxiter, time_limit, callback, patience, progress=progress, tol=tol, default=_MAXITER)
    x0, messages = split_start(x0)
    run, _ = begin("trw", mrf, x0, rng, limits)
    dual = None
    with run:
        run.keep_best()
        dual = mrf.backend.dual("exact" if arithmetic == "auto" and tol == 0 else arithmetic)
        if messages is not None:
            dual.start_from(messages)
        rise = Rise(tol)
        while run.should_continue():
            run.bound = dual.iterate(run.x)
            run.margin = dual.margin
            run.record(None)
            if not rise.should_continue(run.bound):
                if dual.refine(run.best - run.bound):
                    rise = Rise(tol)
                elif run.should_continue():
                    run.stop(Status.CONVERGED, "converged: the bound no longer rises")
    result = run.result()
    return amend_result(result, messages=dual.get_messages()) if keep_messages and dual is not None else result


class Rise:
    """Whether a bound still rises."""

    def __init__(self, tol: float) -> None:
        self._tol, self._bounds = tol, []  # type: float, list[float]

    def should_continue(self, bound: float) -> bool:
        """Note the bound of an iteration; whether another one may raise it."""
        self._bounds.append(bound)
        if len(self._bounds) <= _WINDOW:
            return True
        return bound - self._bounds.pop(0) > self._tol * abs(bound)
