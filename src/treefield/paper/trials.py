"""Short searches with many settings, on the two problems where the paper's claims are tried."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from treefield import moves
from treefield.models.grid import GridMRF
from treefield.paper.lab import Experiment, Lab
from treefield.paper.problems import ising_field, stereo_field
from treefield.results import MAPResult

PAPER = "T-ILS (paper)"
MULTISTART, FULL_MULTISTART = "multistart", "multistart, full local minima"
SHARES = 1, 3, 10, 30, 100  # of rho_max, in per cent

Results = dict[str, dict[str, list[MAPResult]]]  # the results of all seeds, for each problem, for each setting


@dataclasses.dataclass(frozen=True)
class Problem:
    """A model for each seed, and where the search starts."""

    name: str
    models: dict[int, GridMRF]
    x0: str | None = None


def both_problems(lab: Lab, seeds: range) -> list[Problem]:
    """The Ising field with strong couplings, anew for each seed, and the first stereo pair."""
    pair = lab.sources.pairs[0]
    stereo = stereo_field(pair.left, pair.right, pair.labels)
    return [
        Problem("Ising", {seed: ising_field(lab.effort.size, 1.0, seed) for seed in seeds}),
        Problem(pair.name, dict.fromkeys(seeds, stereo), "scan-line"),
    ]


def restart(x: np.ndarray, mrf: Any, rng: np.random.Generator) -> np.ndarray:
    """The jump of multistart: random labels everywhere."""
    return rng.integers(mrf.labels, size=x.shape, dtype=np.int32)


def jumps_up_to(share: int) -> str:
    """The name of the setting with that greatest jump."""
    return PAPER if share == 10 else f"rho_max = {share} %"


# one of METHODS for each setting, and what is changed in it
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    PAPER: (PAPER, {}),
    "ILS over ICM": (PAPER, {"local_search": "icm"}),
    "T_inner = 2": (PAPER, {"inner_iter": 2}),
    "full local minima": (PAPER, {"inner_iter": None}),
    **{jumps_up_to(share): (PAPER, {"jump": moves.UniformJump(share / 100)}) for share in SHARES if share != 10},
    MULTISTART: (PAPER, {"jump": restart, "accept": moves.Greedy()}),
    FULL_MULTISTART: (PAPER, {"jump": restart, "accept": moves.Greedy(), "inner_iter": None}),
    "genetic (paper)": ("genetic (paper)", {}),
    "genetic (best)": ("genetic (best)", {}),
    "T-ILS (best)": ("T-ILS (best)", {}),
    "β = 0": (PAPER, {"beta": 0.0}),
    "β = ∞": (PAPER, {"beta": np.inf}),
    "full local minima, β = 0": (PAPER, {"inner_iter": None, "beta": 0.0}),
}


def searched(kept: Experiment, lab: Lab, seeds: range) -> Results:
    """Every setting for the same short time, on both problems with every seed."""
    problems = both_problems(lab, seeds)
    found: Results = {name: {problem.name: [] for problem in problems} for name in SETTINGS}
    for name, (method, changed) in SETTINGS.items():
        for problem in problems:
            for seed, mrf in problem.models.items():
                options = {"time_limit": lab.effort.short} | changed
                res = kept.run(problem.name, name, mrf, problem.x0, method=method, seed=seed, **options)
                found[name][problem.name].append(res)
    return found
