"""A mixture of jumps learns which of them pay."""

from collections import Counter

import numpy as np

import treefield as tf
from small import check_memory_survives_json
from treefield.moves import BoxJump, MixedJump, PerComponent, SegmentJump, UniformJump

MRF = tf.GridMRF(np.zeros((2, 2, 2)), tf.Potts(1))


class Marked:
    """A jump that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, mrf, rng):
        self.calls += 1
        return x.copy()


def use(jump, iterations, wins, work=1.0, rng=None):
    """Let a mixture jump, and tell it what `wins(chosen)` says it won; returns which were chosen."""
    rng = np.random.default_rng(0) if rng is None else rng
    x, chosen = np.zeros((2, 2), np.int32), []
    for _ in range(iterations):
        before = [inner.calls for inner in jump.jumps]
        jump(x, MRF, rng)
        (number,) = np.flatnonzero([inner.calls > was for inner, was in zip(jump.jumps, before, strict=True)])
        jump.learn(wins(number), work if not callable(work) else work(number))
        chosen.append(int(number))
    return chosen


def test_a_mixture_chooses_mostly_what_wins_but_forgets_none():
    jump = MixedJump([Marked() for _ in range(4)])
    chosen = Counter(use(jump, 1000, lambda number: float(number == 2)))
    assert chosen[2] > 800 and all(chosen[number] > 5 for number in range(4))


def test_a_mixture_counts_what_is_won_per_unit_of_work():
    jump = MixedJump([Marked(), Marked()])
    chosen = Counter(use(jump, 1000, lambda number: 1.0, work=lambda number: 9.0 if number == 0 else 1.0))
    assert chosen[1] > 700


def test_a_mixture_follows_when_another_jump_becomes_better():
    jump, rng = MixedJump([Marked(), Marked()]), np.random.default_rng(0)
    early = Counter(use(jump, 300, lambda number: float(number == 0), rng=rng))
    late = Counter(use(jump, 300, lambda number: float(number == 1), rng=rng))
    assert early[0] > 200 and late[1] > 200


def test_a_mixture_that_wins_nothing_tries_all_evenly():
    chosen = Counter(use(MixedJump([Marked() for _ in range(4)]), 2000, lambda number: 0.0))
    assert all(400 < chosen[number] < 600 for number in range(4))


def test_t_ils_reports_the_gain_of_each_jump_to_a_mixture():
    mrf = tf.GridMRF(np.tile(np.float32([0, 1, 1]), (20, 20, 1)), tf.Potts(0))
    used = Counter()

    def repair(x, mrf, rng):
        used["repair"] += 1
        y = x.copy()
        y.flat[np.argmax(y.reshape(-1) != 0)] = 0  # the first site that is not at its best
        return y

    def spoil(x, mrf, rng):
        used["spoil"] += 1
        y = x.copy()
        y.flat[rng.integers(y.size)] = 1
        return y

    class NoSearch:
        def sweep(self, x, *args, **keywords):
            return 0.0

    res = tf.t_ils(
        mrf,
        np.ones(mrf.shape, int),
        jump=MixedJump([spoil, repair]),
        accept=PerComponent(),
        local_search=NoSearch(),
        maxiter=200,
        rng=0,
    )
    assert used["repair"] > 160 and used["spoil"] > 3
    assert res.fun == 400 - used["repair"]


def test_the_state_of_a_mixture_survives_json():
    def mixture():
        return MixedJump([UniformJump(0.2), BoxJump(size=(2, 3)), MixedJump([SegmentJump(), SegmentJump("shift")])])

    mrf = tf.GridMRF(np.random.default_rng(0).random((7, 9, 4), dtype=np.float32), tf.Potts(0.4))
    check_memory_survives_json(mixture, mrf)


def test_a_mixture_goes_on_when_nothing_has_been_won_for_long():
    jump, rng = MixedJump(), np.random.default_rng(0)
    jump.uses[:] = 1
    jump.spent[:] = 3
    for won in ([5e-324, 1e-323, 0, 0, 0, 0], [1e-199, 5e-324, 0, 0, 0, 0], [1e300, 1e-300, 1, 0, 0, 0]):
        jump.won[:] = won
        assert {jump._choose(rng) for _ in range(300)} <= set(range(6))
