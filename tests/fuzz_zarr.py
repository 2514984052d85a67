"""Damaged Zarr stores: the command denoises them, or refuses them in one line that names the store.

`python tests/fuzz_zarr.py --mutations 1000` damages each kind of store that many times, in a child process with little
memory, and prints what went wrong.
"""

import argparse
import contextlib
import io
import multiprocessing
import pathlib
import random
import resource
import shutil
import sys
import tempfile
import time

import numpy as np
import zarr

from treefield.cli import main
from treefield.io import open_image

MEMORY = 6 * 2**30
IMAGE = np.clip(np.random.default_rng(0).normal(np.kron([[50, 200], [120, 80]], np.ones((6, 8))), 15), 0, 255)
STORES = {
    "zstd": {},
    "gzip": {"compressors": zarr.codecs.GzipCodec()},
    "blosc": {"compressors": zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle")},
    "plain": {"compressors": None},
    "checksum": {"compressors": zarr.codecs.Crc32cCodec()},
    "shards": {"shards": (12, 16)},
    "version 2": {"zarr_format": 2},
    "floats": {"dtype": np.float32},
}


def write_store(path, kind):
    """A store of one small image in six chunks."""
    options = {"dtype": np.uint8, "chunks": (6, 6) if kind != "shards" else (6, 8)} | STORES[kind]
    zarr.create_array(store=str(path), shape=IMAGE.shape, **options)[:] = IMAGE.astype(options["dtype"])


def is_metadata(path):
    return path.name in ("zarr.json", ".zarray", ".zattrs")


def damage(folder, rng):
    """Change one or more files of a store; returns whether its metadata is still the same."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    chunks = [path for path in files if not is_metadata(path)]
    if rng.random() < 0.1:
        path = rng.choice([path for path in files if is_metadata(path)])
        path.write_bytes(changed(path.read_bytes(), rng))
        return False
    for _ in range(rng.choice((1, 1, 1, 2, 6))):
        path = rng.choice(chunks)
        kind = rng.randrange(12)
        if not path.is_file():
            continue
        if kind == 0:
            path.unlink()
        elif kind == 1:
            path.unlink()
            path.mkdir()
        elif kind == 2:
            other = rng.choice([other for other in chunks if other.is_file()])
            path.write_bytes(other.read_bytes())
        else:
            path.write_bytes(changed(path.read_bytes(), rng))
    return True


def changed(data, rng):
    """A copy with flipped bits, other bytes, other numbers, less or more."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if not data:
            break
        at = rng.randrange(len(data)) if rng.random() < 0.5 else rng.randrange(min(len(data), 20))
        kind = rng.randrange(7)
        if kind < 2:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[at] = rng.randrange(256)
        elif kind == 3:
            data[at : at + 4] = rng.choice((2**31, 2**31 - 1, 2**32 - 1, 0, 1, 2**28)).to_bytes(4, "little")
        elif kind == 4:
            del data[at:]
        elif kind == 5:
            del data[at : at + rng.randrange(1, 9)]
        else:
            data[at:at] = rng.randbytes(rng.randrange(1, 30))
    return bytes(data)


def check_line(text, path):
    named = str(path) in text or "image holds values that are NaN" in text
    assert named and text.isprintable(), f"no proper message: {text}"


def check_open(path):
    """Read a small box of a store; returns whether it could be read."""
    try:
        with open_image(path) as image:
            assert image[tuple(slice(0, 8) for _ in image.shape)].dtype == image.dtype
    except (ValueError, MemoryError, OSError) as error:
        check_line(str(error), path)
        return False
    return True


def check_command(path, out):
    """Denoise a store in this process; returns whether it could be read."""
    argv, errors = sys.argv, io.StringIO()
    sys.argv = ["treefield", "denoise", str(path), str(out), "--memory-limit", "20GB", "--levels", "4", "--quiet"]
    try:
        with contextlib.redirect_stderr(errors):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = argv
    printed = "".join(
        line for line in errors.getvalue().splitlines(keepends=True) if "compiling its kernels" not in line
    )
    if code == 0:
        assert printed == "" and np.load(out).shape == IMAGE.shape, f"a run that ended well: {printed}"
        out.unlink()
        return True
    assert code == 2 and printed.startswith("treefield: ") and printed.endswith("\n"), f"exit code {code}: {printed}"
    check_line(printed[:-1], path)
    assert sorted(out.parent.iterdir()) == [path], "files were left behind"
    return False


def check_damaged(folder, kind, number, good):
    """Damage a copy of a store in an empty folder, and read it; returns whether that was possible."""
    rng, path = random.Random(f"{kind} {number}"), folder / "image.zarr"
    shutil.copytree(good, path)
    try:
        same = damage(path, rng)
        opened = check_open(path)
        return check_command(path, folder / "out.npy") if same else opened
    finally:
        shutil.rmtree(path)


def _child(kind, count, folder, progress, results):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    good, work = folder / "good.zarr", folder / "work"
    work.mkdir()
    write_store(good, kind)
    read, wrong = 0, []
    for number in range(count):
        progress.value = number
        try:
            read += check_damaged(work, kind, number, good)
        except BaseException as error:
            wrong.append((number, f"{type(error).__name__}: {error}"[:300]))
    results.put((read, wrong))


def run(kind, count):
    """Damage a store that many times; returns what went wrong."""
    progress, results = multiprocessing.Value("i", -1), multiprocessing.Queue()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        child = multiprocessing.Process(target=_child, args=(kind, count, pathlib.Path(folder), progress, results))
        child.start()
        while child.is_alive() and results.empty():
            child.join(0.1)
        if results.empty() and child.exitcode:
            return [(progress.value, f"the process ended with {child.exitcode}")]
        read, wrong = results.get(timeout=5)
        child.join()
    seconds = time.perf_counter() - start
    print(f"{kind:10} {count} damaged, {read} read, {len(wrong)} wrong, {seconds:.0f} s", flush=True)
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=1000, help="of each kind of store")
    parser.add_argument("--kinds", default=",".join(STORES), help="with commas")
    given = parser.parse_args()
    bad = 0
    for kind in given.kinds.split(","):
        for number, what in run(kind, given.mutations):
            bad += 1
            print(f"   {kind} {number}: {what}", flush=True)
    sys.exit(bool(bad))
