"""Clusters: a grid in tiles on one and on two worker processes, and many seeds merged."""

import time

import numpy as np

import problems
import treefield as tf
from measure import say, table
from peers import imported
from treefield_reproduce.problems import ising_field

SIDE, CHUNK, LEVELS = 4096, 512, 16
ROUNDS = 2  # of t_icm
REPEAT = 2  # with one and with two processes by turns: what else runs on the machine comes and goes
SEARCHES = {"t_icm": {"method": "t_icm", "maxiter": ROUNDS}, "auto": {"method": "auto", "maxiter": 5}}
SMOOTH = tf.TruncatedLinear(3, 4)
SEEDS, JUMPS = 8, 300


def noisy_block(block_info=None):
    """A block of an image of 16 levels: slopes and squares, with noise and some salt and pepper."""
    (rows, columns) = block_info[None]["array-location"]
    rng = np.random.default_rng([rows[0], columns[0]])
    i, j = np.ogrid[slice(*rows), slice(*columns)]
    clean = np.where((i // 96 + j // 128) % 2, 4 + i // 300 % 8, 12 - j // 200 % 8)
    noisy = np.rint(rng.normal(clean, 1.5)).clip(0, LEVELS - 1)
    return np.where(rng.random(clean.shape) < 0.05, rng.integers(LEVELS, size=clean.shape), noisy).astype(np.uint8)


def level_costs(block):
    """The cost of each level at the pixels of a block."""
    levels = np.arange(LEVELS, dtype=np.int16)
    return np.minimum(4 * np.abs(block[..., None] - levels), 20).astype(np.uint8)


def image(side, chunk):
    """A noisy image as a Dask array."""
    import dask.array as da

    chunks = ((chunk,) * (side // chunk),) * 2
    return da.map_blocks(noisy_block, chunks=chunks, dtype=np.uint8, meta=np.empty((0, 0), np.uint8))


def search_image(pixels, **options):
    """The labelling, its energy and its bound, lazily."""
    mrf = tf.TiledMRF(pixels, SMOOTH, costs=level_costs, n_labels=LEVELS)
    return tf.dask.minimize(mrf, rng=0, full_output=True, **options)


def warm_up():
    """Compile or load in this process all that the searches need."""
    import dask

    with dask.config.set(scheduler="synchronous"):
        for options in SEARCHES.values():
            dask.compute(*search_image(image(128, 64), **options))


def seconds_on(workers, side=SIDE, chunk=CHUNK):
    """Run each search on `workers` processes of one thread.

    Returns for each its seconds, the processor seconds of the busiest worker, the share of the time in which workers
    have a task, and the answer.
    """
    import dask
    from distributed import Client, LocalCluster, get_task_stream

    found = {}
    local = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0")
    with local as cluster, Client(cluster) as client:
        addresses = client.scheduler_info(n_workers=-1)["workers"]
        client.gather([client.submit(warm_up, workers=[address], pure=False) for address in addresses])
        pixels = image(side, chunk).persist()
        pixels.sum().compute()
        for name, options in SEARCHES.items():
            res = search_image(pixels, **options)
            before = client.run(time.process_time)
            with get_task_stream(client) as stream:
                start = time.perf_counter()
                answer = dask.compute(res.x[::8, ::8], res.fun, res.lower_bound)
                took = time.perf_counter() - start
            worked = max(after - before[worker] for worker, after in client.run(time.process_time).items())
            spans = [span for task in stream.data for span in task["startstops"] if span["action"] == "compute"]
            busy = sum(span["stop"] - span["start"] for span in spans) / (workers * took)
            found[name] = took, worked, busy, answer
    return found


def quickest(runs):
    """Of several runs of each search the one that took the least time."""
    return {name: min((run[name] for run in runs), key=lambda run: run[0]) for name in SEARCHES}


def cluster():
    """A denoising of 4096 x 4096 pixels on one and on two worker processes of Dask."""
    if imported("distributed", "distributed") is None:
        return
    turns = [(seconds_on(1), seconds_on(2)) for _ in range(REPEAT)]
    one, two = (quickest(runs) for runs in zip(*turns, strict=True))
    rows = []
    for name, (alone, worked, _, (x, fun, bound)) in one.items():
        took, worked_each, busy, (same, same_fun, _) = two[name]
        gap = "" if np.isnan(bound) else f"{(fun - bound) / abs(fun):.2%}"
        equal = "yes" if same_fun == fun and np.array_equal(x, same) else "NO"
        cells = [f"{alone:.1f}", f"{took:.1f}", f"{alone / took:.2f}", f"{worked / worked_each:.2f}", f"{busy:.0%}"]
        rows.append([name, *cells, f"{fun:,.0f}", gap, equal])
    title = f"{SIDE} x {SIDE} sites, {LEVELS} labels, tiles of {CHUNK} x {CHUNK}: processes of one thread each"
    times = ["s with 1", "s with 2", "speed-up", "in CPU time", "both have tasks"]
    table(title, ["method", *times, "energy", "gap", "the same answer"], rows)
    say(
        f"Clusters: t_icm makes {ROUNDS} rounds, auto {SEARCHES['auto']['maxiter']} on each tile and border; the "
        f"quicker of {REPEAT} runs, by turns. CPU time is that of the busier process, without what it waits."
    )


def seeds():
    """8 seeds of the paper's T-ILS merged, against the best of them."""
    if imported("dask", "dask") is None:
        return
    from treefield.dask import search

    models = {"Ising 500x500, lambda = 1": ising_field()}
    if problems.data_folder() is None:
        say("Tsukuba: skipped, the pictures are not here (set TREEFIELD_DATA)")
    else:
        models["Tsukuba"] = problems.tsukuba()
    rows = []
    for name, mrf in models.items():
        res = search(mrf, seeds=SEEDS, method="t_ils", maxiter=JUMPS, rng=0)
        best, worst = res.runs.min(), res.runs.max()
        rows.append([name, f"{worst:,.1f}", f"{best:,.1f}", f"{res.fun:,.1f}", f"{res.fun - best:,.1f}"])
        rows[-1].append(f"{(best - res.fun) / abs(best):.3%}")
    columns = ["model", "worst", "best", "merged", "difference", "lower by"]
    table(f"{SEEDS} seeds of T-ILS (the paper's uniform jumps), {JUMPS} jumps each", columns, rows)
