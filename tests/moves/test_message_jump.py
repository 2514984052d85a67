"""The jump by messages: min-marginals against brute force, and what is drawn from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treefield as tf
from naive_messages import min_marginals, min_marginals_by_search, softmin
from strategies import KIND_DTYPES, grid_models, random_case
from treefield.backends.grid import schedules
from treefield.backends.grid.lines import AxisLines, WorkSpace
from treefield.moves.message_jump import MessageJump

SHAPES = [(1, 1), (1, 6), (6, 1), (2, 5), (20, 2), (3, 3), (2, 1, 4), (3, 2, 2)]
EVERY, COLD, HOT = 1e30, 1e-300, 1e300  # a closeness and two temperatures
KINDS = ("potts", "edge-tables")  # the message rules of all others are those of T-ICM too
FORBIDDING = ("edge-tables",)


def labelling(mrf, seed=0):
    return np.random.default_rng(seed).integers(mrf.n_labels, size=mrf.shape).astype(np.int32)


def prepared(mrf, x, axis):
    """The lines along an axis with the labels of x brought in, their work space, and all their steps."""
    plan = schedules.bands(mrf.shape, axis % x.ndim, mrf.n_labels)
    space = WorkSpace(mrf.backend, [plan])
    lines = AxisLines(mrf.backend, plan, space)
    lines.enter(x.reshape(-1), plan.blocks)
    return lines, space, np.flatnonzero(plan.active)


def kernel_marginals(mrf, x, axis):
    """The min-marginals that the kernel draws from, [site][label], the best of each site at 0.

    A step leaves them in its workspace.
    """
    from treefield.kernels.grid.packing import position

    lines, space, steps = prepared(mrf, x, axis)
    length = lines.lines.length
    result = np.full((x.size, mrf.n_labels), np.nan)
    for step in steps:
        lines.draw(x.reshape(-1).copy(), np.array([step]), 0.0, 1.0, 0)
        h = space.scratch(0).h[: length * mrf.n_labels * 8].reshape(length, mrf.n_labels, 8)
        for k in np.flatnonzero(lines.plan.lines[step] >= 0):
            for p in range(length):
                site = lines.lines.sites[step * 8 + k] + position(p, length) * lines.lines.stride
                result[site] = h[p, :, k] - h[p, :, k].min()
    return result.reshape(*x.shape, mrf.n_labels)


def check_marginals(case, x, axis):
    """On lines that can avoid forbidden costs; returns what these leave possible."""
    mrf = case.mrf()
    infinite, finite = min_marginals(case.unary, case.tables, x, axis)
    sites, possible = (infinite == 0).any(axis=-1), infinite == 0
    expected = np.where(possible, finite, np.inf)[sites]
    expected -= expected.min(axis=-1, keepdims=True)
    found = kernel_marginals(mrf, x, axis)[sites]
    found[found > mrf.backend.forbidden_cost / 2] = np.inf
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=0 if case.integer else 1e-4 if mrf.backend.dtype == np.float32 else 1e-9
    )
    return possible


@pytest.mark.parametrize("kind", KINDS)
def test_min_marginals_are_those_of_brute_force(kind):
    @settings(max_examples=40)
    @given(grid_models(kinds=[kind], dtypes=KIND_DTYPES[kind][:1]), st.integers(0, 10**6), st.integers(0, 2))
    def check(case, seed, axis):
        mrf = case.mrf()
        check_marginals(case, labelling(mrf, seed), axis % len(mrf.shape))

    check()
    for number, shape in enumerate(SHAPES):
        case = random_case(number, kind, shape, 2 + number % 2, KIND_DTYPES[kind][0])
        for axis in range(len(shape)):
            if case.unary.shape[-1] ** shape[axis] <= 20000:
                check_marginals(case, labelling(case.mrf(), number), axis)


@pytest.mark.parametrize("kind", FORBIDDING)
def test_forbidden_labels_are_not_drawn_where_another_is_possible(kind):
    @settings(max_examples=40)
    @given(grid_models(kinds=[kind], dtypes=["float64"], forbidden=True), st.integers(0, 10**6))
    def check(case, seed):
        mrf = case.mrf()
        x = labelling(mrf, seed)
        possible = check_marginals(case, x, -1)
        y = MessageJump(HOT, HOT)(x, mrf, seed)
        several, single = possible.sum(axis=-1) > 1, possible.sum(axis=-1) == 1
        assert np.take_along_axis(possible, y[..., None], axis=-1)[several].all()
        np.testing.assert_array_equal(y[single], x[single])  # no second label: nothing to draw

    check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "labels"), [((3, 12), 21), ((11, 17), 2)])
def test_min_marginals_of_long_lines_and_many_labels_are_exact(kind, shape, labels):
    case = random_case(5, kind, shape, labels, KIND_DTYPES[kind][0])
    x = labelling(case.mrf())
    expected = min_marginals_by_search(case.unary, case.tables, x, -1)
    np.testing.assert_array_equal(kernel_marginals(case.mrf(), x, -1), expected - expected.min(axis=-1, keepdims=True))


@settings(max_examples=60)
@given(
    grid_models(kinds=["potts"], dtypes=["float32"], integer=True), st.integers(0, 10**6), st.sampled_from((0, 1, 3, 8))
)
def test_only_sites_whose_two_best_are_close_are_drawn(case, seed, closeness):
    mrf = case.mrf()
    x = labelling(mrf, seed)
    _, marginals = min_marginals(case.unary, case.tables, x, -1)
    ranked = np.sort(marginals, axis=-1)
    close = ranked[..., 1] - ranked[..., 0] <= closeness if mrf.n_labels > 1 else np.zeros(x.shape, bool)
    y = MessageJump(COLD, closeness)(x, mrf, seed)
    np.testing.assert_array_equal(y[~close], x[~close])
    drawn = np.take_along_axis(marginals, y[..., None], axis=-1)[..., 0]
    np.testing.assert_array_equal(drawn[close], ranked[close][:, 0])  # so cold that only the best are left


@pytest.mark.parametrize("temperature", [0.7, 3.0, HOT])
@pytest.mark.parametrize("kind", KINDS)
def test_drawn_frequencies_approach_softmin(kind, temperature):
    case = random_case(3, kind, (3, 4), 3, KIND_DTYPES[kind][0])
    mrf, jump, rng, draws = case.mrf(), MessageJump(temperature, EVERY), np.random.default_rng(0), 4000
    x = labelling(mrf)
    drawn = np.array([jump(x, mrf, rng) for _ in range(draws)])
    frequencies = (drawn[..., None] == np.arange(3)).mean(axis=0)
    expected = softmin(min_marginals(case.unary, case.tables, x, -1)[1], temperature)
    assert (np.abs(frequencies - expected) <= 5 * np.sqrt(expected * (1 - expected) / draws) + 1e-6).all()


def test_sites_are_drawn_independently():
    mrf = tf.GridMRF(np.zeros((300, 200, 5), np.float32), tf.Potts(0))
    x = np.zeros(mrf.shape, np.int32)
    y = MessageJump(1.0, 1.0)(x, mrf, 0)
    assert np.abs(np.bincount(y.ravel()) / y.size - 0.2).max() < 0.01
    for a, b in ((y[1:], y[:-1]), (y[:, 1:], y[:, :-1]), (y, MessageJump(1.0, 1.0)(x, mrf, 1))):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.02


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_the_same_seed_gives_the_same_jump_whatever_came_before(axis):
    first, second = (random_case(seed, "potts", (19, 23), 4, "float32", integer=False).mrf() for seed in (0, 1))
    x = labelling(first)
    before = x.copy()
    jump = MessageJump(axis=axis)
    y = jump(x, first, 5)
    assert y.dtype == np.int32 and y.shape == x.shape and (y != x).any()
    assert (jump(x, second, 5) != y).any() and (jump(x, first, 6) != y).any()
    np.testing.assert_array_equal(jump(x, first, np.random.default_rng(5)), y)
    np.testing.assert_array_equal(MessageJump(axis=axis)(x, first, 5), y)
    np.testing.assert_array_equal(x, before)


def test_the_default_temperature_scales_with_the_costs():
    unary, x = np.random.default_rng(0).random((30, 40, 3)), np.zeros((30, 40), int)
    y, z = (MessageJump()(x, tf.GridMRF(unary * scale, tf.Potts(0.4 * scale)), 0) for scale in (1.0, 2.0**20))
    np.testing.assert_array_equal(y, z)
    assert 0.1 < (y != x).mean() < 0.9
    flat = tf.GridMRF(np.zeros((8, 8, 2)), tf.Potts(0))  # no gaps to measure: every label is as good
    assert 0.2 < MessageJump()(np.zeros((8, 8), int), flat, 0).mean() < 0.8
    alone = tf.GridMRF(np.zeros((2, 3, 1)), tf.Potts(1))
    assert prepared(alone, labelling(alone), -1)[0].draw(np.zeros(6, np.int32), np.arange(1), 1.0, 1.0, 0) == (0, 0)
    np.testing.assert_array_equal(MessageJump()(labelling(alone), alone, 0), 0)
    forced = np.full((2, 3, 2), np.inf)
    forced[..., 1] = 0  # one label is left everywhere
    np.testing.assert_array_equal(MessageJump()(np.ones((2, 3), int), tf.GridMRF(forced, tf.Potts(1)), 0), 1)


def test_drawing_the_steps_in_two_shares_gives_the_same_labels():
    case = random_case(0, "potts", (40, 9), 3, "float32")
    x = labelling(case.mrf())
    lines, _, steps = prepared(case.mrf(), x, -1)
    whole, parts = x.reshape(-1).copy(), x.reshape(-1).copy()
    gaps, sites = lines.draw(whole, steps, 2.0, 3.0, 7)
    shares = [lines.draw(parts, steps[start::2], 2.0, 3.0, 7, thread=start) for start in (1, 0)]
    np.testing.assert_array_equal(whole, parts)
    assert (gaps, sites) == tuple(map(sum, zip(*shares, strict=True))) and sites == x.size
    ranked = np.sort(kernel_marginals(case.mrf(), x, -1), axis=-1)
    assert gaps == (ranked[..., 1] - ranked[..., 0]).sum()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"temperature": 0}, ValueError, "temperature must be above 0, got 0"),
        ({"temperature": np.inf}, ValueError, "temperature must be finite"),
        ({"temperature": "1"}, TypeError, "temperature must be a number"),
        ({"closeness": -1}, ValueError, "closeness must be at least 0, got -1"),
        ({"closeness": np.nan}, ValueError, "closeness must be finite"),
        ({"axis": 3}, ValueError, "axis must be between -3 and 2, got 3"),
        ({"axis": 1.0}, TypeError, "axis must be an integer"),
    ],
)
def test_message_jump_refuses_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        MessageJump(**options)


def test_message_jump_refuses_bad_axes_models_and_labellings():
    mrf, x = tf.GridMRF(np.zeros((2, 3, 2)), tf.Potts(1)), np.zeros((2, 3), int)
    with pytest.raises(ValueError, match="axis must be between -2 and 1, got 2"):
        MessageJump(axis=2)(x, mrf, 0)
    with pytest.raises(ValueError, match=r"x has shape \(3, 2\)"):
        MessageJump()(x.T, mrf, 0)
    with pytest.raises(TypeError, match="mrf must be a model"):
        MessageJump()(x, None, 0)
    assert repr(MessageJump(1, axis=0)) == "MessageJump(temperature=1.0, closeness=None, axis=0)"
