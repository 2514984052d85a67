"""A Numba that has renamed its private names: the cache or a notice is lost, but neither the import nor a search."""

import os
import subprocess
import sys

import pytest

KERNEL = """
import sys
import numpy as np
__name__ = "treefield.kernels.probe"  # kernels of other packages are not timed
sys.modules[__name__] = sys.modules["__main__"]
from treefield.kernels.simd.jit import compile_time, inline_helper, kernel
from treefield.kernels.simd.lanes import LANES, load, store

@inline_helper
def double(x, i):
    return load(x, i) + load(x, i)

@kernel
def run(x, out):
    store(out, 0, double(x, 0))

x, out = np.arange(8.0), np.zeros(8)
run(x, out)
print(out.tolist() == (2 * x).tolist(), compile_time().seconds > 0, sum(run.stats.cache_hits.values()))
"""
SEARCH = """
import numpy as np, treefield as tf
mrf = tf.GridMRF(np.random.default_rng(0).random((9, 9, 3)), tf.Potts(0.3))
print(tf.t_icm(mrf, rng=0).fun)
"""
# names that Numba itself needs: hidden from treefield only
HIDE = """
from treefield.kernels.simd import numba_internals
find_{0} = numba_internals._find
numba_internals._find = lambda module, name: None if name == "{0}" else find_{0}(module, name)
"""
EVENTS = {
    "listener": HIDE.format("Listener"),
    "register": HIDE.format("register"),
    "kinds": """
from treefield.kernels.simd import numba_internals
def register(kind, listener): raise ValueError(kind)
find = numba_internals._find
numba_internals._find = lambda module, name: register if name == "register" else find(module, name)
""",
}
CACHE = {
    "dumps": HIDE.format("dumps"),
    "reduce": "from numba.core.compiler import CompileResult; del CompileResult._reduce",
    "magic tuple": "from numba.core.codegen import CPUCodegen\n"
    "CPUCodegen.magic_tuple = property(lambda self: self.no_magic_tuple)",
    "dispatcher": "from numba.core.dispatcher import Dispatcher; from numba.core.caching import NullCache\n"
    "Dispatcher._cache = property(lambda self: NullCache(), lambda self, cache: None)",
}
OPTIONS = HIDE.format("cpu_target")


def run(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def test_kernel_is_timed_and_cached_with_the_present_numba(tmp_path):
    assert run(KERNEL, tmp_path) == (["True", "True", "0"], "")
    assert run(KERNEL, tmp_path) == (["True", "False", "1"], "")  # Numba reports no event where it only loads


@pytest.mark.parametrize("name", EVENTS)
def test_without_events_compile_time_is_not_counted(tmp_path, name):
    assert run(EVENTS[name] + KERNEL, tmp_path) == (["True", "False", "0"], "")
    assert run(EVENTS[name] + KERNEL, tmp_path) == (["True", "False", "1"], "")


@pytest.mark.parametrize("name", CACHE)
def test_without_the_internals_of_the_cache_kernels_are_compiled_each_time(tmp_path, name):
    for _ in range(2):
        answer, notices = run(CACHE[name] + KERNEL, tmp_path)
        assert answer == ["True", "True", "0"]
        others = [line for line in notices.splitlines() if "compiling its kernels" not in line]  # on a slow machine
        assert len(others) <= 1 and all("with Numba" in line for line in others)
    assert list(tmp_path.rglob("*.nbc")) == []


def test_cached_kernel_that_cannot_be_rebuilt_is_compiled(tmp_path):
    run(HIDE.format("nothing") + KERNEL, tmp_path)  # the kernel is on the same line
    answer, notices = run(HIDE.format("CompileResult") + KERNEL, tmp_path)
    assert answer == ["True", "True", "0"] and notices.startswith("treefield: cannot read compiled kernels with Numba")


def test_without_private_options_kernels_are_compiled_with_the_public_ones(tmp_path):
    assert run(OPTIONS + KERNEL, tmp_path) == (["True", "True", "0"], "")


def test_search_finds_the_same_energy_without_any_private_name(tmp_path):
    answer, _ = run(SEARCH, tmp_path / "present")
    renames = "\n".join([HIDE.format("Listener"), OPTIONS, *CACHE.values()])
    assert run(renames + SEARCH, tmp_path / "renamed")[0] == answer
