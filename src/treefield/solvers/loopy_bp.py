"""Loopy belief propagation: messages as on a tree, on a graph that is none (section 3.4 of the paper)."""

from __future__ import annotations

from treefield.protocols import Callback, Model, Seed, StartOrResult
from treefield.results import MAPResult, Status
from treefield.solvers.loop import as_limits
from treefield.solvers.run import begin
from treefield.validation import as_choice, as_model, as_real_scalar

_MAXITER = 100  # where no limit is given


def loopy_bp(
    mrf: Model,
    x0: StartOrResult = "unary",
    *,
    schedule: str = "parallel",
    damping: float = 0.0,
    decoding: str = "independent",
    tol: float = 1e-6,
    maxiter: int | None = None,
    patience: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    progress: bool = False,
) -> MAPResult:
    """Minimise the energy by min-sum loopy belief propagation.

    With its defaults this is the paper's: all messages at once, undamped, each site takes the label of its least
    belief. There is no guarantee: messages may not converge, and what they say may be far from the minimum; the best
    labelling that any iteration led to is returned. Damped, sequential updates that are decoded sequentially are a
    stronger variant.

    Parameters
    ----------
    mrf : GridMRF or GraphMRF
    x0 : labelling, MAPResult, "random", "unary" or "scan-line"
        The labelling to beat, row 0 of the trace; messages start at 0 whatever it is.
    schedule : "parallel" or "sequential"
        All messages from the old ones; or along each axis, forth and back, each from those just made.
    damping : float in [0, 1)
        The share of the old message that stays.
    decoding : "independent" or "sequential"
        Each site by itself (Eq. 6), or one after the other given the labels of those before it.
    tol : float
        Converged when no message changes by more than this times the greatest cost.
    maxiter, time_limit : optional
        The largest number of iterations, and of seconds; 100 iterations if neither is given.
    patience, callback, rng, progress
        As in `t_ils`.

    Returns
    -------
    MAPResult
        Memory: a copy of the unary and 4 messages of L numbers per site (6 in 3-D), twice that in parallel.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.random.default_rng(0).random((16, 16, 4)), tf.Potts(0.2))
    >>> res = tf.loopy_bp(mrf, damping=0.5)
    >>> res.message
    'converged: messages no longer change'
    """
    as_model(mrf)
    as_choice(schedule, "schedule", ("parallel", "sequential"))
    as_choice(decoding, "decoding", ("independent", "sequential"))
    damping = as_real_scalar(damping, "damping")
    if not 0 <= damping < 1:
        raise ValueError(f"damping must be at least 0 and below 1, got {damping:g}")
    limits = as_limits(maxiter, time_limit, callback, patience, progress=progress, tol=tol, default=_MAXITER)
    run, _ = begin("loopy_bp", mrf, x0, rng, limits)
    with run:
        run.keep_best()
        beliefs = mrf.backend.beliefs()
        update = beliefs.update_all if schedule == "parallel" else beliefs.update_in_turn
        decode = beliefs.decode if decoding == "independent" else beliefs.decode_in_turn
        settled = tol * mrf.backend.scale * (1 - damping)
        while run.should_continue():
            change = update(damping)
            decode(run.x)
            run.record(None)
            if change <= settled and run.should_continue():
                run.stop(Status.CONVERGED, "converged: messages no longer change")
    return run.result()
