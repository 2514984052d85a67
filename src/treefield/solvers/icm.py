"""ICM: the classical single-site local search (Besag), Eq. 4 of the paper."""

from __future__ import annotations

from treefield.protocols import Callback, Model, Seed, StartOrResult
from treefield.results import MAPResult
from treefield.solvers.loop import as_limits
from treefield.solvers.run import begin, descend
from treefield.validation import as_model


def icm(
    mrf: Model,
    x0: StartOrResult = "random",
    *,
    maxiter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    progress: bool = False,
) -> MAPResult:
    """Minimise the energy one site at a time, each given its neighbours, until no site changes.

    Sites go in raster order within bands of rows that are swept side by side, as in `t_icm`. Memory: one packed copy of
    the unary.

    Parameters
    ----------
    mrf : GridMRF or GraphMRF
    x0, maxiter, time_limit, callback, rng, progress
        As in `t_icm`.

    Returns
    -------
    MAPResult

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.random.default_rng(0).random((16, 16, 4)), tf.Potts(0.3))
    >>> tf.icm(mrf, rng=0).fun >= tf.t_icm(mrf, rng=0).fun
    True
    """
    as_model(mrf)
    limits = as_limits(maxiter, time_limit, callback, progress=progress)
    run, generator = begin("icm", mrf, x0, rng, limits)
    return descend(run, lambda: mrf.backend.tree_set("sites"), generator, "site")
