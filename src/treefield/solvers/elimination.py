"""The exact answer on graphs of small treewidth."""

from __future__ import annotations

import math
from typing import Any

from treefield.results import MAPResult
from treefield.solvers.run import CONVERGED, Run, Timer, exact_bound

_ENTRIES = 2.0**24  # of all tables together
_PER_SECOND = 2.0**24  # entries that are sure to be made in a second
_BYTES = 24  # for each entry


def eliminated(mrf: Any, time_limit: float | None, memory_limit: int | None) -> MAPResult | None:
    """The exact answer, if it is a matter of a second and goes into the limits; else None."""
    from treefield.trees.elimination import eliminate, elimination_order

    if not hasattr(mrf, "edge_costs"):
        return None
    timer = Timer()
    most = min(_ENTRIES, math.inf if time_limit is None else time_limit * _PER_SECOND)
    order = elimination_order(mrf, min(most, math.inf if memory_limit is None else memory_limit / _BYTES))
    if order is None:
        return None
    run = Run("elimination", mrf, eliminate(mrf, order), timer)
    run.stop(CONVERGED, "exact: the sites were eliminated one after the other")
    run.bound = exact_bound(mrf, run.energy)
    return run.result()
