"""Denoising tile by tile agrees with denoising in memory."""

import errno
import os
import signal

import numpy as np
import pytest
import zarr

import treefield as tf
from small import check_raises

CLEAN = np.kron([[50, 200, 90], [120, 80, 160]], np.ones((40, 40)))
NOISY = np.clip(np.random.default_rng(0).normal(CLEAN, 15), 0, 255).astype(np.uint8)
DTYPES = {
    "uint8": NOISY,
    "uint16": NOISY.astype(np.uint16) * 257,
    "float32": (NOISY / 255).astype(np.float32),
    "float16": (NOISY / 255).astype(np.float16),
    "int32": NOISY.astype(np.int32) * 1000 - 70000,
}


def check_close(found, image, **options):
    """The image is close to that of `denoise`: the mean difference is less than 1 % of its range."""
    expected = tf.denoise(image, rng=0, **options)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert np.abs(found - 1.0 * expected).mean() < 0.01 * np.ptp(1.0 * image)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiled_denoising_agrees_with_denoising_in_memory(dtype):
    image = DTYPES[dtype]
    before = image.copy()
    check_close(tf.denoise_tiled(image, levels=12, tile=32, rng=0), image, levels=12)
    np.testing.assert_array_equal(image, before)


def test_energy_and_gap_of_a_single_tile_equal_those_in_memory():
    _, res = tf.denoise_tiled(NOISY, levels=12, rng=0, tol=0, full_output=True)
    _, whole = tf.denoise(NOISY, levels=12, rng=0, tol=0, full_output=True)
    assert res.fun == whole.fun and res.gap == pytest.approx(whole.gap, abs=1e-12)


@pytest.mark.parametrize("channel_axis", [None, -1])
def test_x_of_the_result_is_the_array_that_the_image_was_written_to(channel_axis):
    image = NOISY if channel_axis is None else np.stack([NOISY, NOISY[::-1]], axis=-1)
    given = {"levels": 4, "maxiter": 1, "rng": 0, "channel_axis": channel_axis, "full_output": True}
    restored, res = tf.denoise_tiled(image, **given)
    assert res.x is restored
    out = np.zeros_like(image)
    restored, res = tf.denoise_tiled(image, out, **given)
    assert res.x is restored is out


def test_tiled_denoising_restores_each_channel():
    colours = np.stack([NOISY, NOISY[::-1], NOISY[:, ::-1]])
    for axis in (0, -1):
        image = np.moveaxis(colours, 0, axis)
        restored, res = tf.denoise_tiled(image, levels=8, tile=40, channel_axis=axis, rng=0, full_output=True)
        check_close(restored, image, levels=8, channel_axis=axis)
        assert res.success and 0 <= res.gap < 0.15 and res.trace["energy"][-1] == res.fun


