"""Ising models: spins of least energy on small grids, and the signs of fields and couplings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_apps
import treefield as tf
from odd_images import check_options, check_result, check_same_seed, layouts

FIELDS = np.random.default_rng(0).uniform(-1, 1, (6, 7))
SHAPES = [(1,), (2,), (9,), (1, 1), (1, 6), (5, 1), (3, 3), (2, 5), (1, 1, 1), (2, 2, 2), (1, 3, 3), (2, 1, 4)]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from(SHAPES),
    whole=st.booleans(),
    sign=st.sampled_from([-1, 0, 1]),
)
def test_ising_finds_the_least_energy_of_small_grids(seed, shape, whole, sign):
    rng = np.random.default_rng(seed)

    def numbers(size):
        return rng.integers(-3, 4, size).astype(float) if whole else rng.uniform(-2, 2, size)

    fields = numbers(shape)
    couplings = [numbers(naive.edge_shape(shape, axis)) for axis in range(len(shape))]
    if sign:
        couplings = [sign * np.abs(coupling) for coupling in couplings]
    spins, res = tf.ising(fields, couplings, tol=0, rng=0, full_output=True)
    check_result(res)
    assert spins.dtype == np.int8 and spins.shape == shape and set(np.unique(spins)) <= {-1, 1}
    np.testing.assert_array_equal(spins, 2 * res.x.reshape(shape) - 1)
    assert res.fun == pytest.approx(naive_apps.ising_energy(spins, fields, couplings), abs=1e-9)
    assert res.fun == pytest.approx(naive_apps.least_ising_energy(fields, couplings), abs=1e-9)


def test_negative_fields_favour_spin_up_and_negative_couplings_favour_equal_neighbours():
    assert tf.ising([-1.0], 0).tolist() == [1]
    assert tf.ising([1.0], 0).tolist() == [-1]
    assert tf.ising([-1.0, 0.1, 0.1], -1).tolist() == [1, 1, 1]
    assert tf.ising([-1.0, 0.1, 0.1], 1).tolist() == [1, -1, 1]


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 2, 3)])
def test_couplings_may_be_one_number_or_a_number_or_array_per_axis(shape):
    fields = np.random.default_rng(1).uniform(-1, 1, shape)
    arrays = [np.full(naive.edge_shape(shape, axis), 0.5) for axis in range(len(shape))]
    expected = tf.ising(fields, arrays, tol=0, rng=0)
    mixed = [0.5, *arrays[1:]]
    for couplings in (0.5, np.float32(0.5), np.array(0.5), [0.5] * len(shape), np.full(len(shape), 0.5), mixed):
        np.testing.assert_array_equal(tf.ising(fields, couplings, tol=0, rng=0), expected)
    np.testing.assert_array_equal(tf.ising(fields, tuple(arrays), tol=0, rng=0), expected)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float16", "float32", "longdouble"])
def test_fields_may_be_of_any_real_dtype(dtype):
    fields = np.array([3, 0, 0, 1, 2], dtype)
    assert tf.ising(fields, -0.25).tolist() == [-1, -1, -1, -1, -1]


@pytest.mark.parametrize("name", layouts(FIELDS))
def test_ising_does_not_depend_on_memory_layout(name):
    fields = layouts(FIELDS)[name]
    np.testing.assert_array_equal(tf.ising(fields, 0.5, rng=0), tf.ising(FIELDS, 0.5, rng=0))
    np.testing.assert_array_equal(np.asarray(fields), FIELDS)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e300])
def test_ising_accepts_costs_of_any_magnitude(scale):
    assert tf.ising(np.array([-3, 1, 1]) * scale, -3 * scale).tolist() == [1, 1, 1]


def test_ising_passes_options_to_minimize(no_elimination):
    couplings = [np.random.default_rng(2).uniform(-1, 1, naive.edge_shape(FIELDS.shape, axis)) for axis in (0, 1)]
    check_options(lambda **options: tf.ising(FIELDS, couplings, **options))


def test_ising_with_the_same_seed_gives_the_same_answer():
    check_same_seed(lambda **options: tf.ising(FIELDS, 0.7, maxiter=3, tol=0, **options))


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    rings=st.sampled_from(
        [
            ((7,), True),
            ((7,), (True,)),
            ((3, 4), True),
            ((3, 4), (True, False)),
            ((1, 5), (False, True)),
            ((2, 2, 3), (0, 0, 1)),
        ]
    ),
)
def test_ising_finds_the_least_energy_of_small_periodic_grids(seed, rings):
    shape, periodic = rings
    flags = np.broadcast_to(np.asarray(periodic, bool), len(shape))
    rng = np.random.default_rng(seed)
    fields = rng.uniform(-2, 2, shape)
    couplings = [
        rng.uniform(-2, 2, shape if ring else naive.edge_shape(shape, axis)) for axis, ring in enumerate(flags)
    ]
    periodic = periodic if periodic is True else tuple(map(bool, periodic))
    spins, res = tf.ising(fields, couplings, periodic=periodic, tol=0, rng=0, full_output=True)

    def energy(spins):
        total = (fields * spins).sum(axis=tuple(range(-len(shape), 0)))
        for axis, (ring, coupling) in enumerate(zip(flags, couplings, strict=True), -len(shape)):
            following = np.roll(spins, -1, axis)
            products = spins * following if ring else np.delete(spins * following, -1, axis)
            total = total + (coupling * products).sum(axis=tuple(range(-len(shape), 0)))
        return total

    every = np.array(list(np.ndindex(*[2] * fields.size))).reshape(-1, *shape) * 2 - 1
    assert res.fun == pytest.approx(float(energy(spins.astype(float))), abs=1e-9)
    assert res.fun == pytest.approx(energy(every).min(), abs=1e-9)


def test_one_coupling_stands_for_the_wrap_around_edges_too():
    spins, res = tf.ising(np.zeros((4, 6)), 1, periodic=True, rng=0, full_output=True)
    assert res.fun == -2 * 24
    np.testing.assert_array_equal(spins, -np.roll(spins, 1, 0))


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"periodic": 1}, TypeError, "periodic must be True or False, or one of these for each axis, got 1"),
        ({"periodic": (True,)}, ValueError, "periodic has 1 entries, but the grid has 2 axes"),
        ({"periodic": True}, ValueError, "axis 0 has 2 sites, too few to be periodic"),
        (
            {"periodic": (False, True), "couplings": [np.ones((1, 5)), np.ones((2, 4))]},
            ValueError,
            r"couplings\[1\] has shape \(2, 4\), expected a number or \(2, 5\)",
        ),
    ],
)
def test_bad_periodic_axes_raise(keywords, error, message):
    with pytest.raises(error, match=message):
        tf.ising(np.zeros((2, 5)), **({"couplings": 1} | keywords))
