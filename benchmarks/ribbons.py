"""Ribbons: what a sweep costs, how far sweeps alone lead, and what `minimize` finds with them."""

import time

import numpy as np

import instances
import peers
import problems
import treefield as tf
from measure import say, table
from search import best_search, energy_at, seconds_to
from treefield_reproduce.problems import ising_field

WIDTHS = (1, 2, 4, 6, 8, 10)
SWEEPS = (1, 2, 4, 10, 20)
LEAST = -239_500.573  # Ising 500 x 500, lambda = 1, seed 0: the least energy known
ROUNDS = 9
WIDE_SECONDS = 3.0


def ribbons():
    """One sweep over ribbons against one over bands, and two threads against one, on Ising 500 x 500."""
    mrf = ising_field()
    sets = {"bands": mrf.backend.tree_set(threads=1)}
    for threads in (1, 2):
        sets |= {(w, threads): mrf.backend.tree_set("ribbons", width=w, threads=threads) for w in WIDTHS}
    times = {name: [] for name in sets}
    for seed in range(ROUNDS):
        for name, trees in sets.items():  # in turn, so that what else the machine does meets all alike
            rng = np.random.default_rng(seed)
            x = rng.integers(2, size=mrf.shape, dtype=np.int32)
            for _ in range(10):
                start = time.perf_counter()
                trees.sweep(x, rng)
                times[name].append(time.perf_counter() - start)
    ms = {name: 1e3 * float(np.median(taken)) for name, taken in times.items()}
    rows = [["bands", f"{ms['bands']:.2f}", "1.0", ""]]
    for w in WIDTHS:
        one, two = ms[w, 1], ms[w, 2]
        rows.append([f"ribbons of {w}", f"{one:.2f}", f"{one / ms['bands']:.1f}", f"{one / two:.2f}"])
    columns = ["one thread, float32", "ms", "to bands", "two threads: times faster"]
    table("One sweep, Ising 500x500, median of ten sweeps from random labels", columns, rows)


def ribbon_sweeps():
    """Energy after sweeps of ribbons alone, without any jump, from random labels."""
    mrf = ising_field()
    rows = []
    for w in WIDTHS:
        trees, rng = mrf.backend.tree_set("ribbons", width=w), np.random.default_rng(0)
        x = mrf.backend.random_labels(rng)
        start, energies = time.perf_counter(), []
        for _ in range(max(SWEEPS)):
            trees.sweep(x, rng)
            energies.append(mrf.energy(x))
        took = time.perf_counter() - start
        rows.append([w, f"2^{w * mrf.shape[1]}", *(f"{energies[n - 1]:,.1f}" for n in SWEEPS), f"{took:.2f}"])
    columns = ["width", "labellings of a ribbon", *(f"after {n}" for n in SWEEPS), f"s for {max(SWEEPS)}"]
    table("Ribbons alone, Ising 500x500, lambda = 1", columns, rows)


def ising_search():
    """minimize on Ising 500 x 500 against dwave-samplers' annealing with 4000 sweeps."""
    rows = []
    for strength in (0.5, 1.0, 2.0, 5.0):
        mrf = ising_field(strength=strength)
        tf.minimize(mrf, time_limit=0.1, rng=0)
        result = peers.dwave_anneal(mrf)
        runs = [tf.minimize(mrf, time_limit=10, tol=0, rng=seed, threads=2) for seed in range(3)]
        cells = [f"{np.median([energy_at(res, at) for res in runs]):,.2f}" for at in (0.3, 2, 10)]
        if result is None:
            rows.append([strength, "", "", *cells, "", ""])
            continue
        _, theirs, took = result
        reached = float(np.median([seconds_to(res, theirs) for res in runs]))
        equal = float(np.median([energy_at(res, took) for res in runs]))
        share = f"1/{took / reached:.0f}" if reached > 0 else "at once"
        rows.append([strength, f"{theirs:,.2f}", f"{took:.1f}", *cells, share, f"{(theirs - equal) / abs(theirs):.2%}"])
    table(
        "Ising 500x500, seed 0: minimize, medians of three runs, two threads",
        ["lambda", "dwave annealing", "s", "0.3 s", "2 s", "10 s", "share of its time", "lower at equal time"],
        rows,
    )
    times = [
        seconds_to(res, LEAST) for res in (tf.minimize(ising_field(), time_limit=10, tol=0, rng=s) for s in range(5))
    ]
    say(f"lambda = 1, five seeds: {LEAST:,} after {', '.join(f'{at:.2f}' for at in times)} s")


