"""Threads that share the work of a sweep."""

import os
import threading
import time

import numpy as np
import pytest

import treefield as tf
from treefield.backends.threads import Workers, share_of


def test_shares_are_all_parts_in_order():
    parts = np.arange(11)
    for count in (1, 2, 3, 11, 20):
        shares = [share_of(parts, k, count) for k in range(count)]
        np.testing.assert_array_equal(np.concatenate(shares), parts)
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("count", [1, 2, 5])
def test_work_runs_once_in_each_of_several_threads_at_once(count):
    together, seen = threading.Barrier(min(count, 4)), []

    def work(number, threads):
        assert threads == min(count, 4)
        together.wait(timeout=10)
        seen.append((number, threading.get_ident()))

    for _ in range(20):
        seen.clear()
        Workers(count).run(work, most=4)
        assert sorted(number for number, _ in seen) == list(range(min(count, 4)))
        assert len({thread for _, thread in seen}) == len(seen)


def test_the_error_of_a_thread_is_raised_after_all_have_ended():
    ended = []

    def work(number, threads):
        if number == 1:
            raise ZeroDivisionError("in a thread")
        time.sleep(0.05)
        ended.append(number)

    for _ in range(3):
        ended.clear()
        with pytest.raises(ZeroDivisionError, match="in a thread"):
            Workers(3).run(work, most=3)
        assert sorted(ended) == [0, 2]


def test_threads_that_are_busy_are_not_waited_for():
    """Two callers at once, one of which takes all threads, and work that calls for threads itself."""
    counts = []

    def inner(number, threads):
        counts.append(threads)

    def outer(number, threads):
        if number == 0:
            Workers(2).run(inner, most=2)

    Workers(2).run(outer, most=2)
    assert len(counts) in (1, 2) and set(counts) == {len(counts)}


@pytest.mark.parametrize("callers", [2, 3])
def test_searches_in_several_threads_share_the_helpers_and_end(callers):
    mrf = tf.GridMRF(np.random.default_rng(0).normal(size=(200, 200, 2)).astype(np.float32), tf.Potts(-0.5))
    expected = tf.t_icm(mrf, trees="ribbons", width=6, maxiter=6, rng=0, threads=1)
    found = [None] * callers

    def search(k):
        found[k] = tf.t_icm(mrf, trees="ribbons", width=6, maxiter=6, rng=0, threads=3)

    threads = [threading.Thread(target=search, args=(k,)) for k in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for res in found:
        assert res.fun == expected.fun
        np.testing.assert_array_equal(res.x, expected.x)


def test_more_threads_than_cores_lead_to_the_same_labelling():
    mrf = tf.GridMRF(np.random.default_rng(1).normal(size=(150, 170, 3)).astype(np.float32), tf.Potts(-0.5))
    ends = [tf.t_icm(mrf, trees="ribbons", width=3, maxiter=4, rng=0, threads=n) for n in (1, 2, 3, 16)]
    for res in ends[1:]:
        np.testing.assert_array_equal(res.x, ends[0].x)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    Workers(2).run(lambda number, threads: None, most=2)
    child = os.fork()
    if child == 0:
        seen = []
        Workers(2).run(lambda number, threads: seen.append(number), most=2)
        os._exit(0 if sorted(seen) == [0, 1] else 1)
    assert os.waitpid(child, 0)[1] == 0
