"""Compensated sums, against exact ones."""

import math

import numba
import numpy as np
import pytest

from treefield.kernels.simd.sums import add_exactly


@numba.njit(error_model="numpy")
def total_of(values):
    total, carried = 0.0, 0.0
    for value in values:
        total, carried = add_exactly(total, carried, value)
    return total + carried


@pytest.mark.parametrize(
    "values",
    [[1.0, 1e100, 1.0, -1e100], [1e16, 1.0, -1e16], [0.1] * 10, [-0.0], [5e-324, 5e-324], [1e308, -1e308, 1.0]],
)
def test_sum_equals_the_exact_one_where_a_plain_sum_does_not(values):
    assert total_of(np.array(values)) == math.fsum(values)


def test_sum_of_a_million_numbers_equals_the_exact_one():
    rng = np.random.default_rng(0)
    values = rng.normal(size=1_000_000) * 10.0 ** rng.integers(-8, 8, 1_000_000)
    exact = math.fsum(values)
    assert abs(total_of(values) - exact) <= np.spacing(abs(exact))


@pytest.mark.parametrize("rest", [[1.0], [1.0, 2.0]])
def test_infinite_values_leave_a_sum_that_is_not_finite(rest):
    assert not np.isfinite(total_of(np.array([np.inf, *rest])))
