"""All experiments, and the page that tells of them."""

from __future__ import annotations

import importlib
import os
import platform
from typing import Any

from treefield import __version__
from treefield.io.files import package_version
from treefield.paper.conventions import CONVENTIONS
from treefield.paper.lab import Effort, Experiment, Lab
from treefield.paper.methods import METHODS
from treefield.viz.report import Section

EXPERIMENTS = ("trees", "ising", "stereo", "denoise", "claims", "memory", "ablation")  # modules of this package
PICTURED = ("stereo", "denoise", "claims", "ablation")  # these need pictures
PAPER = "Tree-based iterated local search for Markov random fields with applications in image analysis"

_PACKAGES = ("numpy", "numba", "scipy", "PyMaxflow", "scikit-image", "matplotlib")


def perform(name: str, lab: Lab) -> Experiment:
    """Run one of EXPERIMENTS."""
    return importlib.import_module(f"treefield.paper.{name}").experiment(lab)


def pages(done: list[Experiment], effort: Effort, words: str, missing: list[str]) -> list[Section]:
    """The page's sections: what came out, what was taken for granted, then each experiment.

    `words` tell where the pictures are from; `missing` are experiments that were not finished.
    """
    compared = [comparison for experiment in done for comparison in experiment.comparisons]
    sections = [_outcome(compared, effort, words, missing)]
    taken = [{"method": name, "settings": method.words} for name, method in METHODS.items()]
    sections.append(Section("What the paper leaves open, and what is taken here", text=CONVENTIONS, table=taken))
    return sections + [part for experiment in done for part in experiment.sections]


def _outcome(compared: list[Any], effort: Effort, words: str, missing: list[str]) -> Section:
    said = [comparison for comparison in compared if comparison.asked]
    worse = sum(comparison.worse for comparison in said)
    text = [f"The experiments of {PAPER} (Tran, Phung and Venkatesh), run again. {words}".strip()]
    if said:
        text.append(
            f"Of the paper's {len(said)} figures and claims {len(said) - worse} came out as in the paper or better; "
            f"{worse} did not, each with the reason in the last column."
        )
    if effort.name == "quick":
        text.append(
            f"This was the quick run: {effort.iterations} iterations where the paper has 1000, {effort.seconds:g} s "
            "where time is the limit. Without --quick it has the paper's iterations."
        )
    if missing:
        text.append(f"It ended early: {', '.join(missing)} left out.")
    rows = [{"what": c.what, "paper": c.paper, "here": c.ours, "verdict": c.verdict, "why": c.why} for c in compared]
    return Section("The paper and this run", text=text, table=rows, facts=surroundings())


def surroundings(packages: tuple[str, ...] = _PACKAGES) -> dict[str, str]:
    """The machine, and the version of everything that bears on the figures."""
    facts = {"treefield": __version__, "Python": platform.python_version(), "cores": str(os.cpu_count())}
    facts["machine"] = f"{platform.system()} {platform.machine()}"
    return facts | {package: package_version(package) for package in packages}
