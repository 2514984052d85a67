"""Mutated checkpoints are refused or resume exactly; `python tests/fuzz_checkpoints.py` tries more of them."""

import os
import pathlib
import signal
import sys

import pytest

import fuzz_checkpoints


def test_no_mutated_checkpoint_resumes_as_another_search():
    counts, failures = fuzz_checkpoints.fuzz(400, seed=1)
    assert failures == []
    assert sum(counts.values()) == 400 and counts["damaged bytes", "refused"] > 150
    assert {kind for kind, _ in counts} >= {rewrite.__name__ for rewrite in fuzz_checkpoints.REWRITES}


@pytest.mark.skipif(os.name != "posix", reason="a crash is recognised by its signal")
def test_the_checkpoint_fuzzer_counts_a_crash_as_one_failure(tmp_path, monkeypatch):
    crashing = tmp_path / "crashing.py"
    crashing.write_text(
        "import os, sys, fuzz_checkpoints\n"
        "whole = fuzz_checkpoints.outcome\n"
        "fuzz_checkpoints.outcome = lambda number, *rest: os.abort() if number == 3 else whole(number, *rest)\n"
        "sys.exit(fuzz_checkpoints.main())\n"
    )
    tests = str(pathlib.Path(fuzz_checkpoints.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([tests, *filter(None, sys.path)]))
    monkeypatch.setattr(fuzz_checkpoints, "__file__", str(crashing))
    counts, failures = fuzz_checkpoints.fuzz(6)
    assert sum(counts.values()) == 5
    [(number, why)] = failures
    assert number == 3 and f"code {-signal.SIGABRT}" in why
