"""TREEFIELD_CHECKED=1: accesses out of bounds fail with the name of the array, and nothing else changes."""

import os
import subprocess
import sys

import pytest

KERNELS = """
import sys
from typing import NamedTuple
import numpy as np
from treefield.kernels.simd.jit import inline_helper, inline_overload, kernel
from treefield.kernels.simd.lanes import (
    gather, gather_from, gather_pairs, load, load_deinterleaved, prefetch, store, store_interleaved, where
)

class Scratch(NamedTuple):
    h: np.ndarray

@inline_helper
def load_scratch(scratch, i):
    return load(scratch.h, i)

@kernel
def copy(scratch, i, out, j):
    store(out, j, load_scratch(scratch, i))

@kernel
def pick(table, base, index, out):
    prefetch(table, 10**9)
    store(out, 0, gather(table, base, load(index, 0)))

@kernel
def pick_from(table, origins, base, offset, out):
    store(out, 0, gather_from(table, origins, base, offset))

@kernel
def pick_pairs(table, base, index, out):
    one, two = gather_pairs(table, base, load(index, 0))
    store(out, 0, one + two)

@kernel
def swap(pairs, i, j):
    a, b = load_deinterleaved(pairs, i)
    store_interleaved(pairs, j, b, a)

@kernel
def plain(x, i):
    return x[i]

def first(x, i):
    pass

@inline_overload(first)
def _first_overload(x, i):
    def impl(x, i):
        return where(load(x, i) < load(x, i), load(x, i), load(x, i))
    return impl

@kernel
def overloaded(x, i, out):
    store(out, 0, first(x, i))

def make(offset):
    @kernel
    def shifted(x, i, out):
        store(out, 0, load(x, i + offset))
    return shifted

h, small, out = np.arange(124.0), np.arange(124, dtype=np.int16), np.zeros(8)
numbers, pairs = np.arange(8), np.arange(24.0)
calls = {
    "inside": lambda: copy(Scratch(h), 116, out, 0),
    "load": lambda: copy(Scratch(h), 120, out, 0),
    "below": lambda: copy(Scratch(h), -1, out, 0),
    "store": lambda: copy(Scratch(h), 0, out, 1),
    "wide": lambda: copy(Scratch(small), 112, np.zeros(16, np.int16), 0),
    "gather": lambda: pick(h, 118, numbers, out),
    "gather int32": lambda: pick(h, -3, numbers.astype(np.int32), out),
    "gather inside": lambda: pick(h, 116, numbers, out),
    "gather_pairs": lambda: pick_pairs(h, 116, numbers, out),
    "gather_pairs below": lambda: pick_pairs(h, -1, numbers, out),
    "gather_pairs inside": lambda: pick_pairs(h, 115, numbers, out),
    "gather_from": lambda: pick_from(h, numbers, 0, 118, out),
    "origins": lambda: pick_from(h, numbers, 1, 0, out),
    "deinterleaved": lambda: swap(pairs, 9, 0),
    "interleaved": lambda: swap(pairs, 0, 9),
    "interleaved inside": lambda: swap(pairs, 8, 8),
    "plain": lambda: plain(h, 124),
    "overload": lambda: overloaded(h, 117, out),
    "closure": lambda: make(100)(h, 17, out),
}
for name, call in calls.items():
    try:
        call()
        print(name, "passed", sep="|")
    except IndexError as error:
        print(name, error, sep="|")
"""

MESSAGES = {
    "inside": "passed",
    "load": 'load of lanes 120 to 127 of array "scratch.h", which has 124 elements',
    "below": 'load of lanes -1 to 6 of array "scratch.h", which has 124 elements',
    "store": 'store of lanes 1 to 8 of array "out", which has 8 elements',
    "wide": 'load of lanes 112 to 127 of array "scratch.h", which has 124 elements',
    "gather": 'gather of element 124 of array "table", which has 124 elements',
    "gather int32": 'gather of element -3 of array "table", which has 124 elements',
    "gather inside": "passed",
    "gather_pairs": 'gather_pairs of lanes 123 to 124 of array "table", which has 124 elements',
    "gather_pairs below": 'gather_pairs of lanes -1 to 0 of array "table", which has 124 elements',
    "gather_pairs inside": "passed",
    "gather_from": 'gather_from of element 124 of array "table", which has 124 elements',
    "origins": 'gather_from of lanes 1 to 8 of array "origins", which has 8 elements',
    "deinterleaved": 'load_deinterleaved of lanes 9 to 24 of array "pairs", which has 24 elements',
    "interleaved": 'store_interleaved of lanes 9 to 24 of array "pairs", which has 24 elements',
    "interleaved inside": "passed",
    "plain": "index is out of bounds",
    "overload": 'load of lanes 117 to 124 of array "x", which has 124 elements',
    "closure": 'load of lanes 117 to 124 of array "x", which has 124 elements',
}


def run(folder, code, **environment):
    done = subprocess.run(
        [sys.executable, *code],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), **environment},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("checked") / "kernels.py"
    path.write_text(KERNELS)
    return path


@pytest.fixture(scope="module")
def answers(script):
    output = run(script.parent, [script], TREEFIELD_CHECKED="1")
    return dict(line.split("|", 1) for line in output.splitlines())


@pytest.mark.parametrize("name", MESSAGES)
def test_access_fails_with_the_name_of_the_array_and_the_line(answers, script, name):
    message = MESSAGES[name]
    assert answers[name].startswith(message)
    if "array" in message:
        place = answers[name].removeprefix(message)
        line = int(place.removesuffix(")").split("line ")[1])
        assert place.startswith(f" ({script.parent.name}/kernels.py, ")
        assert f"{message.split()[0]}(" in KERNELS.splitlines()[line - 1]


def test_checked_kernels_are_cached_apart_from_the_others(script):
    inside = script.with_name("inside.py")
    inside.write_text(KERNELS.split("calls = {")[0] + "copy(Scratch(h), 0, out, 0)")

    def cached_after_both_builds():
        for value in "01":
            run(script.parent, [inside], TREEFIELD_CHECKED=value)
        return {path: path.stat().st_mtime_ns for path in (script.parent / "cache").rglob("*.copy-*.nbc")}

    first = cached_after_both_builds()
    assert len(first) >= 2 and cached_after_both_builds() == first


def test_functions_are_compiled_as_written_without_the_variable():
    code = (
        "from treefield.kernels.simd import checks, jit, lanes\n"
        "from treefield.kernels.grid.lines import solve_lines\n"
        "print(checks.CHECKED, 'check_lanes' in solve_lines.py_func.__globals__, solve_lines.targetoptions)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TREEFIELD_CHECKED"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    flag, inserted, options = done.stdout.split(maxsplit=2)
    assert (flag, inserted) == ("False", "False") and "'_nrt': False" in options and "'boundscheck': None" in options
