"""Settings of short searches, and the two problems on which the paper's claims are checked."""

from __future__ import annotations

import dataclasses

import numpy as np

from treefield import moves
from treefield.models.grid import GridMRF
from treefield.results import MAPResult
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.problems import ising_field, stereo_field
from treefield_reproduce.runner import Runner

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


def build_problems(runner: Runner, seeds: range) -> list[Problem]:
    """The Ising field with strong couplings, drawn for each seed, and the first stereo pair."""
    pair = runner.datasets.pairs[0]
    stereo = stereo_field(pair.left, pair.right, pair.labels)
    return [
        Problem("Ising", {seed: ising_field(runner.effort.size, 1.0, seed) for seed in seeds}),
        Problem(pair.name, dict.fromkeys(seeds, stereo), "scan-line"),
    ]


def restart(x: np.ndarray, mrf: GridMRF, rng: np.random.Generator) -> np.ndarray:
    """The jump of multistart: random labels everywhere."""
    return rng.integers(mrf.n_labels, size=x.shape, dtype=np.int32)


def jumps_up_to(share: int) -> str:
    """The name of the setting with that rho_max, in per cent."""
    return PAPER if share == 10 else f"rho_max = {share} %"


# one of METHODS for each setting, and what is changed in it
SETTINGS: dict[str, tuple[str, dict[str, object]]] = {
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


def run_settings(experiment: Experiment, runner: Runner, seeds: range) -> Results:
    """Run every setting for the same short time, on both problems with every seed."""
    problems = build_problems(runner, seeds)
    results: Results = {name: {problem.name: [] for problem in problems} for name in SETTINGS}
    for name, (method, changed) in SETTINGS.items():
        for problem in problems:
            for seed, mrf in problem.models.items():
                options = {"time_limit": runner.effort.short} | changed
                res = experiment.run(problem.name, name, mrf, problem.x0, method=method, seed=seed, **options)
                results[name][problem.name].append(res)
    return results
