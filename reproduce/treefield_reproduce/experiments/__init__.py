"""The experiments, one module each, and the modules that draw their figures."""

from __future__ import annotations

import importlib

from treefield_reproduce.experiment import Experiment
from treefield_reproduce.runner import Runner

EXPERIMENTS = ("trees", "ising", "stereo", "denoise", "claims", "memory", "ablation")  # modules of this package
NEED_IMAGES = ("stereo", "denoise", "claims", "ablation")


def run_experiment(name: str, runner: Runner) -> Experiment:
    """Run one of EXPERIMENTS."""
    experiment: Experiment = importlib.import_module(f"treefield_reproduce.experiments.{name}").experiment(runner)
    return experiment
