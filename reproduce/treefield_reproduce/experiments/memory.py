"""Peak memory of searches, measured, and the messages that the paper counts."""

from __future__ import annotations

import gc
import json
import math
import os
import pathlib
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import numpy as np

from treefield.io.limits import available_memory, format_bytes
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.methods import METHODS
from treefield_reproduce.plotting import new_figure
from treefield_reproduce.runner import Runner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = 16
# the method for each line of the table, its options, and the most it may add to the costs, in units of them
SEARCHES: dict[str, tuple[str, dict[str, object], int]] = {
    "T-ICM": ("T-ICM", {}, 4),
    "T-ICM, memory=low": ("T-ICM", {"memory": "low"}, 2),
    "T-ILS": ("T-ILS (paper)", {}, 4),
    "T-ILS, memory=low": ("T-ILS (paper)", {"memory": "low"}, 2),
    "loopy BP": ("loopy BP (paper)", {}, 11),
}

_NUMBER = 4  # bytes of a float32, and of a label
_ITERATIONS = 8  # more need no more memory, fewer may be over before the first sample
_WARM_UP = 128  # sites along each side: enough for threads to start
_INTERVAL = 0.002  # seconds between two samples
_FAR = 10  # times less is far less

Peaks = dict[str, dict[int, int]]  # bytes for each search and size


def tree_bytes(size: int, labels: int = LABELS) -> int:
    """The paper's O(2 max(H, W)) messages of a search on trees, in bytes."""
    return 2 * size * labels * _NUMBER


def loopy_bytes(size: int, labels: int = LABELS) -> int:
    """The paper's O(4 H W) messages of loopy BP, in bytes."""
    return 4 * size**2 * labels * _NUMBER


def experiment(runner: Runner) -> Experiment:
    """Every search on growing images, each in a separate process."""
    memory = Experiment("memory", runner)
    peaks: Peaks = {}
    left_out: list[str] = []
    for name, (_, _, most) in SEARCHES.items():
        sizes = [size for size in runner.effort.memory_sizes if _fits(size, most)]
        left_out += [f"{name} with {size} x {size}" for size in runner.effort.memory_sizes if size not in sizes]
        runner.notify(f"{name}, {LABELS} labels")
        peaks[name] = _measure_peaks(name, sizes, runner) if sizes else {}
    memory.add_section(
        "Memory",
        _paragraphs(left_out),
        table=[row for name, by_size in peaks.items() for row in _rows(name, by_size)],
        name="memory",
        figures={
            "memory": (
                _draw_peaks(peaks, runner.effort.memory_sizes),
                f"Peak memory beyond the model on square images with {LABELS} labels. Black: what the paper counts, "
                "messages alone; grey: one labelling, which every search must hold.",
            )
        },
    )
    _compare(memory, peaks)
    return memory.finish()


def _fits(size: int, most: int) -> bool:
    """Whether the model and what a search adds to it fit into the memory that is free."""
    free = available_memory()
    return free is None or (1 + most) * size**2 * LABELS * _NUMBER < free


