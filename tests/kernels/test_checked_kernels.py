"""Kernels compiled with bounds checks: no load, store or gather leaves its array, and every answer stays the same."""

import os
import subprocess
import sys

import checked_searches


def test_checked_kernels_stay_within_their_arrays_and_find_the_same_energies():
    done = subprocess.run(
        [sys.executable, checked_searches.__file__],
        env={**os.environ, "TREEFIELD_CHECKED": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == checked_searches.energies()
