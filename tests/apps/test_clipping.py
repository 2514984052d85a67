"""Noise that is clipped at black and white."""

import numpy as np
import pytest

import naive_apps
from treefield.apps.clipping import clipped_moments, clipping_limits, undo_clipping
from treefield.apps.noise import estimate_noise


@pytest.mark.parametrize("sigma", [5.0, 20.0, 60.0])
def test_moments_are_those_of_clipped_noise(sigma):
    values = np.array([0.0, 3, 20, 128, 230, 255])
    noisy = np.clip(naive_apps.quantiles_of_noise(sigma)[:, None] + values, 0, 255)
    moments = clipped_moments(values, sigma, 0, 255)
    np.testing.assert_allclose(moments.mean, noisy.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(moments.variance, noisy.var(axis=0), rtol=0.002)


def test_undoing_clipping_recovers_the_values():
    means = np.linspace(0, 255, 60, dtype=np.float32)
    values = undo_clipping(means, 30.0, 0, 255)
    np.testing.assert_allclose(values, naive_apps.undo_clipping(means, 30.0), atol=0.1)
    assert (np.diff(values) >= 0).all() and values[0] == 0 and values[-1] == 255
    np.testing.assert_allclose(undo_clipping(means, 1.0, -1000, 1000), means, atol=1e-3)


@pytest.mark.parametrize("value", [26, 40, 128, 230])
def test_the_noise_of_dark_and_bright_images_is_estimated_as_that_of_others(value):
    rng = np.random.default_rng(value)
    noisy = np.clip(np.round(value + rng.normal(0, 20, (1, 256, 256))), 0, 255)
    assert abs(estimate_noise(noisy).sigma - 20) < 0.8


def test_limits_of_clipping_are_the_extremes_that_many_pixels_have():
    noisy = np.random.default_rng(0).normal(np.linspace(0, 255, 10_000), 20)
    clip = lambda low, high: clipping_limits(np.clip(noisy, low, high), 20.0, low, high)  # noqa: E731
    assert clip(0.0, 255.0) == (0, 255)
    assert clip(noisy.min(), noisy.max()) is None
    low, high = clip(0.0, noisy.max())
    assert low == 0 and high > noisy.max() + 100
