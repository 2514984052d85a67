"""A search that was stopped, or killed, goes on from its checkpoint as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import treefield as tf
from fuzz_checkpoints import Wave, parsed
from small import check_same
from treefield.moves import BoxJump, Metropolis, MixedJump, PerComponent, UniformJump, Unvisited
from treefield.solvers import checkpoint as checkpoints

TOTAL = 30


SEARCHES = {
    "the paper's": (tf.t_ils, {}),
    "mixed, per component": (tf.t_ils, {"jump": MixedJump(), "accept": PerComponent(), "trees": "bands"}),
    "per component, adapted": (tf.t_ils, {"jump": MixedJump(), "accept": PerComponent(Metropolis())}),
    "unvisited": (tf.t_ils, {"accept": Unvisited(Metropolis(), length=8)}),
    "unvisited pieces": (tf.t_ils, {"accept": Unvisited(PerComponent(Metropolis(beta=2)))}),
    "random order": (tf.t_ils, {"order": "random", "inner_iter": None, "local_search": "t_icm"}),
    "ribbons": (tf.t_ils, {"trees": "ribbons", "width": 2, "jump": MixedJump(), "accept": PerComponent()}),
    "ribbons in random order": (tf.t_ils, {"trees": "ribbons", "order": "random", "inner_iter": None}),
    "genetic with ribbons": (tf.genetic, {"population": 4, "trees": "ribbons", "width": 3}),
    "a jump of the user's": (tf.t_ils, {"jump": Wave()}),
    "annealing": (tf.anneal, {"schedule": "log"}),
    "genetic": (tf.genetic, {"population": 4}),
    "genetic, a jump of the user's": (tf.genetic, {"population": 4, "mutation": Wave()}),
    "genetic by site": (tf.genetic, {"population": 4, "crossover": "site", "mutation": BoxJump(size=(2, 5))}),
}
GENERATORS = {"PCG64": np.random.PCG64, "MT19937": np.random.MT19937, "Philox": np.random.Philox}


@pytest.fixture
def save_every_iteration(monkeypatch):
    """A file after every iteration."""
    monkeypatch.setattr(checkpoints, "_INTERVAL", 0)
    monkeypatch.setattr(checkpoints, "_SHARE", 0)


# --- going on -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEARCHES)
def test_a_resumed_search_equals_an_uninterrupted_one(mrf, path, name):
    solver, options = SEARCHES[name]
    whole = solver(mrf, maxiter=TOTAL, rng=0, **options)
    for stop in (0, 1, 7, 8, 20):
        part = solver(mrf, maxiter=stop, rng=0, checkpoint=path, **options)
        assert part.nit == stop
    # neither the start nor the seed of the last part matters
    resumed = solver(mrf, "unary", maxiter=TOTAL, rng=99, checkpoint=path, **options)
    check_same(resumed, whole)
    assert np.all(np.diff(resumed.trace["seconds"]) >= 0)
    assert list(path.parent.iterdir()) == [path]
    again = solver(mrf, maxiter=TOTAL, rng=5, checkpoint=path, **options)  # nothing is left to do
    check_same(again, whole)


@pytest.mark.parametrize("name", ["the paper's", "mixed, per component", "genetic"])
@pytest.mark.parametrize("generator", GENERATORS)
def test_every_kind_of_generator_is_resumed_where_it_stopped(mrf, path, name, generator):
    solver, options = SEARCHES[name]

    def rng(seed):
        return np.random.Generator(GENERATORS[generator](seed))

    whole = solver(mrf, maxiter=20, rng=rng(0), **options)
    solver(mrf, maxiter=9, rng=rng(0), checkpoint=path, **options)
    check_same(solver(mrf, maxiter=20, rng=rng(1), checkpoint=path, **options), whole)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("how", ["error", "StopIteration", "SIGTERM", "KeyboardInterrupt"])
def test_a_search_stopped_in_any_way_resumes_to_the_same_end(mrf, path, name, how):
    solver, options = SEARCHES[name]
    stops = iter((3, 11, 12))

    def callback(intermediate_result):
        if intermediate_result.nit == at:
            if how == "SIGTERM":
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                raise {"error": ZeroDivisionError, "StopIteration": StopIteration}.get(how, KeyboardInterrupt)

    whole = solver(mrf, maxiter=TOTAL, rng=0, **options)
    for at in stops:
        try:
            res = solver(mrf, maxiter=TOTAL, rng=0, checkpoint=path, callback=callback, **options)
            assert res.nit == at
        except ZeroDivisionError:
            assert how == "error"
    check_same(solver(mrf, maxiter=TOTAL, rng=0, checkpoint=path, **options), whole)
    assert list(path.parent.iterdir()) == [path]


def test_patience_and_backtracks_are_counted_across_resumes(mrf, path):
    for limits in ({"patience": 9}, {"max_backtracks": 12, "beta": np.inf}):
        path.unlink(missing_ok=True)
        whole = tf.t_ils(mrf, rng=0, **limits)
        for stop in range(2, 40, 3):
            tf.t_ils(mrf, rng=0, maxiter=stop, checkpoint=path, **limits)
        check_same(tf.t_ils(mrf, rng=0, checkpoint=path, **limits), whole)


def test_every_restart_has_its_own_checkpoint_file(mrf, path):
    options = {"restarts": 3, "rng": 0, "jump": MixedJump(), "accept": PerComponent()}
    whole = tf.t_ils(mrf, maxiter=20, **options)
    tf.t_ils(mrf, maxiter=8, checkpoint=path, **options)
    files = sorted(path.parent.iterdir())
    assert files == [path.with_name(f"{path.name}.{number}") for number in range(3)]
    files[1].unlink()  # one search starts again, the others resume
    resumed = tf.t_ils(mrf, maxiter=20, checkpoint=path, workers=1, **options)
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert (resumed.fun, resumed.nit) == (whole.fun, whole.nit)


def test_the_checkpoint_path_may_be_a_relative_string(mrf, path, monkeypatch):
    monkeypatch.chdir(path.parent)
    tf.t_ils(mrf, maxiter=3, rng=0, checkpoint=path.name)
    check_same(tf.t_ils(mrf, maxiter=9, checkpoint=path), tf.t_ils(mrf, maxiter=9, rng=0))


def test_a_checkpoint_recognises_a_model_that_is_built_again(mrf, path):
    tf.t_ils(mrf, maxiter=3, rng=0, checkpoint=path)
    again = tf.GridMRF(mrf.unary.copy(), tf.Potts(0.4))
    check_same(tf.t_ils(again, maxiter=9, checkpoint=path), tf.t_ils(mrf, maxiter=9, rng=0))


def test_a_resumed_search_keeps_forbidden_costs(path):
    unary = np.random.default_rng(0).random((6, 7, 4), dtype=np.float32)
    unary[2, 3] = np.inf  # whatever its label, a site that is forbidden
    mrf = tf.GridMRF(unary, tf.Potts(0.4))
    whole = tf.t_ils(mrf, maxiter=12, rng=0)
    tf.t_ils(mrf, maxiter=5, rng=0, checkpoint=path)
    resumed = tf.t_ils(mrf, maxiter=12, rng=0, checkpoint=path)
    check_same(resumed, whole)
    assert resumed.fun == np.inf and resumed.status == 4


@pytest.mark.parametrize("name", ["random order", "genetic"])
def test_a_search_terminated_in_an_iteration_resumes_to_the_same_end(mrf, path, name):
    solver, options = SEARCHES[name]
    calls, terminated = [], []

    class Terminating:
        """A jump that changes outside of the search, and is recognised by its repr."""

        def __repr__(self):
            return "Terminating()"

        def __call__(self, x, mrf, rng):
            calls.append(1)
            if len(calls) == 6 and terminated:
                os.kill(os.getpid(), signal.SIGTERM)
            return UniformJump(0.5)(x, mrf, rng)

    moves = options | {"mutation" if solver is tf.genetic else "jump": Terminating()}
    whole = solver(mrf, "unary", maxiter=12, rng=0, **moves)
    calls.clear()
    terminated.append(1)
    assert solver(mrf, "unary", maxiter=12, rng=0, checkpoint=path, **moves).status == 3
    check_same(solver(mrf, "unary", maxiter=12, rng=0, checkpoint=path, **moves), whole)


def test_a_genetic_search_truncated_by_its_time_limit_resumes(mrf, path):
    tf.genetic(mrf, time_limit=0, rng=0, checkpoint=path)
    assert tf.genetic(mrf, maxiter=2, rng=0, checkpoint=path).nit == 2


# --- killed ---------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys, time
import numpy as np
import treefield as tf
from treefield.solvers import checkpoint

pause = float(sys.argv[3])
checkpoint._INTERVAL = checkpoint._SHARE = 0  # a file after every iteration: a kill often comes while one is written
mrf = tf.GridMRF(np.random.default_rng(0).random((60, 60, 4), dtype=np.float32), tf.Potts(0.4))
moves = {"jump": tf.moves.MixedJump(), "accept": tf.moves.PerComponent(tf.moves.Metropolis()), "trees": "bands"}
wait = None if pause == 0 else lambda intermediate_result: time.sleep(pause)
res = tf.t_ils(mrf, maxiter=400, rng=7, checkpoint=sys.argv[1] or None, callback=wait, **moves)
np.savez(sys.argv[2], x=res.x, trace=res.trace)
"""


