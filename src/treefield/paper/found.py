"""What methods came to, and how far energies are apart."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from treefield.paper.expansion import alpha_expansion
from treefield.results import MAPResult

EXPANSION = "alpha-expansion (PyMaxflow)"


@dataclasses.dataclass
class Found:
    """A method's labelling, energy and seconds: of the median of its runs, if it makes several."""

    x: np.ndarray
    energy: float
    seconds: float
    runs: list[MAPResult] = dataclasses.field(default_factory=list)

    @classmethod
    def by(cls, runs: list[MAPResult]) -> Found:
        """What one or several runs found."""
        return cls(middle(runs).x, median_of(runs), float(np.median([seconds_of(res) for res in runs])), runs)


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table: one of METHODS from a start, with each of some seeds."""

    name: str
    method: str
    x0: Any
    seeds: list[int]
    limits: dict[str, Any]


def by_expansion(mrf: Any) -> dict[str, Found]:
    """What PyMaxflow finds, under its name; nothing where it is not installed."""
    peer = alpha_expansion(mrf)
    return {} if peer is None else {EXPANSION: Found(*peer)}


def missing_peers(found: dict[str, Found]) -> list[str]:
    """A sentence for the page, if something had to be left out."""
    return [] if EXPANSION in found else ["Alpha-expansion is left out: PyMaxflow is not installed."]


def median_of(runs: list[MAPResult]) -> float:
    """The median of the energies found."""
    return float(np.median([res.fun for res in runs]))


def middle(runs: list[MAPResult]) -> MAPResult:
    """The run whose energy is the median, the higher of the two in the middle."""
    return sorted(runs, key=lambda res: res.fun)[len(runs) // 2]


def apart(ours: float, paper: float) -> str:
    """How far an energy is from the paper's."""
    share = (ours - paper) / abs(paper)
    return "the same" if ours == paper else f"{percent(abs(share))} {'higher' if share > 0 else 'lower'}"


def above(energy: float, bound: float) -> str:
    """How far an energy is above a lower bound."""
    return percent((energy - bound) / abs(bound)) if bound else "-"


def percent(share: float, sign: str = "") -> str:
    """A share, with as many digits as figures of this page need; `sign="+"` tells that of a difference."""
    return f"{100 * share:{sign}.{2 if abs(share) < 0.1 else 1}f} %"


def seconds_of(res: MAPResult) -> float:
    """How long a run took, compilation left out."""
    return float(res.trace["seconds"][-1])
