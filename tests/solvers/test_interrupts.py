"""A search that is watched, interrupted or terminated."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import treefield as tf
from small import check_result
from treefield.moves import UniformJump
from treefield.solvers.interrupt import Interrupts, defer_signals


@pytest.mark.parametrize("restarts", [1, 2])
def test_progress_is_a_bar_on_stderr(mrf, capsys, restarts):
    res = tf.t_ils(mrf, maxiter=12, rng=0, progress=True, restarts=restarts)
    out, err = capsys.readouterr()
    assert not out and "t_ils" in err and f"{12 * restarts}/{12 * restarts}" in err and "best=" in err
    assert f"best={res.fun:.7g}" in err or restarts > 1
    tf.t_ils(mrf, maxiter=12, rng=0)
    assert capsys.readouterr() == ("", "")


def interrupting(how, at=4):
    def callback(intermediate_result):
        if intermediate_result.nit == at:
            how()

    return callback


def pressed():
    raise KeyboardInterrupt


WAYS = {
    "KeyboardInterrupt": pressed,
    "SIGINT": lambda: os.kill(os.getpid(), signal.SIGINT),
    "SIGTERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_solver_returns_the_best_so_far_after_an_interrupt(mrf, way):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    res = tf.t_ils(mrf, maxiter=500, rng=0, callback=interrupting(WAYS[way]))
    check_result(mrf, res)
    assert res.nit == 4 and res.status == 3 and not res.success
    assert "terminated (SIGTERM)" in res.message if way == "SIGTERM" else "interrupted" in res.message
    np.testing.assert_array_equal(res.x, tf.t_ils(mrf, maxiter=4, rng=0).x)
    assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))


@pytest.mark.parametrize("method", ["auto", "trw", "t_ils", "icm", "genetic"])
def test_a_search_interrupted_before_its_first_iteration_says_so(mrf, monkeypatch, method):
    enter = Interrupts.__enter__

    def enter_and_press(self):
        enter(self)
        os.kill(os.getpid(), signal.SIGINT)
        return self

    monkeypatch.setattr(Interrupts, "__enter__", enter_and_press)
    res = tf.minimize(mrf, method=method, rng=0)
    assert res.fun == mrf.energy(res.x) and res.status == tf.Status.INTERRUPTED and not res.success and res.nit == 0
    assert "before the end of the first iteration" in res.message or len(res.trace) == 2  # a first local search


def test_an_interrupted_jump_leaves_the_best_labelling_unchanged(mrf):
    calls = []

    def jump(x, mrf, rng):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return UniformJump()(x, mrf, rng)

    res = tf.t_ils(mrf, jump=jump, rng=0)
    check_result(mrf, res)
    assert res.nit == 5 and res.status == 3


@pytest.mark.parametrize("way", ["SIGINT", "SIGTERM"])
def test_a_signal_stops_all_restarts(mrf, way):
    sent = []

    def callback(intermediate_result):
        if intermediate_result.nit == 4 and not sent:
            sent.append(1)
            WAYS[way]()

    res = tf.t_ils(mrf, restarts=2, workers=2, maxiter=100_000, time_limit=20, callback=callback, rng=0)
    assert res.fun == mrf.energy(res.x) and res.status == 3 and not res.success
    assert res.nit < 5000


def test_a_search_leaves_a_signal_handler_of_the_program_alone(mrf):
    caught = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: caught.append(number))
    try:
        mine = signal.getsignal(signal.SIGTERM)
        res = tf.t_ils(mrf, maxiter=10, rng=0, callback=interrupting(WAYS["SIGTERM"]))
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught == [signal.SIGTERM] and res.nit == 10 and res.status == 1


def test_a_second_ctrl_c_interrupts_at_once(mrf):
    calls = []

    def jump(x, mrf, rng):
        if len(calls) == 3:
            WAYS["SIGINT"]()
            WAYS["SIGINT"]()
            calls.append("not reached")
        calls.append(1)
        return UniformJump()(x, mrf, rng)

    res = tf.t_ils(mrf, jump=jump, rng=0)
    check_result(mrf, res)
    assert res.nit == 3 and res.status == 3 and calls == [1, 1, 1]


def test_an_inner_search_takes_the_signal_and_hands_it_back():
    with Interrupts() as outer:
        with Interrupts() as inner:
            WAYS["SIGTERM"]()
            assert inner.pending and not outer.pending
        assert outer.pending == "terminated (SIGTERM)"
        with Interrupts() as late:
            assert late.pending == outer.pending
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_searches_in_threads_share_the_note_of_the_main_thread():
    def pending_in_thread():
        with Interrupts() as inner:
            return inner.pending

    with Interrupts() as entered, ThreadPoolExecutor(1) as pool:
        assert pool.submit(pending_in_thread).result() == ""
        entered.pending = "interrupted"
        assert pool.submit(pending_in_thread).result() == "interrupted"
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(pending_in_thread).result() == ""


def test_a_signal_in_a_nested_search_stops_both(mrf):
    nested = []

    def callback(intermediate_result):
        if intermediate_result.nit == 2:
            nested.append(tf.t_ils(mrf, maxiter=10**6, time_limit=60, rng=0, callback=interrupting(WAYS["SIGINT"])))

    res = tf.t_ils(mrf, maxiter=500, rng=0, callback=callback)
    assert (res.nit, nested[0].nit) == (2, 4)
    assert res.status == nested[0].status == tf.Status.INTERRUPTED


def test_ctrl_c_waits_for_the_end_of_a_deferred_block():
    reached = []
    with pytest.raises(KeyboardInterrupt), defer_signals():
        WAYS["SIGINT"]()
        reached.append("the end of the block")
    assert reached and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_does_not_wait_for_a_deferred_block():
    with pytest.raises(KeyboardInterrupt), defer_signals():
        WAYS["SIGINT"]()
        WAYS["SIGINT"]()
        pytest.fail("not interrupted")


def test_a_deferred_block_within_a_search_leaves_its_signal_to_the_search():
    with Interrupts() as outer:
        with defer_signals():
            WAYS["SIGINT"]()
        assert outer.pending == "interrupted"


def test_sigterm_runs_cleanup_code_and_then_ends_the_process():
    code = """
import os, signal
from treefield.solvers.interrupt import Interrupts, clean_up_on_sigterm
with clean_up_on_sigterm():
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
    try:
        with clean_up_on_sigterm():
            print(interrupts.pending)
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        print("cleaned up", flush=True)
print("not reached", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "terminated (SIGTERM)\ncleaned up\n")
    assert done.stderr == ""
