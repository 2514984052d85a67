"""The page with all experiments: the comparisons with the paper, the conventions, and every section."""

from __future__ import annotations

import os
import platform

from treefield import __version__
from treefield.io.files import package_version
from treefield.report.page import Section
from treefield_reproduce.conventions import CONVENTIONS
from treefield_reproduce.experiment import Comparison, Experiment
from treefield_reproduce.methods import METHODS
from treefield_reproduce.runner import Effort

PAPER = "Tree-based iterated local search for Markov random fields with applications in image analysis"

_PACKAGES = ("numpy", "numba", "scipy", "PyMaxflow", "scikit-image", "matplotlib")


def build_sections(done: list[Experiment], effort: Effort, images: str, unfinished: list[str]) -> list[Section]:
    """The sections of the page: comparisons, conventions, then each experiment.

    `images` is a sentence on where the images come from; `unfinished` names the experiments that did not finish.
    """
    compared = [comparison for experiment in done for comparison in experiment.comparisons]
    methods = [{"method": name, "settings": method.description} for name, method in METHODS.items()]
    return [
        _comparison_section(compared, effort, images, unfinished),
        Section("What the paper leaves open, and the conventions used here", text=CONVENTIONS, table=methods),
        *(section for experiment in done for section in experiment.sections),
    ]


def _comparison_section(compared: list[Comparison], effort: Effort, images: str, unfinished: list[str]) -> Section:
    of_the_paper = [comparison for comparison in compared if comparison.asked]
    worse = sum(comparison.worse for comparison in of_the_paper)
    text = [f"The experiments of {PAPER} (Tran, Phung and Venkatesh), run again. {images}".strip()]
    if of_the_paper:
        text.append(
            f"Of the paper's {len(of_the_paper)} figures and claims {len(of_the_paper) - worse} came out as in the "
            f"paper or better; {worse} did not, each with the reason in the last column."
        )
    if effort.name == "quick":
        text.append(
            f"This was the quick run: {effort.iterations} iterations where the paper has 1000, {effort.seconds:g} s "
            "where time is the limit. Without --quick it has the paper's iterations."
        )
    if unfinished:
        text.append(f"It ended early: {', '.join(unfinished)} left out.")
    rows = [{"what": c.what, "paper": c.paper, "here": c.ours, "verdict": c.verdict, "why": c.why} for c in compared]
    return Section("The paper and this run", text=text, table=rows, facts=environment_facts())


def environment_facts(packages: tuple[str, ...] = _PACKAGES) -> dict[str, str]:
    """The machine and the versions of the packages that affect the figures."""
    facts = {"treefield": __version__, "Python": platform.python_version(), "cores": str(os.cpu_count())}
    facts["machine"] = f"{platform.system()} {platform.machine()}"
    return facts | {package: package_version(package) for package in packages}
