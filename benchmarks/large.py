"""Images larger than memory: what denoising costs from disk to disk, and what tiles cost in energy."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import treefield as tf
from measure import table
from treefield.apps.denoise import denoise_problem
from treefield.io import new_image

LEVELS = 16
LEVELLED = ("--levels", LEVELS)
SIDE, IN_MEMORY = 16384, 4096
LIMIT = "1GB"
WHOLE = 2048  # sites along a side of what is searched whole and in tiles


def large():
    """The command denoise on a 16384 x 16384 image with 1 GB of memory, and a smaller one in memory."""
    rows, rates = [], {}
    side = int(os.environ.get("TREEFIELD_BENCH_SIDE", SIDE))
    with tempfile.TemporaryDirectory(prefix="treefield-") as folder:
        warm_up(pathlib.Path(folder))
        for size, options in ((IN_MEMORY, ()), (side, ("--memory-limit", LIMIT))):
            source, target = pathlib.Path(folder, "in.tif"), pathlib.Path(folder, "out.tif")
            write_noisy(source, size)
            seconds, peak = run([source, target, *options, *LEVELLED])
            rates[size] = seconds / (size * size / 1e6)
            where = f"tiles, {LIMIT}" if options else "in memory"
            rows.append([f"{size} x {size}", where, f"{seconds:.0f}", f"{rates[size]:.2f}", f"{peak / 1e6:.0f}"])
            target.unlink()
    rows[-1].append(f"{rates[side] / rates[IN_MEMORY]:.2f}")
    rows[0].append("1")
    columns = ["image", "search", "s", "s per megapixel", "peak MB", "ratio"]
    table(f"treefield denoise --levels {LEVELS}, 8 bits, from disk to disk", columns, rows)


def per_label():
    """The cost of a megapixel, in time and memory, by the number of levels: in memory and in tiles."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="treefield-") as folder:
        source, target = pathlib.Path(folder, "in.tif"), pathlib.Path(folder, "out.tif")
        write_noisy(source, WHOLE)
        for levels in (4, 16, 64):
            for where, options in (("in memory", ()), (f"tiles, {LIMIT}", ("--memory-limit", LIMIT))):
                given = [source, target, *options, "--force", "--levels", levels]
                run(given)  # compiled
                seconds, peak = run(given)
                rows.append([levels, where, f"{seconds / (WHOLE * WHOLE / 1e6):.2f}", f"{peak / 1e6:.0f}"])
    table(
        f"treefield denoise on {WHOLE} x {WHOLE}, 8 bits, from disk to disk",
        ["levels", "search", "s per megapixel", "peak MB"],
        rows,
    )


def warm_up(folder):
    """Compile what both need."""
    source, target = folder / "small.tif", folder / "small-out.tif"
    write_noisy(source, 512)
    for options in ((), ("--memory-limit", LIMIT)):
        run([source, target, *options, *LEVELLED, "--force"])


def tiles():
    """T-ICM and minimize on a 2048 x 2048 image, whole and in tiles."""
    problem = denoise_problem(noisy((slice(0, WHOLE), slice(0, WHOLE))), levels=LEVELS)
    mrf = problem.mrf
    x0 = np.random.default_rng(0).integers(mrf.n_labels, size=mrf.shape).astype(np.int32)
    searches = {"t_icm": lambda m: tf.t_icm(m, x0), "minimize": lambda m: tf.minimize(m, rng=0, tol=1e-3)}
    rows = []
    for name, search in searches.items():
        whole, whole_seconds = timed(search, mrf)
        rows.append([name, "whole", f"{whole_seconds:.1f}", f"{whole.fun:,.0f}", "", gap(whole), ""])
        for side in (1024, 512, 256):
            res, seconds = timed(search, tf.TiledMRF(mrf.unary, mrf.pairwise, tile=side))
            risen = int(np.count_nonzero(np.diff(res.trace["energy"]) > 0))
            rows.append(
                [name, side, f"{seconds:.1f}", f"{res.fun:,.0f}", f"{res.fun / whole.fun - 1:+.4%}", gap(res), risen]
            )
    columns = ["search", "tiles", "s", "energy", "above whole", "gap", "rounds that rise"]
    table(f"Whole and in tiles: {WHOLE} x {WHOLE}, {LEVELS} levels, from the same start", columns, rows)


def gap(res):
    return "" if np.isnan(res.gap) else f"{res.gap:.3%}"


def timed(search, mrf):
    """The result of the second of two searches, and its seconds."""
    search(mrf)
    start = time.perf_counter()
    res = search(mrf)
    return res, time.perf_counter() - start


def noisy(box):
    """Shapes and noise: a part of an image without end, the same wherever it begins."""
    rows, columns = np.ogrid[box]
    waves = np.sin(rows / 97.0) * np.cos(columns / 131.0) + 0.5 * np.sin((rows + 2 * columns) / 411.0)
    clean = 128 + 70 * np.sign(waves) * np.abs(waves) ** 0.5
    rng = np.random.default_rng([part.start for part in box])
    return np.clip(rng.normal(clean, 20), 0, 255).astype(np.uint8)


def write_noisy(path, size):
    """Such an image as a file, written part by part."""
    path.unlink(missing_ok=True)
    step = 1024
    with new_image(path, (size, size), np.uint8, channels=False) as image:
        for row in range(0, size, step):
            for column in range(0, size, step):
                box = slice(row, min(size, row + step)), slice(column, min(size, column + step))
                image[box] = noisy(box)


def run(arguments):
    """Run the command denoise; the seconds it takes, and its peak memory in bytes."""
    treefield = str(pathlib.Path(sys.executable).with_name("treefield"))
    command = [treefield, "denoise", *map(str, arguments), "-q", "--seed", "0"]
    start, peak = time.perf_counter(), 0
    process = subprocess.Popen(command)
    while process.poll() is None:
        peak = max(peak, peak_of(process.pid))
        time.sleep(0.05)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - start, peak


def peak_of(pid):
    """The peak memory of a running process, in bytes; of one that has ended the system may report its parent's."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return 1024 * int(line.split()[1])
    return 0
