"""Searches of one model with many seeds, wherever they run: the result of each, and how two of them are merged."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import numpy as np

from treefield.models.stores import label_dtype
from treefield.results import MAPResult
from treefield.solvers.merge import merge
from treefield.solvers.run import FORBIDDEN, INTERRUPTED, Run, Timer


@dataclasses.dataclass(eq=False)
class Found:
    """A labelling, in the smallest integers; what orders it, the forbidden costs and the finite part of its energy; and
    what there is to tell of the search."""

    x: np.ndarray
    rank: tuple[int, float]
    bound: float = math.nan
    nit: int = 0
    seconds: float = 0.0
    status: int = 0

    @property
    def energy(self) -> float:
        """Its energy."""
        return math.inf if self.rank[0] else self.rank[1]


def found_by(mrf: Any, method: str, options: dict[str, Any], rng: np.random.Generator) -> Found:
    """One search; made again it finds the same, whatever became of the generator."""
    from treefield.solvers.minimize import minimize

    res = minimize(mrf, method=method, rng=copy.deepcopy(rng), **options)
    if res.status == INTERRUPTED:  # a search ends well at Ctrl-C, but the whole is to end
        raise KeyboardInterrupt
    return Found(_small(mrf, res.x), _rank(mrf, res.x), res.lower_bound, res.nit, _seconds(res), res.status)


def merged(mrf: Any, first: Found, second: Found) -> Found:
    """What two labellings give, no worse than either."""
    x = merge(mrf, first.x, second.x)
    both = Found(_small(mrf, x), _rank(mrf, x))
    return min(both, first, second, key=lambda found: found.rank)  # rounding must not make it worse


def without_labels(found: Found) -> Found:
    """The same without the labelling."""
    return dataclasses.replace(found, x=np.zeros(0, np.uint8))


def result(mrf: Any, method: str, runs: list[Found], best: Found, timer: Timer) -> MAPResult:
    """What came of all searches; its trace has a row for each."""
    run = Run(method, mrf, np.ascontiguousarray(best.x, np.int32), timer)
    energies = np.array([found.energy for found in runs])
    status = max((found.status for found in runs if found.status != FORBIDDEN), default=0)
    run.stop(status, f"{len(runs)} searches: best {energies.min():.10g}, merged {run.energy:.10g}")
    bounds = [found.bound for found in runs if not math.isnan(found.bound)]
    run.bound = max(bounds) if bounds else math.nan
    res = run.result()
    rows = np.repeat(res.trace[-1:], len(runs) + 1)
    rows["iteration"] = np.arange(len(rows))
    rows["energy"][:-1] = energies
    rows["best"][:-1] = np.minimum.accumulate(energies)
    rows["seconds"][:-1] = np.maximum.accumulate([found.seconds for found in runs])
    rows["seconds"][-1] = max(timer.seconds(), rows["seconds"][-2])
    res.trace, res.runs, res.nit = rows, energies, sum(found.nit for found in runs)
    return res


def _small(mrf: Any, x: np.ndarray) -> np.ndarray:
    return x.astype(label_dtype(mrf.labels))


def _rank(mrf: Any, x: np.ndarray) -> tuple[int, float]:
    finite, forbidden = mrf.energy_parts(np.ascontiguousarray(x, np.int32))
    return forbidden, finite


def _seconds(res: MAPResult) -> float:
    return float(res.trace["seconds"][-1]) if len(res.trace) else 0.0