def test_a_search_that_is_killed_again_and_again_ends_in_the_same_labelling(tmp_path):
    script = tmp_path / "search.py"
    script.write_text(SCRIPT)
    (tmp_path / "files").mkdir()
    path, answer = tmp_path / "files" / "killed", tmp_path / "answer.npz"

    def start(path, pause):
        return subprocess.Popen([sys.executable, script, path, answer, str(pause)])

    rng, last = np.random.default_rng(0), None
    for _ in range(5):
        process = start(path, 0.004)
        while process.poll() is None and (not path.exists() or path.read_bytes() == last):
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
        last = path.read_bytes()
    assert not answer.exists()
    assert start(path, 0).wait() == 0
    with np.load(answer) as killed:
        x, energies = killed["x"], killed["trace"]["energy"]
    answer.unlink()
    assert start("", 0).wait() == 0
    with np.load(answer) as whole:
        np.testing.assert_array_equal(x, whole["x"])
        np.testing.assert_array_equal(energies, whole["trace"]["energy"])


def test_at_any_moment_the_checkpoint_is_one_complete_file(mrf, path, save_every_iteration):
    sizes = []

    def callback(intermediate_result):
        if intermediate_result.nit > 1:
            header, _ = parsed(path.read_bytes())
            sizes.append(header["arrays"]["trace"]["shape"][0])
            assert list(path.parent.iterdir()) == [path]

    tf.t_ils(mrf, maxiter=12, rng=0, checkpoint=path, callback=callback)
    assert sizes == list(range(3, 14))


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one_unchanged(mrf, path, save_every_iteration, monkeypatch):
    tf.t_ils(mrf, maxiter=3, rng=0, checkpoint=path)
    before = path.read_bytes()

    def raise_full_disk(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", raise_full_disk)
        with pytest.warns(UserWarning, match="could not be written: .*No space left.*; the search goes on"):
            res = tf.t_ils(mrf, maxiter=9, rng=0, checkpoint=path)
    check_same(res, tf.t_ils(mrf, maxiter=9, rng=0))
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
    check_same(tf.t_ils(mrf, maxiter=9, rng=0, checkpoint=path), tf.t_ils(mrf, maxiter=9, rng=0))
