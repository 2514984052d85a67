"""Exact 2-pass belief propagation on models that are trees (section 3.3 of the paper)."""

from __future__ import annotations

import numpy as np

from treefield.errors import CycleError
from treefield.protocols import Model
from treefield.results import MAPResult, Status
from treefield.solvers.loop import Timer
from treefield.solvers.run import Run, exact_bound
from treefield.validation import as_model


def tree_bp(mrf: Model) -> MAPResult:
    """Find the most probable labelling of a model without cycles, exactly.

    Two passes: messages to the root, labels back to the leaves.

    Parameters
    ----------
    mrf : GridMRF or GraphMRF
        Chains such as a (1, N) grid, and grids whose edges of non-zero weight form trees.

    Returns
    -------
    MAPResult
        The lower bound is the energy, less what rounding of sums may have added where costs are not integers. Memory:
        sites x labels.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> chain = tf.GridMRF(np.array([[[0, 4], [3, 2], [4, 0]]]), tf.Potts(1))
    >>> tf.tree_bp(chain).x, tf.tree_bp(chain).fun, tf.tree_bp(chain).gap
    (array([[0, 1, 1]], dtype=int32), 3.0, 0.0)
    """
    as_model(mrf)
    timer = Timer()
    try:
        forest = mrf.backend.whole_tree()
    except CycleError:
        raise CycleError(
            f"tree_bp needs a model without cycles, but this one of {' x '.join(map(str, mrf.shape))} sites has some; "
            "use minimize, or weights that are 0 on enough edges"
        ) from None
    x = np.zeros(mrf.shape, np.int32)
    forest.sweep(x, check=False)
    run = Run("tree_bp", mrf, x, timer)
    run.stop(Status.CONVERGED, "exact: the model is a tree", proof="tree")
    run.bound = exact_bound(mrf, run.energy)
    return run.result()
