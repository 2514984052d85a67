"""Graphs: known optima, samplers of others at equal time, and what a grid costs when it is given as a graph."""

import time

import numpy as np

import instances
import treefield as tf
from measure import milliseconds, say, table
from peers import imported
from problems import data_folder

SECONDS = 10.0
EQUAL = 3.0  # seconds for each sampler
CLOSE = 1e-6
ROUNDS = 9
SWEEPS = 1000  # of one read of dwave-samplers' annealing; their own default


def optima():
    """minimize with 10 s on every graph of the data whose least energy is known."""
    if data_folder() is None:
        return say("Known optima: the benchmark data is not there; set TREEFIELD_DATA")
    rows = []
    for name, read, least in instances.known():
        mrf = read()
        tf.minimize(mrf, time_limit=0.1, rng=0)
        res = tf.minimize(mrf, time_limit=SECONDS, tol=0, rng=0)
        at = res.trace["seconds"][res.trace["best"] <= least + CLOSE * abs(least)]
        gap = (res.fun - least) / abs(least)
        when = f"{at[0]:.2f}" if len(at) else "not"
        size = f"{mrf.size}, {len(mrf.edges)}, {mrf.n_labels}"
        rows.append([name, size, f"{least:.8g}", f"{res.fun:.8g}", f"{gap:.1%}" if gap > CLOSE else "0", when])
        rows[-1] += [f"{res.lower_bound:.8g}", "yes" if res.gap <= CLOSE else ""]
    title = f"Graphs: minimize for {SECONDS:g} s, seed 0; of Gset the best known cut is meant"
    columns = ["instance", "sites, edges, labels", "least known", "found", "above", "after s", "bound", "proved"]
    return table(title, columns, rows)


def samplers():
    """The tori, Gset and Chimera against dwave-samplers' annealing, tabu search and steepest descent at equal time."""
    dwave = imported("dwave.samplers", "dwave-samplers")
    if dwave is None or data_folder() is None:
        return say("Samplers: dwave-samplers or the benchmark data is not there")
    rows = []
    for name, read, least in instances.spin_glasses():
        mrf = read()
        model = bqm(mrf)
        tf.minimize(mrf, time_limit=0.1, rng=0)
        found = [tf.minimize(mrf, time_limit=EQUAL, tol=0, rng=0).fun]
        found.append(best_of_reads(dwave.SimulatedAnnealingSampler(), model, num_sweeps=SWEEPS))
        found.append(lowest(dwave.TabuSampler().sample(model, timeout=int(1e3 * EQUAL), seed=0)))
        found.append(best_of_reads(dwave.SteepestDescentSampler(), model, num_reads=10))
        cells = [
            f"{(energy - least) / abs(least):.2%}" if energy > least + CLOSE * abs(least) else "0" for energy in found
        ]
        rows.append([name, f"{least:.8g}", *cells])
    table(
        f"Spin glasses, {EQUAL:g} s each: how far above the least known energy",
        ["instance", "least known", "treefield", "annealing", "tabu", "steepest descent"],
        rows,
    )
    return say(
        f"Spin glasses: annealing is the best of as many reads of {SWEEPS} sweeps as go into the time, steepest "
        "descent of as many starts, tabu search one read of that length. treefield's time is that of two cores, "
        "theirs of one."
    )


def bqm(mrf):
    """A graph of spins as dimod has it."""
    from treefield.dimod import from_graph

    return from_graph(mrf, vartype="SPIN")


def best_of_reads(sampler, model, **options):
    """The least energy of reads that are begun within the time."""
    start, seed, best = time.perf_counter(), 0, np.inf
    while time.perf_counter() - start < EQUAL:
        best = min(best, lowest(sampler.sample(model, seed=seed, **options)))
        seed += 1
    return best


def lowest(sampleset):
    """The least energy of a sample set."""
    return float(sampleset.record.energy.min())


def as_graph():
    """T-ICM on a 500 x 500 grid, and on the same grid given as a graph."""
    rows = []
    for labels in (2, 8, 16, 32):
        rng = np.random.default_rng(0)
        grid = tf.GridMRF(rng.random((500, 500, labels), dtype=np.float32), tf.Potts(0.3))
        x = rng.integers(labels, size=grid.shape).astype(np.int32)
        cells = []
        for mrf, start in ((grid, x), (grid.to_graph(), x.reshape(-1))):
            res = tf.t_icm(mrf, start)
            trees, last = mrf.backend.tree_set(), res.x.copy()
            whole = milliseconds(lambda m=mrf, y=start: tf.t_icm(m, y), ROUNDS)
            first = milliseconds(lambda t=trees, y=start: t.sweep(y.copy()), ROUNDS)
            settled = milliseconds(lambda t=trees, y=last: t.sweep(y), ROUNDS)
            cells.append((whole, res.nit, res.fun, first, settled))
        (whole, nit, fun, first, settled), (graph, graph_nit, graph_fun, graph_first, graph_settled) = cells
        rows.append([labels, f"{whole:.0f}, {graph:.0f}", f"{graph / whole:.1f}", f"{nit}, {graph_nit}"])
        rows[-1] += [
            f"{first:.1f}, {graph_first:.1f}",
            f"{settled:.1f}, {graph_settled:.1f}",
            f"{graph_fun / fun - 1:+.2%}",
        ]
    table(
        "T-ICM from random labels to the local minimum: 500 x 500 grid, Potts, float32; the same as a graph",
        ["labels", "ms: grid, graph", "ratio", "sweeps", "ms of a first sweep", "of a last one", "energy"],
        rows,
    )
