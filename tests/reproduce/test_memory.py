"""Memory: what the paper counts, what is measured in another process, and what is left out."""

import csv
import io
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

from tiny import TINY, tiny_runner
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.experiments import memory as module

NAMES = list(module.SEARCHES)


def read_rows(experiment):
    return list(csv.DictReader(io.StringIO(experiment.files["memory.csv"].decode())))


def made_up(peaks):
    """Stands in for what other processes measure."""
    return lambda name, sizes, runner: {size: peaks(name, size) for size in sizes}


@pytest.mark.parametrize("count", [1, 3])
def test_the_papers_memory_formulas_equal_the_bytes_of_the_arrays(count):
    rows, columns, labels = 48, 48, 5
    messages = np.zeros((4, rows, columns, labels), np.float32)
    line = np.zeros((2, max(rows, columns), labels), np.float32)
    assert module.loopy_bytes(48, labels) == messages.nbytes
    assert module.tree_bytes(48, labels) == line.nbytes
    assert module.loopy_bytes(48 * count) == count**2 * module.loopy_bytes(48)
    assert module.tree_bytes(48 * count) == count * module.tree_bytes(48)


def test_loopy_bp_needs_more_on_a_larger_image_and_more_than_t_icm():
    sizes, runner = [64, 256], tiny_runner()
    loopy = module._measure_peaks("loopy BP", sizes, runner)
    low = module._measure_peaks("T-ICM, memory=low", sizes, runner)
    assert list(loopy) == list(low) == sizes
    assert loopy[64] < loopy[256] and loopy[256] > 0.9 * module.loopy_bytes(256)
    assert low[256] < loopy[256] / 5


WATCHED = """
import time, numpy as np
from treefield_reproduce.experiments.memory import _PeakMemory
with _PeakMemory() as memory:
    array = np.ones(5_000_000)
    deadline = time.monotonic() + 20  # on a busy machine it may take a while until somebody looks
    while memory.peak < 35e6 and time.monotonic() < deadline:
        time.sleep(0.01)
    del array
print(memory.peak)
"""


def test_peak_memory_includes_an_array_that_lives_for_a_moment():
    # in a new process: from this one, large and idle, the system may take memory away meanwhile
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, timeout=120, check=True)
    assert 35e6 < float(done.stdout) < 80e6


def test_every_search_and_size_is_in_the_table_with_its_slope(monkeypatch):
    by_side = made_up(lambda name, size: 100 * size if "low" in name else 100 * size**2)
    monkeypatch.setattr(module, "_measure_peaks", by_side)
    rows = read_rows(module.experiment(tiny_runner()))
    assert [(row["search"], row["image"]) for row in rows] == [
        (name, f"{size} x {size}") for name in NAMES for size in TINY.memory_sizes
    ]
    assert {row["slope"] for row in rows if "low" in row["search"]} == {"0.50"}
    assert {row["slope"] for row in rows if "low" not in row["search"]} == {"1.00"}
    assert {row["bytes per site"] for row in rows if row["search"] == "loopy BP"} == {"100.0"}


def test_image_sizes_that_do_not_fit_are_left_out_with_a_note(monkeypatch):
    costs = 64**2 * module.LABELS * 4
    monkeypatch.setattr(module, "available_memory", lambda: 6 * costs)
    monkeypatch.setattr(module, "_measure_peaks", made_up(lambda name, size: size**2))
    done = module.experiment(tiny_runner())
    assert [row["image"] for row in read_rows(done) if row["search"] == "loopy BP"] == ["32 x 32"]
    assert [row["image"] for row in read_rows(done) if row["search"] == "T-ICM"] == ["32 x 32", "64 x 64"]
    assert "not enough memory free: loopy BP with 64 x 64." in done.sections[0].text[-1]
    assert "(32 x 32)" in done.comparisons[0].what  # what both were measured at


def test_if_no_image_size_fits_no_process_is_started_and_nothing_is_claimed(monkeypatch):
    monkeypatch.setattr(module, "available_memory", lambda: 1000)
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **options: pytest.fail("a process was started"))
    done = module.experiment(tiny_runner())
    assert not done.comparisons
    assert all(f"{name} with 32 x 32" in done.sections[0].text[-1] for name in NAMES)


@pytest.mark.parametrize(("loopy", "verdict"), [(200, "holds"), (99, "does not hold")])
def test_the_memory_claim_holds_if_t_icm_needs_at_most_a_tenth_of_loopy_bp(loopy, verdict):
    experiment = Experiment("memory", tiny_runner())
    peaks = {"T-ICM": {32: 50}, "T-ICM, memory=low": {32: 10}, "loopy BP": {32: loopy}}
    module._compare(experiment, peaks)
    (claim,) = experiment.comparisons
    assert claim.verdict == verdict and bool(claim.why) == (verdict != "holds")


def test_a_failed_memory_measurement_says_why(monkeypatch):
    monkeypatch.setitem(module.SEARCHES, "nothing", ("no such method", {}, 1))
    with pytest.raises(ChildProcessError, match=r"(?s)memory of nothing could not be measured: .*KeyError: 'nothing'"):
        module._measure_peaks("nothing", [8], tiny_runner())


def test_an_interrupt_ends_the_measuring_process():
    before, started = psutil.Process().children(), []

    def interrupt():
        while not started:
            started.extend(child for child in psutil.Process().children() if child not in before)
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        module._measure_peaks("loopy BP", [64] * 400, tiny_runner())
    thread.join()
    assert not any(psutil.pid_exists(child.pid) for child in started)


def test_the_number_of_threads_reaches_the_measuring_process(monkeypatch):
    asked = "import os, json; print(json.dumps({32: int(os.environ['TREEFIELD_NUM_THREADS'])}))"
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: popen([*command[:2], asked], **options))
    assert module._measure_peaks("T-ICM", [32], tiny_runner(threads=3)) == {32: 3}