def small_glasses():
    """Ten Ising fields of 60 x 60: five runs of 0.5 s, against four of 5 s."""
    rows = []
    for field in range(10):
        mrf = ising_field(60, seed=field)
        tf.minimize(mrf, maxiter=5, rng=0)
        short = [tf.minimize(mrf, time_limit=0.5, tol=0, rng=seed).fun for seed in range(5)]
        long = [tf.minimize(mrf, time_limit=5, tol=0, rng=100 + seed).fun for seed in range(4)]
        same = sum(fun <= min(*short, *long) + 1e-4 for fun in short)
        rows.append([field, f"{min(short):,.4f}", f"{same} of 5", f"{min(long):,.4f}"])
    table("Ising 60x60, lambda = 1, 0.5 s", ["seed", "best of five", "runs that found it", "best of four of 5 s"], rows)


def potts_glasses():
    """Potts glasses of 80 x 80, weights U(-1, 1): minimize against T-ILS without ribbons, and long runs."""
    rows = []
    for labels in (3, 4):
        for seed in range(3):
            mrf = potts_glass(80, labels, seed)
            tf.minimize(mrf, maxiter=5, rng=0)
            best_search(mrf, "random", maxiter=5, rng=0)
            ours = np.median([tf.minimize(mrf, time_limit=1, tol=0, rng=run).fun for run in range(3)])
            lines = np.median([best_search(mrf, "random", time_limit=1, rng=run).fun for run in range(3)])
            least = tf.minimize(mrf, time_limit=10, tol=0, rng=9).fun
            cells = [f"{ours:,.2f}", f"{lines:,.2f}", f"{(lines - ours) / abs(ours):.2%}", f"{least:,.2f}"]
            rows.append([f"{labels} labels, seed {seed}", *cells])
    columns = ["80x80", "minimize, 1 s", "T-ILS over bands, 1 s", "lower", "minimize, 10 s"]
    table("Potts glasses, medians of three runs", columns, rows)


def potts_glass(size, labels, seed):
    """Potts costs with weights U(-1, 1), no unary costs."""
    rng = np.random.default_rng(seed)
    weights = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((size - 1, size), (size, size - 1))]
    return tf.GridMRF(np.zeros((size, size, labels), np.float32), tf.Potts(1.0), weights=weights)


def wide_trees():
    """T-ILS on graphs: wide trees against the trees of today at equal time."""
    graphs = {"torus 100x100": torus(100, 2), "lattice 16x16x16": torus(16, 3)}
    if problems.data_folder() is not None:
        wanted = ("chimera 128", "t2g20", "t3g7", "G1", "G11", "G14", "G32")
        graphs |= {name: read() for name, read, _ in instances.spin_glasses() if name in wanted}
    rows = []
    for name, mrf in graphs.items():
        cells = []
        for trees, width in (("trees", None), ("wide", 4), ("wide", 8), ("wide", 12)):
            options = {"trees": trees, "width": width}
            best_search(mrf, "random", maxiter=10, rng=0, **options)
            runs = [best_search(mrf, "random", time_limit=WIDE_SECONDS, rng=seed, **options) for seed in range(3)]
            cells.append(float(np.median([res.fun for res in runs])))
        rows.append([name, *(f"{energy:.8g}" for energy in cells), ("trees", "4", "8", "12")[int(np.argmin(cells))]])
    columns = [f"{WIDE_SECONDS:g} s", "trees", "width 4", "width 8", "width 12", "lowest"]
    table("Graphs: T-ILS with mixed jumps over trees and over wide trees, medians of three", columns, rows)


def torus(side, axes):
    """A spin glass of Gaussian couplings on a periodic grid, as a graph."""
    rng = np.random.default_rng(0)
    sites = np.arange(side**axes).reshape((side,) * axes)
    edges = [np.stack([sites.ravel(), np.roll(sites, -1, axis).ravel()], axis=1) for axis in range(axes)]
    weights = rng.normal(size=axes * sites.size)
    return tf.GraphMRF(np.zeros((sites.size, 2)), np.concatenate(edges), tf.Potts(1.0), weights=weights)


def many_labels_unharmed():
    """The time of minimize to PyMaxflow's energy where labels are many and ribbons are not used."""
    if problems.data_folder() is None:
        return say("Stereo and Penguin: skipped, the pictures are not here (set TREEFIELD_DATA)")
    rows = []
    goals = {"Tsukuba": (problems.tsukuba, 391_886), "Venus": (problems.venus, 630_730)}
    for name, (build, goal) in (goals | {"Penguin": (problems.penguin, 407_352)}).items():
        mrf = build()
        tf.minimize(mrf, time_limit=0.2, rng=0)
        times = [seconds_to(tf.minimize(mrf, time_limit=4, rng=seed), goal) for seed in range(5)]
        rows.append([name, f"{goal:,}", f"{np.median(times):.3f}"])
    return table("minimize to PyMaxflow's energy, medians of five", ["", "energy", "s"], rows)
