"""The sites and labels that each jump changes, and how often."""

import copy
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import naive
import naive_search
import treefield as tf
from treefield.backends.grid.regions import GridBoxes
from treefield.moves import BetaJump, BoxJump, LevyJump, MixedJump, SegmentJump, UniformJump

ENDLESS = 2**31 - 1  # enough labels that none is drawn twice


def model(shape, labels=4, seed=0):
    return tf.GridMRF(np.random.default_rng(seed).random((*shape, labels), dtype=np.float32), tf.Potts(0.4))


MODELS = {
    "2-D": model((7, 9)),
    "3-D": model((4, 5, 6)),
    "one row": model((1, 30)),
    "one column": model((30, 1)),
    "one site": model((1, 1)),
    "one label": model((6, 5), labels=1),
}
JUMPS = [
    UniformJump(0.5),
    BetaJump(2, 3),
    LevyJump(1.2, rho_min=0.05),
    BoxJump("best", size=(1, 4)),
    BoxJump("neighbour", size=(1, 4)),
    BoxJump("random", size=(1, 4)),
    BoxJump("scramble", size=(1, 4)),
    BoxJump(size=(40, 50), density=3),
    SegmentJump("neighbour"),
    SegmentJump("shift", shift=2),
    MixedJump(),
    MixedJump([UniformJump(0.3), MixedJump([BoxJump(), SegmentJump()])]),
]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("jump", JUMPS, ids=lambda jump: repr(jump)[:40])
def test_a_jump_returns_a_new_labelling_and_leaves_x_alone(jump, name):
    mrf = MODELS[name]
    for seed in range(20):
        x = np.random.default_rng(seed).integers(mrf.n_labels, size=mrf.shape, dtype=np.int32)
        before = x.copy()
        first, second = (copy.deepcopy(jump)(x, mrf, np.random.default_rng(seed)) for _ in range(2))
        np.testing.assert_array_equal(x, before)
        assert not np.may_share_memory(first, x)
        assert first.dtype == np.int32 and first.shape == mrf.shape and first.flags.c_contiguous
        assert first.min() >= 0 and first.max() < mrf.n_labels
        np.testing.assert_array_equal(first, second)  # the same generator, the same answer


@pytest.mark.parametrize("name", ["2-D", "3-D", "one row", "one column"])
@pytest.mark.parametrize("jump", JUMPS, ids=lambda jump: repr(jump)[:40])
def test_a_jump_changes_something_most_of_the_time(jump, name):
    mrf, rng = MODELS[name], np.random.default_rng(1)
    x = rng.integers(mrf.n_labels, size=mrf.shape, dtype=np.int32)
    jump = copy.deepcopy(jump)
    assert sum(not np.array_equal(jump(x, mrf, rng), x) for _ in range(40)) > 20


# --- a share of the sites -------------------------------------------------------------------------------------------


def endless_model(shape):
    """A grid of which jumps need to know no costs."""
    labels = SimpleNamespace(shape=shape, n_labels=ENDLESS, size=int(np.prod(shape)), has_uniform_labels=True)
    backend = SimpleNamespace(**vars(labels), boxes=GridBoxes(labels))
    backend.random_labels = lambda rng, sites: rng.integers(ENDLESS, size=len(sites), dtype=np.int32)
    return SimpleNamespace(shape=shape, n_labels=ENDLESS, size=labels.size, backend=backend)


