"""Start-up: light to import, and compilation is counted, cached and announced."""

import os
import subprocess
import sys

import pytest

import treefield as tf

COMPILE_AND_RUN = """
import numpy as np, treefield as tf, time
mrf = tf.GridMRF(np.random.default_rng(0).random((30, 30, 3)), tf.Potts(0.3))
start = time.perf_counter()
res = tf.t_icm(mrf, rng=0, time_limit=60)
print(time.perf_counter() - start, res.trace["seconds"][-1], res.fun)
"""


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )


def test_importing_treefield_does_not_import_the_compiler():
    code = "import sys, treefield; print([m for m in ('numba', 'scipy', 'numpy', 'matplotlib') if m in sys.modules])"
    assert run(code).stdout.strip() == "[]"


def test_every_public_name_can_be_imported():
    for name in tf.__all__:
        assert getattr(tf, name).__doc__
    assert set(tf.__all__) <= set(dir(tf))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tf.nothing


def test_the_first_compilation_is_announced_once_and_neither_timed_nor_repeated(tmp_path):
    cold = run(COMPILE_AND_RUN, NUMBA_CACHE_DIR=str(tmp_path))
    wall, counted, energy = map(float, cold.stdout.split())
    assert cold.stderr.count("treefield: compiling") == 1
    assert counted < wall / 2
    warm = run(COMPILE_AND_RUN, NUMBA_CACHE_DIR=str(tmp_path))
    assert warm.stderr == "" and float(warm.stdout.split()[2]) == energy


def test_kernels_work_where_nothing_can_be_cached(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    code = COMPILE_AND_RUN.replace("import numpy", "import numba; numba.config.CACHE_DIR = ''\nimport numpy")
    assert run(code, NUMBA_CACHE_DIR=str(blocked / "not-a-folder")).stdout
