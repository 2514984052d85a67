"""The cost of a sweep: by kind of pairwise cost, against one chain at a time, by threads, in memory."""

import pathlib
import subprocess
import sys

import numpy as np

import problems
import treefield as tf
from measure import milliseconds, say, table
from one_chain import OneChainIsing
from treefield_reproduce.problems import ising_field


def sweep_times(mrfs, sweeps=10, repeat=9, **options):
    """The median times of the first, any and the tenth sweep from a random start, and of copying the unary, by model.

    The models take turns, so that what else the machine does meets them alike. In milliseconds.
    """
    sets = [mrf.backend.tree_set(threads=1, **options) for mrf in mrfs]
    targets = [np.empty_like(mrf.unary) for mrf in mrfs]
    times = np.empty((len(mrfs), repeat, sweeps))
    copies = np.empty((len(mrfs), repeat, 10))
    for seed in range(repeat):
        for number, (mrf, trees) in enumerate(zip(mrfs, sets, strict=True)):
            x = np.random.default_rng(seed).integers(mrf.n_labels, size=mrf.shape, dtype=np.int32)
            for sweep in range(sweeps):
                times[number, seed, sweep] = milliseconds(lambda trees=trees, x=x: trees.sweep(x), 1)
            for copy in range(10):
                copies[number, seed, copy] = milliseconds(lambda n=number, mrf=mrf: np.copyto(targets[n], mrf.unary), 1)
    middle = np.median(times, axis=1)
    return middle[:, 0], np.median(middle, axis=1), middle[:, -1], np.median(copies, axis=(1, 2))


def sweeps():
    """One banded sweep (rows and columns, forward and back, checked in float64), one thread."""
    costs = {"random costs": (255 * np.random.default_rng(0).random((288, 384, 16))).astype(np.float32)}
    if problems.data_folder() is not None:
        costs["Tsukuba"] = problems.tsukuba().unary
    kinds = [tf.Potts(20.0), tf.TruncatedLinear(20.0, 2), tf.TruncatedQuadratic(20.0, 7)]
    columns = ["288x384x16 float32", "first ms", "median of 10", "tenth", "np.copyto ms", "sweep / copy", "to Potts"]
    for name, unary in costs.items():
        found = zip(kinds, *sweep_times([tf.GridMRF(unary, kind) for kind in kinds]), strict=True)
        rows = [[kind, *times, times[1] / times[3]] for kind, *times in found]
        rows = [[row[0], *(f"{value:.2f}" for value in row[1:]), f"{row[2] / rows[0][2]:.2f}"] for row in rows]
        table(f"One banded sweep from a random start, one thread, {name}", columns, rows)


def ising():
    """The Ising field against the one-chain-at-a-time loop."""
    mrf = ising_field()
    plain = OneChainIsing(mrf)
    x = np.random.default_rng(0).integers(2, size=mrf.shape, dtype=np.int32)
    plain.sweep(x.copy())
    before = milliseconds(lambda: plain.sweep(x))
    first, typical, last, _ = sweep_times([mrf, ising_field(dtype=np.float64)])
    loop = (before + milliseconds(lambda: plain.sweep(x))) / 2
    rows = [["one chain at a time, float32", f"{loop:.2f}", "", "", "1.0"]]
    for number, name in enumerate(("lanes, float32", "lanes, float64")):
        times = typical[number], first[number], last[number]
        rows.append([name, *(f"{value:.2f}" for value in times), f"{loop / typical[number]:.1f}"])
    table("Ising 500x500, one sweep, one thread", ["", "ms (median of 10)", "first", "tenth", "times faster"], rows)


def threads():
    """Two threads against one."""
    rng = np.random.default_rng(0)
    mrf = tf.GridMRF(rng.random((1000, 1000, 16), dtype=np.float32), tf.Potts(0.3))
    sets = {number: mrf.backend.tree_set(threads=number) for number in (1, 2)}
    x = rng.integers(16, size=mrf.shape, dtype=np.int32)
    times = {1: [], 2: []}
    for _ in range(15):
        for number, trees in sets.items():
            y = x.copy()
            times[number] += [milliseconds(lambda trees=trees, y=y: trees.sweep(y), 1) for _ in range(10)]
    one, two = (float(np.median(times[number])) for number in (1, 2))
    table(
        "Threads, 1000x1000x16 Potts float32",
        ["threads", "ms per sweep", "speed-up"],
        [[1, f"{one:.1f}", "1.00"], [2, f"{two:.1f}", f"{one / two:.2f}"]],
    )


_MEMORY = """
import sys, time
import numpy as np
import treefield as tf

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024

def reset():
    open("/proc/self/clear_refs", "w").write("5")

memory = sys.argv[1]
small = tf.GridMRF(np.zeros((64, 64, 8), np.uint8), tf.Potts(5.0))
tf.t_icm(small, maxiter=1, memory=memory, rng=0)
unary = np.random.default_rng(0).integers(0, 256, (3000, 3000, 8), dtype=np.uint8)
mrf = tf.GridMRF(unary, tf.Potts(20.0))
reset()
before = peak()
res = tf.t_icm(mrf, maxiter=4, memory=memory, rng=0, threads=2)
seconds = np.diff(res.trace["seconds"])[1:]  # the first sweep packs
print(peak() - before, unary.nbytes / 2**20, res.x.nbytes / 2**20, np.median(seconds), res.fun)
"""


def memory():
    """Peak memory of a T-ICM run beyond the arrays handed in."""
    if not pathlib.Path("/proc/self/clear_refs").exists():
        say("Memory: skipped, it is measured through Linux's /proc")
        return
    rows, seconds = [], None
    for kind in ("auto", "low"):
        done = subprocess.run([sys.executable, "-c", _MEMORY, kind], capture_output=True, text=True, check=True)
        extra, unary, labelling, sweep, energy = map(float, done.stdout.split())
        seconds = seconds or sweep
        rows.append(
            [
                f'memory="{kind}"',
                f"{extra:.0f}",
                f"{extra / unary:.2f}",
                f"{extra - labelling:.0f}",
                f"{sweep:.2f}",
                f"{sweep / seconds:.2f}",
                f"{energy:,.0f}",
            ]
        )
    columns = [
        "3000x3000x8 uint8, two threads",
        "MB beyond the inputs",
        "in unaries",
        "less the labelling",
        "s per sweep",
        "slower",
        "energy",
    ]
    table("Memory", columns, rows)