def _measure_peaks(name: str, sizes: list[int], runner: Runner) -> dict[int, int]:
    """The peak of every size, measured in another process: memory that one search leaves allocated would hide the needs
    of the next."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path or str(pathlib.Path.cwd()) for path in sys.path),
        # glibc then gives back all large arrays, so that the next size does not find them
        "MALLOC_MMAP_THRESHOLD_": "65536",
        "MALLOC_TRIM_THRESHOLD_": "65536",
    }
    if runner.threads is not None:
        environment["TREEFIELD_NUM_THREADS"] = str(runner.threads)
    command = [
        sys.executable,
        "-c",
        f"from treefield_reproduce.experiments.memory import print_peaks; print_peaks({name!r}, {sizes})",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            output, errors = process.communicate()
        except BaseException:  # an interrupt must not leave it behind
            process.kill()
            process.wait()
            raise
    if process.returncode:
        raise ChildProcessError(f"the memory of {name} could not be measured: {errors.strip()[-500:]}")
    return {int(size): peak for size, peak in json.loads(output).items()}


def print_peaks(name: str, sizes: list[int]) -> None:
    """Print the peaks of a search as JSON; the entry point of the other process."""
    _measure_peak(name, _WARM_UP)
    print(json.dumps({size: _measure_peak(name, size) for size in sizes}))  # noqa: T201


def _measure_peak(name: str, size: int) -> int:
    """The most memory that a search has beyond what there was when its model was ready, in bytes."""
    method, options, _ = SEARCHES[name]
    chosen = METHODS[method]
    mrf = GridMRF(np.random.default_rng(0).random((size, size, LABELS), dtype=np.float32), Potts(0.5))
    gc.collect()
    with _PeakMemory() as memory:
        chosen.solve(mrf, maxiter=_ITERATIONS, rng=0, **(chosen.options | options))
    return memory.peak


class _PeakMemory:
    """Samples the memory of this process in a thread while entered; `peak` is the most seen beyond the start."""

    def __enter__(self) -> _PeakMemory:
        import psutil

        self._process, self._over = psutil.Process(), threading.Event()
        self._before, self.peak = self._process.memory_info().rss, 0
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(_INTERVAL):
            self.peak = max(self.peak, self._process.memory_info().rss - self._before)


def _paragraphs(left_out: list[str]) -> list[str]:
    text = [
        'Section 1: search on trees "requires only O(2D) memory where D = max{W, H}", "much more economical than '
        'O(4WH) memory" of loopy BP; section 4.2 has the same. Both count messages of L numbers.',
        f"Measured is the resident memory of a process with one search, every {1e3 * _INTERVAL:g} ms, beyond that "
        "when the model (float32 costs, Potts) was ready. All that a search needs is in it: messages, work space and "
        f"labellings of {_NUMBER} bytes per site; T-ILS has several (where it is, the best, where it jumps to).",
        "By default T-ICM keeps a packed copy of the costs for each axis, for speed. With memory=low it packs a few "
        "lines at a time and finds the same labelling; then little but the labelling is left. Loopy BP sends all "
        "messages at once, so it holds the old and the new ones, and a copy of the costs.",
        "The slope is that of log memory against log sites: 1 is proportional to the sites, 0.5 to the side.",
    ]
    if left_out:
        text.append(f"Left out, for there was not enough memory free: {', '.join(left_out)}.")
    return text


def _rows(name: str, by_size: dict[int, int]) -> list[dict[str, str]]:
    slope = _slope(by_size)
    return [
        {
            "search": name,
            "image": f"{size} x {size}",
            "MB beyond the model": f"{peak / 1e6:.2f}",
            "of it one labelling": f"{_NUMBER * size**2 / 1e6:.2f}",
            "bytes per site": f"{peak / size**2:.1f}",
            "slope": slope,
        }
        for size, peak in by_size.items()
    ]


def _slope(by_size: dict[int, int]) -> str:
    """How log memory grows with log sites; a dash where too little was measured."""
    seen = [(2 * math.log(size), math.log(peak)) for size, peak in by_size.items() if peak > 0]
    if len(seen) < 2:
        return "-"
    sites, peaks = zip(*seen, strict=True)
    return f"{np.polyfit(sites, peaks, 1)[0]:.2f}"


def _draw_peaks(peaks: Peaks, sizes: tuple[int, ...]) -> Figure:
    figure, axes = new_figure(1, 1, width=7.6, height=4.6)
    ax = axes[0, 0]
    for name, by_size in peaks.items():
        colour, line = METHODS[SEARCHES[name][0]].colour, ":o" if "low" in name else "-o"
        ax.plot(list(by_size), [peak / 1e6 for peak in by_size.values()], line, color=colour, label=name)
    counted = {"4 H W messages (paper)": (loopy_bytes, "--"), "2 max(H, W) messages (paper)": (tree_bytes, "-.")}
    for name, (count, line) in counted.items():
        ax.plot(sizes, [count(size) / 1e6 for size in sizes], line, color="black", linewidth=1, label=name)
    ax.plot(sizes, [_NUMBER * size**2 / 1e6 for size in sizes], ":", color="gray", label="one labelling")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(sizes, [f"{size} x {size}" for size in sizes])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set(xlabel="sites", ylabel="MB beyond the model")
    ax.grid(alpha=0.25)
    ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _compare(memory: Experiment, peaks: Peaks) -> None:
    """The claim, at the greatest size that all were measured at."""
    low, loopy = peaks["T-ICM, memory=low"], peaks["loopy BP"]
    size = max(low.keys() & loopy.keys(), default=None)
    if size is None:
        return
    memory.check_claim(
        f"Section 4.2: T-ICM needs far less memory than loopy BP ({size} x {size})",
        f"{format_bytes(low[size])}, {format_bytes(loopy[size])}",
        loopy[size] >= _FAR * low[size],
        f"it is not {_FAR} times less at this size: labellings and work space weigh more than messages on small images",
    )