def shares(jump, n=20_000, count=1500):
    """The shares of the sites that jumps reset; nearly every draw is another label."""
    endless, rng = endless_model((100, n // 100)), np.random.default_rng(0)
    x = np.full((100, n // 100), 7, np.int32)
    return np.array([np.count_nonzero(jump(x, endless, rng) != x) / n for _ in range(count)])


@pytest.mark.parametrize("rho_max", [0.1, 0.7, 1])
def test_a_uniform_jump_resets_a_uniform_share_up_to_rho_max(rho_max):
    found = shares(UniformJump(rho_max), n=5000)
    assert found.max() <= rho_max + 1e-4
    assert stats.kstest(found, stats.uniform(0, rho_max).cdf).pvalue > 0.01


def test_a_reset_jump_resets_exactly_the_share_that_it_drew():
    class Fixed(UniformJump):
        def share(self, rng):
            return self.rho_max

    x = np.full((5, 8), 7, np.int32)
    endless = endless_model((5, 8))
    for share, expected in [(0.001, 1), (0.1, 4), (0.26, 10), (0.5, 20), (1, 40)]:
        for seed in range(5):
            y = Fixed(share)(x, endless, np.random.default_rng(seed))
            assert np.count_nonzero(y != x) == expected


def test_a_reset_jump_prefers_no_site_and_no_label():
    mrf, rng = model((6, 5), labels=5), np.random.default_rng(0)
    sites, labels = np.zeros(30), np.zeros(5)
    for _ in range(4000):
        # from labels of -1, which no jump gives, every reset can be seen
        y = UniformJump(0.5)(np.full((6, 5), -1, np.int32), mrf, rng).reshape(-1)
        sites += y >= 0
        labels += np.bincount(y[y >= 0], minlength=5)
    np.testing.assert_allclose(sites / sites.mean(), 1, atol=0.1)
    np.testing.assert_allclose(labels / labels.mean(), 1, atol=0.03)


@pytest.mark.parametrize(("a", "b", "rho_max"), [(1, 9, 1), (2, 5, 0.5), (0.5, 0.5, 1)])
def test_a_beta_jump_resets_a_share_of_that_distribution(a, b, rho_max):
    found = shares(BetaJump(a, b, rho_max), n=5000)
    expected = stats.beta(a, b, scale=rho_max)
    assert found.max() <= rho_max
    assert found.mean() == pytest.approx(expected.mean(), rel=0.1)
    assert found.std() == pytest.approx(expected.std(), rel=0.1)
    assert stats.kstest(found, expected.cdf).pvalue > 0.01


@pytest.mark.parametrize("alpha", [0.5, 1, 1.5, 2, 3])
def test_a_levy_jump_follows_its_power_law_between_its_bounds(alpha):
    low, high = 0.01, 0.5
    found = shares(LevyJump(alpha, rho_min=low, rho_max=high))
    assert found.min() >= low - 1e-4 and found.max() <= high + 1e-4

    def distribution(rho):
        rho = np.clip(rho, low, high)
        if alpha == 1:
            return np.log(rho / low) / np.log(high / low)
        return (rho ** (1 - alpha) - low ** (1 - alpha)) / (high ** (1 - alpha) - low ** (1 - alpha))

    assert stats.kstest(found, distribution).pvalue > 0.01


def test_a_levy_jump_mostly_steps_a_little_and_now_and_then_far():
    found = shares(LevyJump())
    assert np.median(found) < 0.01 and found.max() > 0.5


@pytest.mark.parametrize("alpha", [1e-6, 1 - 1e-12, 1 + 1e-8, 110, 1e6])
def test_a_levy_jump_takes_any_exponent(alpha):
    rng, jump = np.random.default_rng(0), LevyJump(alpha)
    found = np.array([jump.share(rng) for _ in range(200)])
    assert np.all((found >= 0.001 - 1e-12) & (found <= 1 + 1e-12))


# --- boxes ----------------------------------------------------------------------------------------------------------

SHAPES = [(40, 50), (12, 14, 16), (1, 300), (300, 1), (1, 1)]
ONE_BOX = 1e-9  # a density so low that there is one box only


def changed_box(x, y):
    """The box, one slice per axis, around all changed sites."""
    sites = np.argwhere(x != y)
    return tuple(slice(low, high + 1) for low, high in zip(sites.min(axis=0), sites.max(axis=0), strict=True))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_box_jump_fills_one_box_of_the_given_size_with_one_label(shape):
    rng, x = np.random.default_rng(0), np.full(shape, 7, np.int32)
    sides = []
    for _ in range(400):
        y = BoxJump("random", size=(2, 9), density=ONE_BOX)(x, endless_model(shape), rng)
        box = changed_box(x, y)
        assert len(np.unique(y[box])) == 1  # so the box is full: all of its sites have changed
        assert y[box].flat[0] != 7
        sides.append([s.stop - s.start for s in box])
        if all(s.start > 0 and s.stop < n for s, n in zip(box, shape, strict=True)):  # not cut by the border
            assert min(sides[-1]) >= 2
    sides = np.array(sides)
    for axis, n in enumerate(shape):
        assert sides[:, axis].max() == min(9, n)
        assert len(set(sides[:, axis])) >= min(n, 8)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_scrambled_box_gets_an_independent_label_for_every_site(shape):
    rng, x = np.random.default_rng(0), np.full(shape, 7, np.int32)
    for _ in range(50):
        y = BoxJump("scramble", size=(2, 6), density=ONE_BOX)(x, endless_model(shape), rng)
        box = changed_box(x, y)
        assert np.count_nonzero(x != y) == y[box].size  # the box is full
        assert len(np.unique(y[box])) == y[box].size


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_box_set_to_a_neighbouring_label_gets_that_of_a_site_in_it_or_next_to_it(shape):
    rng, x = np.random.default_rng(0), np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    inside = 0
    for _ in range(300):
        y = BoxJump("neighbour", size=(3, 5), density=ONE_BOX)(x, endless_model(shape), rng)
        if np.array_equal(x, y):
            continue  # a box of one site took its own label
        box = changed_box(x, y)
        label = y[tuple(np.argwhere(x != y)[0])]
        source = np.unravel_index(label, shape)
        assert all(s.start - 1 <= c <= s.stop for s, c in zip(box, source, strict=True))
        np.testing.assert_array_equal(np.unique(y[box]), label)
        inside += all(s.start <= c < s.stop for s, c in zip(box, source, strict=True))
    if min(shape) > 1:
        assert 30 < inside < 210  # and often enough next to it


@pytest.mark.parametrize("shape", [(12, 14), (6, 7, 8), (1, 60)], ids=str)
def test_a_box_set_to_its_best_label_is_the_best_of_all_constant_ones(shape):
    mrf, rng = model(shape, labels=40), np.random.default_rng(0)
    tables = naive.explicit_tables(shape, 0.4 * naive.potts(40))
    for _ in range(10):
        x = rng.integers(40, size=shape, dtype=np.int32)
        y = BoxJump("best", size=(3, 5), density=ONE_BOX)(x, mrf, rng)
        box = changed_box(x, y)
        costs = [finite for _, finite in naive_search.constant_costs(mrf.unary, tables, x, box)]
        np.testing.assert_array_equal(np.unique(y[box]), int(np.argmin(costs)))


def test_denser_box_jumps_hold_more_boxes():
    rng, x = np.random.default_rng(0), np.full((60, 60), 7, np.int32)
    covered = []
    for density in (0.1, 0.3, 0.9):
        jump = BoxJump("random", size=(3, 6), density=density)
        covered.append(np.mean([np.mean(jump(x, endless_model(x.shape), rng) != x) for _ in range(100)]))
        assert 0.4 * density < covered[-1] < density  # boxes may overlap, and reach over the border
    assert covered[0] < covered[1] < covered[2]


@pytest.mark.parametrize("label", ["random", "scramble"])
def test_boxes_change_the_border_as_often_as_the_rest(label):
    mrf, rng = model((12, 14), labels=40), np.random.default_rng(0)
    jump, touched = BoxJump(label, size=(2, 6), density=0.3), np.zeros(mrf.shape)
    for _ in range(3000):
        x = rng.integers(40, size=mrf.shape, dtype=np.int32)
        touched += jump(x, mrf, rng) != x
    assert touched.min() > 0.8 * touched.max()


# --- segments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["neighbour", "shift"])
@pytest.mark.parametrize("name", ["2-D", "3-D", "one row", "one column"])
def test_a_segment_jump_changes_whole_segments_to_allowed_labels(name, label):
    mrf, rng = MODELS[name], np.random.default_rng(0)
    changed = 0
    for _ in range(30):
        x = rng.integers(mrf.n_labels, size=mrf.shape, dtype=np.int32)
        y = SegmentJump(label, share=0.5, shift=2)(x, mrf, rng)
        for segment in naive_search.segments(x):
            old, new = x[min(segment)], {int(y[i]) for i in segment}
            assert len(new) == 1
            new = new.pop()
            if label == "neighbour":
                assert new == old or new in naive_search.border(x, segment)
            else:
                assert abs(new - old) <= 2
            changed += new != old
    assert changed > 30


@pytest.mark.parametrize("name", ["2-D", "3-D"])
def test_a_segment_jump_changes_segments_up_to_a_size(name):
    mrf, rng = MODELS[name], np.random.default_rng(0)
    some = 0
    for _ in range(40):
        x = rng.integers(2, size=mrf.shape, dtype=np.int32)
        y = SegmentJump("neighbour", share=1)(x, mrf, rng)
        sizes = {True: [0], False: [mrf.size]}
        for segment in naive_search.segments(x):
            sizes[bool(x[min(segment)] != y[min(segment)])].append(len(segment))
        assert max(sizes[True]) < min(sizes[False])
        some += len(sizes[True]) > 1 and len(sizes[False]) > 1
    assert some > 10


@pytest.mark.parametrize("share", [0.3, 1])
def test_the_size_of_segments_is_drawn_log_uniformly_and_of_those_a_share_changes(share):
    # one row of 256 sites: one segment of 1 site, one of 16, and the rest
    mrf, rng = model((1, 256)), np.random.default_rng(0)
    x = np.array([[0] + 16 * [1] + 239 * [2]], np.int32)
    jumped = [SegmentJump("neighbour", share=share)(x, mrf, rng) for _ in range(3000)]
    frequency = [np.mean([y[0, i] != x[0, i] for y in jumped]) for i in (0, 1, 17)]
    # 512**u reaches n in a share 1 - log n / log 512 of the draws
    expected = [share * (1 - np.log(n) / np.log(512)) for n in (1, 16, 239)]
    np.testing.assert_allclose(frequency, expected, atol=0.035)


def test_segment_shifts_are_equally_likely_and_stop_at_the_last_label():
    mrf, rng = model((1, 2), labels=20), np.random.default_rng(0)
    steps = Counter()
    for _ in range(6000):
        y = SegmentJump("shift", share=1, shift=3)(np.array([[10, 0]], np.int32), mrf, rng)
        steps[int(y[0, 0]) - 10] += 1
        assert 0 <= y[0, 1] <= 3
    assert set(steps) == {-3, -2, -1, 1, 2, 3}
    np.testing.assert_allclose([count / 6000 for count in steps.values()], 1 / 6, atol=0.02)
    y = SegmentJump("shift", share=1, shift=99)(np.array([[19, 0]], np.int32), mrf, rng)
    assert y.min() >= 0 and y.max() <= 19


def test_a_labelling_of_one_segment_has_no_neighbour_to_take():
    mrf, x = MODELS["2-D"], np.full((7, 9), 2, np.int32)
    for seed in range(20):
        np.testing.assert_array_equal(SegmentJump(share=1)(x, mrf, np.random.default_rng(seed)), x)


@pytest.mark.parametrize("jump", JUMPS, ids=lambda jump: repr(jump)[:40])
def test_the_repr_of_a_jump_shows_its_settings(jump):
    names = {kind.__name__: kind for kind in (BetaJump, BoxJump, LevyJump, MixedJump, SegmentJump, UniformJump)}
    assert repr(eval(repr(jump), names)) == repr(jump)  # what a checkpoint compares


@pytest.mark.parametrize("jump", [BoxJump, tf.moves.BallJump, SegmentJump])
def test_label_neighbour_may_be_spelled_neighbor(jump):
    assert repr(jump("neighbor")) == repr(jump("neighbour"))