def test_channels_of_different_ranges_have_the_same_levels():
    narrow = np.stack([NOISY, 100 + NOISY // 6, 10 + NOISY // 25], axis=-1)
    given = {"levels": 8, "data": "squared", "channel_axis": -1, "rng": 0, "tol": 1e-5, "full_output": True}
    (restored, res), (expected, whole) = tf.denoise_tiled(narrow, **given), tf.denoise(narrow, **given)
    assert res.fun == pytest.approx(whole.fun, rel=1e-4) and np.mean(restored != expected) < 0.02


def test_tiled_denoising_accepts_volumes():
    volume = np.stack([NOISY[:40, :40]] * 5)
    check_close(tf.denoise_tiled(volume, levels=8, tile=20, rng=0), volume, levels=8)


def test_tiled_denoising_from_file_to_file(tmp_path):
    np.save(tmp_path / "in.npy", NOISY)
    out = zarr.create_array(store=str(tmp_path / "out.zarr"), shape=NOISY.shape, chunks=(50, 50), dtype=NOISY.dtype)
    image = np.load(tmp_path / "in.npy", mmap_mode="r")
    restored = tf.denoise_tiled(image, out, levels=12, tile=32, scratch=tmp_path, rng=0)
    assert restored is out
    check_close(out[:, :], NOISY, levels=12)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npy", "out.zarr"]


def test_tiled_denoising_without_time_returns_an_image_close_to_the_input():
    restored, res = tf.denoise_tiled(NOISY, levels=12, tile=32, time_limit=0, rng=0, full_output=True)
    assert res.status == 1 and np.abs(restored - 1.0 * NOISY).max() < 60


def read_only(array):
    """A copy that cannot be written to."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


REFUSED = {
    "a list": (([[1, 2]],), {}, TypeError, "image must be an array"),
    "text": ((np.array([["a"]]),), {}, TypeError, "real numbers"),
    "a line": ((np.zeros(5),), {}, ValueError, "two or three dimensions"),
    "nothing": ((np.zeros((0, 5)),), {}, ValueError, "image is empty"),
    "holes": ((np.array([[np.nan, 1], [0, 0]]),), {}, ValueError, "NaN or infinite"),
    "a channel axis": ((np.zeros((5, 5, 3)),), {"channel_axis": 3}, ValueError, "channel_axis"),
    "out": ((NOISY, np.zeros((3, 3))), {}, ValueError, "out must be an array of the image's shape"),
    "out of less": ((NOISY.astype(float), np.zeros(NOISY.shape, np.uint8)), {}, ValueError, "does not hold"),
    "memory": ((NOISY,), {"memory_limit": "much"}, ValueError, "memory_limit must be"),
    "out to be read": ((NOISY, read_only(NOISY)), {}, ValueError, "out is read-only"),
    "large whole numbers": ((np.array([[0, 2**60]]),), {}, ValueError, "values up to 1.15292e[+]18, expected at most"),
    "large numbers": ((np.array([[0, 1e200]]),), {}, ValueError, "expected at most 1e[+]100; scale it"),
    "time": ((NOISY,), {"time_limit": "5"}, TypeError, "time_limit must be a number"),
    "no time": ((NOISY,), {"time_limit": -1}, ValueError, "time_limit must be at least 0, got -1"),
    "method": ((NOISY,), {"method": "anneal"}, TypeError, "minimize, t_icm and t_ils"),
    "levels": ((NOISY,), {"levels": 0}, ValueError, "levels must be at least 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tiled_denoising_raises_for_bad_arguments(name):
    arguments, keywords, error, message = REFUSED[name]
    check_raises(lambda: tf.denoise_tiled(*arguments, **keywords), error, message)


class Watched:
    """An array that calls a function before each write."""

    def __init__(self, array, happens):
        self.array, self.shape, self.dtype, self._happens = array, array.shape, array.dtype, happens

    def __setitem__(self, box, values):
        self._happens()
        self.array[box] = values


def raise_full_disk():
    raise OSError(errno.ENOSPC, "No space left on device")


def test_labels_are_kept_if_the_image_cannot_be_written(tmp_path):
    given = {"levels": 12, "tile": 32, "rng": 0, "scratch": tmp_path}
    with pytest.raises(OSError, match=r"could not write to out: .*No space left on device; .* kept in") as raised:
        tf.denoise_tiled(NOISY, Watched(NOISY.copy(), raise_full_disk), **given)
    (kept,) = tmp_path.iterdir()
    assert str(raised.value).endswith(str(kept)) and kept.name == "treefield-labels.npy"
    again = tf.denoise_tiled(NOISY, **given, x0=np.load(kept), time_limit=0)
    np.testing.assert_array_equal(again, tf.denoise_tiled(NOISY, **given))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_channel_is_written_leaves_the_other_channels_unchanged(tmp_path, number):
    sent = []

    def send():
        if not sent:
            sent.append(number)
            os.kill(os.getpid(), number)

    image = np.stack([NOISY, NOISY[::-1]])
    out = Watched(np.zeros_like(image), send)
    given = {"levels": 12, "tile": 32, "rng": 0, "channel_axis": 0, "scratch": tmp_path}
    _, res = tf.denoise_tiled(image, out, full_output=True, **given)
    assert res.status == 3 and not res.success and res.message.endswith("after the search")
    np.testing.assert_array_equal(out.array[0], tf.denoise_tiled(image, **given)[0])
    np.testing.assert_array_equal(out.array[1], image[1])
    assert not list(tmp_path.iterdir())
