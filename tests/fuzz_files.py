"""Damaged files: each is read as a model or an image, or refused in one line that names it.

`python tests/fuzz_files.py 10000 [WORDS]` damages the model files of the shared data and a small file of every format
10 000 times each, or only the files whose names contain one of the words. A child process with little memory reads
each copy against an alarm. The command prints the slowest reading, the peak memory and every failure.
"""

import gzip
import lzma
import multiprocessing
import pathlib
import random
import resource
import signal
import sys
import tempfile
import time

import numpy as np
from PIL import Image

import treefield as tf
import treefield.io
from treefield.io.limits import TooLargeError

MEMORY, SECONDS = 3 * 2**30, 20
HUGE = b"999999999 2147483648 99999999999999999999 -1 0 1e308 -1e999 nan inf 1.5 x".split()
IMAGES = (".png", ".jpg", ".tif", ".pgm", ".ppm", ".pnm", ".pfm", ".npy", ".bmp", ".gif", ".webp")
BINARY = (".h5", ".npz", ".bqm", *(suffix for suffix in IMAGES if suffix != ".pnm"))
UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}
OPTIONS = {"128power_001.txt": {"vartype": "SPIN", "first": 1}}


def model_files(folder):
    """The model files of the shared data."""
    patterns = ("uai/*.uai", "wcsp/*.wcsp", "wcsp/*.cfn.gz", "opengm/*.h5", "gset/G*.txt", "spinglass/t?g*")
    files = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    return [*files, folder / "spinglass" / "128power_001.txt"]


def written_files(folder):
    """A small file of every format that is read."""
    tables = [np.arange(6).reshape(2, 3), np.array([[1, np.inf], [2, 3], [0, 4]])]
    graph = tf.GraphMRF([[0, 1], [2, 0, 4], [0, 3]], [(0, 1), (1, 2)], tables, offset=2)
    spins = tf.GraphMRF(np.zeros((4, 2)), [(0, 1), (1, 2), (2, 3)], tf.Table([[1, -1], [-1, 1]]), weights=[2, -3, 0.5])
    for suffix in (".uai", ".uai.gz", ".uai.xz", ".wcsp", ".cfn", ".npz", ".h5"):
        treefield.io.write_model(folder / f"small{suffix}", graph)
    for suffix in (".mc", ".coo", ".qubo", ".bqm"):
        treefield.io.write_model(folder / f"small{suffix}", spins)
    (folder / "braces.cfn").write_text((folder / "small.cfn").read_text().replace("[", "{").replace("]", "}"))
    treefield.io.save_model(folder / "grid.npz", tf.GridMRF(np.ones((3, 4, 2)), tf.Potts(1)))
    rgb = np.random.default_rng(0).integers(0, 256, (15, 17, 3), np.uint8)
    for suffix in (".png", ".jpg", ".tif", ".ppm", ".npy"):
        treefield.io.write_image(folder / f"image{suffix}", rgb)
    treefield.io.write_image(folder / "image.npz", rgb)
    treefield.io.write_image(folder / "deep.png", rgb.astype(np.uint16) * 257)
    treefield.io.write_image(folder / "image.pgm", rgb[..., 0])
    treefield.io.write_image(folder / "image.pfm", rgb.astype(np.float32))
    treefield.io.write_labels(folder / "labels.png", rgb[..., 0])
    (folder / "text.pnm").write_text("P2 # text\n3 2\n255\n1 2 3\n# note\n4 5 6\n")
    for suffix in (".bmp", ".gif", ".webp"):
        Image.fromarray(rgb).save(folder / f"image{suffix}")
    Image.fromarray(rgb).save(folder / "progressive.jpg", progressive=True)
    return sorted(folder.iterdir())


