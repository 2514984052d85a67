"""Searches of one model with many seeds: run one, merge two, report all."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import numpy as np

from treefield.protocols import Model
from treefield.results import MAPResult, Status, amend_result
from treefield.solvers.loop import Timer
from treefield.solvers.merge import merge
from treefield.solvers.run import Run
from treefield.validation import label_dtype


@dataclasses.dataclass(eq=False)
class SearchOutcome:
    """The labelling of one search, in the smallest dtype, and how the search went.

    `rank` orders labellings: the number of forbidden costs, then the finite part of the energy.
    """

    x: np.ndarray
    rank: tuple[int, float]
    bound: float = math.nan
    nit: int = 0
    seconds: float = 0.0
    status: Status = Status.CONVERGED

    @property
    def energy(self) -> float:
        """The energy; inf if there are forbidden costs."""
        return math.inf if self.rank[0] else self.rank[1]


def run_search(mrf: Model, method: str, options: dict[str, Any], rng: np.random.Generator) -> SearchOutcome:
    """Run one search. The generator is left unchanged, so that a repetition gives the same outcome."""
    from treefield.solvers.minimize import minimize

    res = minimize(mrf, method=method, rng=copy.deepcopy(rng), **options)
    if res.status == Status.INTERRUPTED:  # Ctrl-C must end all searches, not only this one
        raise KeyboardInterrupt
    return SearchOutcome(
        _as_small_labels(mrf, res.x), _rank(mrf, res.x), res.lower_bound, res.nit, _seconds(res), res.status
    )


def merge_outcomes(mrf: Model, first: SearchOutcome, second: SearchOutcome) -> SearchOutcome:
    """Merge two labellings into one that is no worse than either."""
    x = merge(mrf, first.x, second.x)
    both = SearchOutcome(_as_small_labels(mrf, x), _rank(mrf, x))
    return min(both, first, second, key=lambda outcome: outcome.rank)  # rounding must not make it worse


def without_labels(outcome: SearchOutcome) -> SearchOutcome:
    """A copy without the labelling, cheap to send."""
    return dataclasses.replace(outcome, x=np.zeros(0, np.uint8))


def combine_results(mrf: Model, method: str, runs: list[SearchOutcome], best: SearchOutcome, timer: Timer) -> MAPResult:
    """The result of all searches; its trace has a row for each."""
    run = Run(method, mrf, np.ascontiguousarray(best.x, np.int32), timer)
    energies = np.array([outcome.energy for outcome in runs])
    status = max((outcome.status for outcome in runs if outcome.status != Status.INFEASIBLE), default=Status.CONVERGED)
    run.stop(status, f"{len(runs)} searches: best {energies.min():.10g}, merged {run.energy:.10g}")
    bounds = [outcome.bound for outcome in runs if not math.isnan(outcome.bound)]
    run.bound = max(bounds) if bounds else math.nan
    res = run.result()
    rows = np.repeat(res.trace[-1:], len(runs) + 1)
    rows["iteration"] = np.arange(len(rows))
    rows["energy"][:-1] = energies
    rows["best"][:-1] = np.minimum.accumulate(energies)
    rows["seconds"][:-1] = np.maximum.accumulate([outcome.seconds for outcome in runs])
    rows["seconds"][-1] = max(timer.seconds(), rows["seconds"][-2])
    return amend_result(res, trace=rows, runs=energies, nit=sum(outcome.nit for outcome in runs))


def _as_small_labels(mrf: Model, x: np.ndarray) -> np.ndarray:
    return x.astype(label_dtype(mrf.n_labels))


def _rank(mrf: Model, x: np.ndarray) -> tuple[int, float]:
    finite, forbidden = mrf.backend.energy_parts(np.ascontiguousarray(x, np.int32))
    return forbidden, finite


def _seconds(res: MAPResult) -> float:
    return float(res.trace["seconds"][-1]) if len(res.trace) else 0.0
