"""How the experiments search: how much to spend, and one call for every run."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable

import numpy as np

from treefield.models.grid import GridMRF
from treefield.results import MAPResult, Status
from treefield.validation import as_count, as_thread_count
from treefield_reproduce.datasets import Datasets
from treefield_reproduce.methods import METHODS

Start = np.ndarray | str | None  # a labelling, the name of a start, or the solver's default


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much to spend."""

    name: str
    size: int  # sites along each side of the paper's Ising fields
    small: int  # the same where a figure needs many short searches
    seeds: int
    seconds: float  # of each run of the paper's experiments that time bounds
    short: float  # the same where there are many such runs
    iterations: int  # of T-ILS and loopy BP in the stereo table
    memory_sizes: tuple[int, ...]  # sites along each side
    cost_labels: tuple[int, ...]  # numbers of labels for which sweeps are timed


QUICK = Effort("quick", 500, 64, 5, 1.0, 0.25, 200, (256, 512, 1024), (2, 4, 8, 16, 32))
FULL = Effort("full", 500, 64, 5, 10.0, 1.0, 1000, (256, 512, 1024, 2048), (2, 4, 8, 16, 32, 64))


class Runner:
    """Runs the searches of the experiments; calls `notify` with a line of text before each."""

    def __init__(
        self,
        effort: Effort,
        datasets: Datasets | None = None,
        seed: int = 0,
        threads: int | None = None,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.effort, self.seed, self.notify = effort, as_count(seed, "seed"), notify
        self.threads = None if threads is None else as_thread_count(threads)
        self._datasets = datasets

    @property
    def datasets(self) -> Datasets:
        """The images, for the experiments in NEED_IMAGES."""
        if self._datasets is None:
            raise ValueError("the experiment needs images: give the runner datasets=load_datasets(folder)")
        return self._datasets

    def run(
        self, problem: str, method: str, mrf: GridMRF, x0: Start = None, *, seed: int = 0, **options: object
    ) -> MAPResult:
        """Run one of METHODS with more options. Raises KeyboardInterrupt if the search was interrupted."""
        self.notify(f"{problem}: {method}")
        chosen = METHODS[method]
        options = chosen.options | {"rng": seed} | options
        if x0 is not None:
            options["x0"] = x0
        if "threads" in inspect.signature(chosen.solve).parameters:
            options.setdefault("threads", self.threads)
        res = chosen.solve(mrf, **options)
        if res.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        return res

    def seeds(self) -> range:
        """The seeds of repeated runs."""
        return range(self.seed, self.seed + self.effort.seeds)