def damaged(data, rng):
    """A copy with something wrong in it, often near the beginning, where the counts are."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        reach = len(data) if rng.random() < 0.5 else min(len(data), 3000)
        at = rng.randrange(reach) if reach else 0
        kind = rng.randrange(8)
        if kind == 0 and data:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at if rng.random() < 0.7 else len(data) - at % 50 :]
        elif kind == 2:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 20)))
        elif kind == 3 and data:
            digits = [place for place in range(at, min(at + 200, len(data))) if chr(data[place]).isdigit()]
            if digits:
                data[rng.choice(digits)] = rng.choice(b"0123456789")
        elif kind in (4, 5):
            end = data.find(b"\n", at) + 1 or len(data)
            line = data[at:end]
            data[at:end] = b"" if kind == 4 else line + line
        else:
            while at < len(data) and not chr(data[at]).isspace():
                at += 1
            end = at + 1
            while end < len(data) and not chr(data[end]).isspace():
                end += 1
            if end - at < 100:
                data[at:end] = b" " + rng.choice(HUGE)
    return bytes(data)


def damaged_binary(data, rng):
    """The same for files that are no text."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if not data:
            break
        at = rng.randrange(len(data) if rng.random() < 0.4 else min(len(data), 8000))
        kind = rng.randrange(5)
        if kind < 2:
            data[at] = rng.randrange(256)
        elif kind == 2:
            data[at : at + 8] = rng.choice((2**63, 2**31, 2**40, 0, 2**64 - 1, 1)).to_bytes(8, "little")
        elif kind == 3:
            del data[at : at + rng.randrange(1, 64)]
        elif rng.random() < 0.2:
            del data[at + 1 :]
    return bytes(data)


def check(path, options):
    """Read a damaged file; returns whether it could be. Anything but that or a refusal is an AssertionError."""
    image = path.suffix.lower() in IMAGES or path.name == "image.npz"
    try:
        mrf = (treefield.io.read_image if image else treefield.io.read_model)(path, **options)
    except (ValueError, TooLargeError) as error:
        assert "\n" not in str(error) and str(path) in str(error), f"no proper message: {error}"
        return False
    if image or isinstance(mrf, tf.GridMRF):
        return mrf.size > 0
    assert mrf.size == len(mrf.label_counts) and not any(np.isnan(costs).any() for costs in mrf.unaries)
    return True


def damaged_files(source, count, folder, seed=0):
    """Damaged copies of a file, one after the other in one place, each with the number that seeds it."""
    packed = source.suffix in UNPACK
    text = UNPACK[source.suffix](source.read_bytes()) if packed else source.read_bytes()
    for number in range(count):
        rng = random.Random(f"{source.name} {seed} {number}")
        binary = source.suffix in BINARY or (packed and number % 10 == 0)
        path = folder / source.name
        if packed and not binary:
            path = folder / source.stem
        original = source.read_bytes() if binary else text
        path.write_bytes((damaged_binary if binary else damaged)(original, rng))
        yield number, path


def _child(source, count, folder, progress, results):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def raise_timeout(*_):
        raise TimeoutError("it takes too long")

    signal.signal(signal.SIGPROF, raise_timeout)
    models, slowest, wrong = 0, 0.0, []
    for number, path in damaged_files(source, count, folder):
        progress.value = number
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of work: others may need the cores
        start = time.process_time()
        try:
            models += check(path, OPTIONS.get(source.name, {}))
        except BaseException as error:
            wrong.append((number, f"{type(error).__name__}: {error}"[:300]))
        signal.setitimer(signal.ITIMER_PROF, 0)
        slowest = max(slowest, time.process_time() - start)
    results.put((models, slowest, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, wrong))


def run(source, count):
    """Damage a file `count` times; returns the failures."""
    progress, results = multiprocessing.Value("i", -1), multiprocessing.Queue()
    with tempfile.TemporaryDirectory() as folder:
        child = multiprocessing.Process(target=_child, args=(source, count, pathlib.Path(folder), progress, results))
        start = time.perf_counter()
        child.start()
        while child.is_alive() and results.empty():
            child.join(0.1)
        if results.empty() and child.exitcode:
            return [(progress.value, f"the process ended with {child.exitcode}")]
        models, slowest, peak, wrong = results.get(timeout=5)
        child.join()
    seconds = time.perf_counter() - start
    counts = f"{count} damaged, {models} read, {len(wrong)} wrong"
    print(f"{source.name:28} {counts}, slowest {slowest:.2f} s, peak {peak // 1000} MB, {seconds:.0f} s", flush=True)
    return wrong


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "benchmarks"))
    from problems import data_folder

    bad = 0
    with tempfile.TemporaryDirectory() as written:
        for file in written_files(pathlib.Path(written)) + model_files(data_folder()):
            if len(sys.argv) < 3 or any(word in file.name for word in sys.argv[2:]):
                for number, what in run(file, int(sys.argv[1])):
                    bad += 1
                    print(f"   {file.name} {number}: {what}", flush=True)
    sys.exit(bool(bad))
