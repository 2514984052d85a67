"""Summaries of several runs of a method, and differences between energies as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from treefield.models.grid import GridMRF
from treefield.results import MAPResult
from treefield_reproduce.expansion import alpha_expansion

EXPANSION = "alpha-expansion (PyMaxflow)"


@dataclasses.dataclass
class MethodSummary:
    """A method's labelling, energy and seconds: the medians, if there are several runs."""

    x: np.ndarray
    energy: float
    seconds: float
    runs: list[MAPResult] = dataclasses.field(default_factory=list)

    @classmethod
    def of_runs(cls, runs: list[MAPResult]) -> MethodSummary:
        """Summarise one or several runs."""
        seconds = float(np.median([run_seconds(res) for res in runs]))
        return cls(median_run(runs).x, median_energy(runs), seconds, runs)


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table: one of METHODS from a start, with each of some seeds."""

    name: str
    method: str
    x0: np.ndarray | str | None
    seeds: list[int]
    limits: Mapping[str, object]


def expansion_summary(mrf: GridMRF) -> dict[str, MethodSummary]:
    """The summary of PyMaxflow's alpha-expansion under its name; empty if PyMaxflow is not installed."""
    peer = alpha_expansion(mrf)
    return {} if peer is None else {EXPANSION: MethodSummary(*peer)}


def missing_peer_notes(summaries: dict[str, MethodSummary]) -> list[str]:
    """A sentence for the page if alpha-expansion was left out."""
    return [] if EXPANSION in summaries else ["Alpha-expansion is left out: PyMaxflow is not installed."]


def median_energy(runs: list[MAPResult]) -> float:
    """The median of the energies."""
    return float(np.median([res.fun for res in runs]))


def median_run(runs: list[MAPResult]) -> MAPResult:
    """The run with the median energy; of an even number the higher of the two in the middle."""
    return sorted(runs, key=lambda res: res.fun)[len(runs) // 2]


def relative_difference(ours: float, paper: float) -> str:
    """The difference of an energy from the paper's: "1.00 % higher"."""
    share = (ours - paper) / abs(paper)
    return "the same" if ours == paper else f"{format_percent(abs(share))} {'higher' if share > 0 else 'lower'}"


def excess_over_bound(energy: float, bound: float) -> str:
    """The gap between an energy and a lower bound, in per cent."""
    return format_percent((energy - bound) / abs(bound)) if bound else "-"


def format_percent(share: float, sign: str = "") -> str:
    """A share in per cent; `sign="+"` shows the sign of positive ones."""
    return f"{100 * share:{sign}.{2 if abs(share) < 0.1 else 1}f} %"


def run_seconds(res: MAPResult) -> float:
    """The duration of a run, compilation left out."""
    return float(res.trace["seconds"][-1])
