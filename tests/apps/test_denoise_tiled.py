"""Denoising tile by tile gives what denoising in memory gives, and little else is in memory."""

import errno
import os
import signal

import numpy as np
import pytest
import zarr

import treefield as tf
from small import check_refused

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
    """As good as in memory: the restored images hardly differ."""
    expected = tf.denoise(image, rng=0, **options)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert np.mean(found != expected) < 0.03


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_answer_is_that_in_memory(dtype):
    image = DTYPES[dtype]
    before = image.copy()
    check_close(tf.denoise_tiled(image, levels=12, tile=32, rng=0), image, levels=12)
    np.testing.assert_array_equal(image, before)


def test_one_tile_has_the_energy_and_the_bound_that_are_found_in_memory():
    _, res = tf.denoise_tiled(NOISY, levels=12, rng=0, tol=0, full_output=True)
    _, whole = tf.denoise(NOISY, levels=12, rng=0, tol=0, full_output=True)
    assert res.fun == whole.fun and "x" not in res and res.gap == pytest.approx(whole.gap, abs=1e-12)


def test_channels_are_restored_one_by_one():
    colours = np.stack([NOISY, NOISY[::-1], NOISY[:, ::-1]])
    for axis in (0, -1):
        image = np.moveaxis(colours, 0, axis)
        restored, res = tf.denoise_tiled(image, levels=8, tile=40, channel_axis=axis, rng=0, full_output=True)
        check_close(restored, image, levels=8, channel_axis=axis)
        assert res.success and 0 <= res.gap < 0.15 and res.trace["energy"][-1] == res.fun


def test_channels_of_different_ranges_have_the_same_levels():
    narrow = np.stack([NOISY, 100 + NOISY // 6, 10 + NOISY // 25], axis=-1)
    given = {"levels": 8, "channel_axis": -1, "rng": 0, "tol": 1e-5, "full_output": True}
    (restored, res), (expected, whole) = tf.denoise_tiled(narrow, **given), tf.denoise(narrow, **given)
    assert res.fun == pytest.approx(whole.fun, rel=1e-4) and np.mean(restored != expected) < 0.02


def test_volumes_are_restored():
    volume = np.stack([NOISY[:40, :40]] * 5)
    check_close(tf.denoise_tiled(volume, levels=8, tile=20, rng=0), volume, levels=8)


def test_from_file_to_file(tmp_path):
    np.save(tmp_path / "in.npy", NOISY)
    out = zarr.create_array(store=str(tmp_path / "out.zarr"), shape=NOISY.shape, chunks=(50, 50), dtype=NOISY.dtype)
    image = np.load(tmp_path / "in.npy", mmap_mode="r")
    restored = tf.denoise_tiled(image, out, levels=12, tile=32, scratch=tmp_path, rng=0)
    assert restored is out
    check_close(out[:, :], NOISY, levels=12)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npy", "out.zarr"]


def test_stopped_at_once_it_is_still_an_image():
    restored, res = tf.denoise_tiled(NOISY, levels=12, tile=32, time_limit=0, rng=0, full_output=True)
    assert res.status == 2 and np.abs(restored - 1.0 * NOISY).max() < 30


def read_only(array):
    """A copy that is not to be written to."""
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
    "no time": ((NOISY,), {"time_limit": -1}, ValueError, "time_limit must be at least 0 seconds, got -1"),
    "method": ((NOISY,), {"method": "anneal"}, TypeError, "minimize, t_icm and t_ils"),
    "levels": ((NOISY,), {"levels": 0}, ValueError, "levels must be at least 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_restored_is_refused(name):
    arguments, keywords, error, message = REFUSED[name]
    check_refused(lambda: tf.denoise_tiled(*arguments, **keywords), error, message)


class Watched:
    """An array to write to, with something that happens first."""

    def __init__(self, array, happens):
        self.array, self.shape, self.dtype, self._happens = array, array.shape, array.dtype, happens

    def __setitem__(self, box, values):
        self._happens()
        self.array[box] = values


def full():
    raise OSError(errno.ENOSPC, "No space left on device")


def test_labels_that_were_found_are_kept_if_the_image_cannot_be_written(tmp_path):
    given = {"levels": 12, "tile": 32, "rng": 0, "scratch": tmp_path}
    with pytest.raises(OSError, match=r"could not write to out: .*No space left on device; .* kept in") as told:
        tf.denoise_tiled(NOISY, Watched(NOISY.copy(), full), **given)
    (kept,) = tmp_path.iterdir()
    assert str(told.value).endswith(str(kept)) and kept.name == "treefield-labels.npy"
    again = tf.denoise_tiled(NOISY, **given, x0=np.load(kept), time_limit=0)
    np.testing.assert_array_equal(again, tf.denoise_tiled(NOISY, **given))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_channel_is_written_leaves_the_other_channels_as_they_came(tmp_path, number):
    sent = []

    def send():
        if not sent:
            sent.append(number)
            os.kill(os.getpid(), number)

    image = np.stack([NOISY, NOISY[::-1]])
    out = Watched(np.zeros_like(image), send)
    given = {"levels": 12, "tile": 32, "rng": 0, "channel_axis": 0, "scratch": tmp_path}
    _, res = tf.denoise_tiled(image, out, full_output=True, **given)
    assert res.status == 4 and not res.success and res.message.endswith("after the search")
    np.testing.assert_array_equal(out.array[0], tf.denoise_tiled(image, **given)[0])
    np.testing.assert_array_equal(out.array[1], image[1])
    assert not list(tmp_path.iterdir())
