"""Compiled kernels on disk: damaged files are never run, and a cache that fails costs a notice, not the search."""

import errno
import os
import pathlib
import pickle
import random
import shutil
import subprocess
import sys
import threading
import types

import numba
import numpy as np
import pytest

from treefield.kernels.simd import cache, jit
from treefield.kernels.simd.cache import _KernelFiles
from treefield.kernels.simd.jit import kernel
from treefield.kernels.simd.notices import Notice

KEY, DATA = ("float64", "x86"), {"code": bytes(range(256)) * 20}
RUN = """
import numpy as np, treefield as tf
mrf = tf.GridMRF(np.random.default_rng(0).random((30, 30, 3)), tf.Potts(0.3))
print(tf.t_icm(mrf, rng=0).fun)
"""


def add_one(x):
    for i in range(x.size):
        x[i] += 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache, and notices that have not been given."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "notice", Notice())
    return tmp_path


@pytest.fixture
def files(folder):
    return _KernelFiles(folder, "kernel")


def call():
    """Run a kernel as a new process would; returns how often it was compiled."""
    compiled, x = kernel(add_one), np.zeros(5)
    compiled(x)
    np.testing.assert_array_equal(x, 1)
    return sum(compiled.stats.cache_misses.values())


def flip(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


DAMAGES = {
    "empty": lambda data, rng: b"",
    "truncated": lambda data, rng: data[: rng.randrange(len(data))],
    "flipped": flip,
    "zeros": lambda data, rng: bytes(len(data)),
    "longer": lambda data, rng: data + b"\0",
    "pickled": lambda data, rng: pickle.dumps(DATA),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_kernel_is_never_loaded(files, folder, capsys, damage):
    files.save(KEY, DATA)
    (path,) = folder.iterdir()
    good, rng = path.read_bytes(), random.Random(damage)
    for _ in range(300):
        path.write_bytes(DAMAGES[damage](good, rng))
        assert files.load(KEY) is None
    assert capsys.readouterr().err.count(f"treefield: the compiled kernel {path} is damaged") == 1
    files.save(KEY, DATA)
    assert files.load(KEY) == DATA


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_kernel_is_compiled_again_and_repaired(folder, capsys, damage):
    assert (call(), call()) == (1, 0)
    (path,) = folder.rglob("*.nbc")
    path.write_bytes(DAMAGES[damage](path.read_bytes(), random.Random(0)))
    assert (call(), call()) == (1, 0)
    assert capsys.readouterr().err.count("treefield: ") == 1


def test_unreadable_kernel_is_compiled_with_a_notice(folder, capsys):
    call()
    (path,) = folder.rglob("*.nbc")
    path.unlink()
    path.mkdir()
    assert (call(), call()) == (1, 1)
    assert capsys.readouterr().err == f"treefield: cannot read the compiled kernel {path}: Is a directory; " + (
        "compiling it again\n"
    )


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
@pytest.mark.parametrize("operation", ["write_bytes", "replace"])
def test_failed_write_gives_one_notice_and_leaves_no_file(folder, capsys, monkeypatch, number, operation):
    def fail(path, *_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, operation, fail)
        assert (call(), call()) == (1, 1)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"treefield: cannot cache compiled kernels in {folder}") and os.strerror(number) in line
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert (call(), call()) == (1, 0)


def test_folder_that_turns_read_only_costs_a_notice(folder, capsys, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    compiled = kernel(add_one)
    monkeypatch.setattr(pathlib.Path, "mkdir", fail)
    compiled(np.zeros(3))
    assert capsys.readouterr().err.count("Read-only file system") == 1


def test_folder_that_vanishes_is_created_again(folder, capsys):
    compiled = kernel(add_one)
    shutil.rmtree(jit.cache_folder())
    compiled(np.zeros(3))
    assert call() == 0 and capsys.readouterr().err == ""


def test_all_kernels_are_in_the_reported_folder_under_different_names(folder):
    from treefield.kernels.graph.energy import graph_energy
    from treefield.kernels.grid.energy import unary_energy

    names = [cache._file_name(function.py_func).rsplit("-")[0] for function in (graph_energy, unary_energy)]
    assert names == ["graph.energy.graph_energy", "grid.energy.unary_energy"]
    call()
    assert [path.parent for path in folder.rglob("*.nbc")] == [pathlib.Path(jit.cache_folder())]


def test_functions_of_one_name_in_modules_of_one_stem_have_different_files():
    def with_module(name):
        function = types.FunctionType(add_one.__code__, {"__name__": name}, "add_one")
        return cache._file_name(function)

    assert with_module("treefield.kernels.grid.energy") != with_module("treefield.kernels.graph.energy")


@pytest.fixture
def read_only(folder, monkeypatch):
    """Makes the folder read-only, and another one the next choice."""
    second = folder / "home"
    monkeypatch.setattr(cache, "_candidates", lambda configured: [folder / "filled", second])
    cache._usable_folders.cache_clear()

    def forbid(*folders):
        can_write = cache._is_writable
        monkeypatch.setattr(cache, "_is_writable", lambda path: path.name not in folders and can_write(path))
        cache._usable_folders.cache_clear()

    yield forbid
    cache._usable_folders.cache_clear()


def test_filled_read_only_folder_is_read_and_new_kernels_go_to_the_next(read_only, folder, capsys):
    assert (call(), call()) == (1, 0)
    assert jit.cache_folder() == str(folder / "filled")
    read_only("filled")
    assert call() == 0
    assert jit.cache_folder() == str(folder / "home")
    for path in (folder / "filled").iterdir():
        path.rename(path.with_suffix(".gone"))
    assert (call(), call()) == (1, 0)
    assert len(list((folder / "home").glob("*.nbc"))) == 1 and capsys.readouterr().err == ""


def test_filled_read_only_folder_is_read_where_nothing_can_be_written(read_only, folder, capsys):
    assert call() == 1
    read_only("filled", "home")
    assert call() == 0
    assert jit.cache_folder() == str(folder / "filled")
    compiled = kernel(add_one)
    compiled(np.zeros(3, np.float32))  # compiled, and not saved
    assert len(list(folder.rglob("*.nbc"))) == 1 and capsys.readouterr().err == ""


def test_there_is_no_cache_where_nothing_can_be_written_or_read(read_only, capsys):
    read_only("filled", "home")
    assert (call(), call(), jit.cache_folder()) == (1, 1, None)
    assert capsys.readouterr().err == ""


def test_change_of_the_source_file_of_a_foreign_kernel_compiles_it_again(folder, monkeypatch):
    assert (call(), call()) == (1, 0)
    monkeypatch.setattr(cache, "_function_stamp", lambda function: (1.0, 2))
    assert (call(), call()) == (1, 0)


def test_kernel_of_other_sources_or_types_is_ignored_without_a_notice(files, folder, capsys, monkeypatch):
    files.save(KEY, DATA)
    (path,) = folder.iterdir()
    path.rename(files._path(("int8", "x86")))  # as after a collision of names
    assert files.load(("int8", "x86")) is None
    files.save(KEY, DATA)
    monkeypatch.setattr(cache, "_source_stamp", lambda: (("grid.py", 1.0, 2),))
    assert files.load(KEY) is None
    files.save(KEY, "new")
    assert files.load(KEY) == "new" and len(list(folder.iterdir())) == 2
    assert capsys.readouterr().err == ""


def test_writers_of_one_file_do_not_disturb_its_readers(files, capsys):
    stop, seen = threading.Event(), []

    def write(number):
        while not stop.is_set():
            files.save(KEY, [number] * 5000)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    files.save(KEY, [0] * 5000)
    for writer in writers:
        writer.start()
    for _ in range(200):
        data = files.load(KEY)
        seen.append(data is not None and len(data) == 5000 and len(set(data)) == 1)
    stop.set()
    for writer in writers:
        writer.join()
    assert all(seen) and capsys.readouterr().err == ""


def run(folder):
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("treefield: compiling its kernels")]
    return float(done.stdout), lines


def test_search_survives_a_damaged_cache_and_repairs_it(tmp_path):
    energy, lines = run(tmp_path)
    assert lines == []
    good = {path: path.stat().st_size for path in tmp_path.rglob("*.nbc")}
    rng = random.Random(1)
    for number, path in enumerate(sorted(good)):
        path.write_bytes(list(DAMAGES.values())[number % len(DAMAGES)](path.read_bytes(), rng))
    again, lines = run(tmp_path)
    assert again == energy and len(lines) == 1 and "is damaged" in lines[0]
    last, lines = run(tmp_path)
    assert last == energy and lines == []
    assert set(tmp_path.rglob("*.nbc")) == set(good)  # each process finds the files of the others


def test_search_needs_no_room_on_the_cache_disk(tmp_path):
    tmpfs = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", tmp_path], capture_output=True)
    if tmpfs.returncode:
        pytest.skip("a small file system needs the right to mount one")
    try:
        _, lines = run(tmp_path)
        left = [path.name for path in tmp_path.rglob("*") if ".tmp." in path.name]
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
    assert left == [] and len(lines) == 1 and "No space left on device" in lines[0] and "NUMBA_CACHE_DIR" in lines[0]
