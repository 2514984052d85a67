"""The estimate of the noise: what is taken for it, and what belongs to the picture."""

import numpy as np
import pytest

import naive_apps
import treefield as tf
from treefield.apps.noise import estimate_noise, outlier_costs


def test_noise_estimate_is_close_to_the_true_sigma_and_share_of_impulses():
    rng = np.random.default_rng(4)
    clean = np.kron([[60, 180], [120, 90]], np.ones((60, 60)))
    for sigma in (8, 20):
        estimate, impulses = estimate_noise(rng.normal(clean, sigma)[None])
        assert 0.8 * sigma < estimate < 1.2 * sigma and impulses.sum() < 0.01
    hit = rng.random(clean.shape) < 0.2
    estimate, impulses = estimate_noise(np.where(hit, 255 * rng.integers(0, 2, clean.shape), clean)[None])
    assert estimate == 0 and 0.1 < impulses.sum() < 0.25
    assert min(impulses[[0, -1]]) > 0.05 and impulses[1:-1].sum() < 0.01
    sigma, impulses = estimate_noise(clean[None], hole=np.ones(clean.shape, bool))
    assert sigma == 0 and not impulses.any()  # nothing to look at


def test_outlier_cost_is_lower_for_values_that_impulses_have():
    salt = np.zeros(256)
    salt[255] = 0.1
    costs = outlier_costs(10.0, salt)
    assert costs[255] < 2 < 5 < costs[0] == costs[254]
    assert (outlier_costs(10.0, np.zeros(256)) > costs).all()
    assert (outlier_costs(1e9, np.full(256, 1 / 256)) == 0.5).all()


def page_of_text():
    """A white page with black marks, two to six pixels wide, and dots."""
    page = np.full((96, 128), 255, np.uint8)
    for row in range(8, 80, 16):
        for column in range(6, 120, 12):
            page[row : row + 10, column : column + 2] = 0
            page[row + 4 : row + 6, column : column + 6] = 0
            page[row + 11 : row + 13, column + 7 : column + 9] = 0
    return page


@pytest.mark.parametrize("name", ["camera", "page", "text", "coins", "moon", "brick", "horse"])
def test_picture_without_noise_is_returned_unchanged(name):
    image = getattr(pytest.importorskip("skimage.data"), name)()
    restored, res = tf.denoise(image, full_output=True)
    np.testing.assert_array_equal(restored, image)
    assert restored is not image and "no noise" in res.message and res.noise.is_none and res.success


def test_text_is_not_taken_for_impulses():
    page = page_of_text()
    np.testing.assert_array_equal(tf.denoise(page), page)
    noisy = np.clip(np.random.default_rng(0).normal(page, 20), 0, 255).astype(np.uint8)
    restored, res = tf.denoise(noisy, rng=0, full_output=True)
    assert not res.noise.has_impulses and naive_apps.psnr(restored, page) > naive_apps.psnr(noisy, page) + 2
    assert np.mean((restored < 128) == (page < 128)) > 0.999


def test_salt_and_pepper_on_a_page_is_found_and_its_share_is_in_the_result():
    page = page_of_text()
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(page.shape) < 0.1, 255 * rng.integers(0, 2, page.shape), page).astype(np.uint8)
    restored, res = tf.denoise(noisy, rng=0, full_output=True)
    assert 0.02 < res.noise.impulses.sum() < 0.12 and "impulses" in str(res.noise)
    assert naive_apps.psnr(restored, page) > naive_apps.psnr(noisy, page)


ROWS, COLUMNS = np.mgrid[:128, :160]


BAYER = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])


SHADES = 2.2 * np.hypot(ROWS - 60, COLUMNS - 70)  # smooth, 0 to 250


def diffused_error(image):
    """The image in black and white, the error of each pixel passed on to its neighbours (Floyd and Steinberg)."""
    rows, columns = image.shape
    sums, halftone = np.pad(image.astype(float), ((0, 1), (1, 1))), np.zeros(image.shape, np.uint8)
    for i in range(rows):
        for j in range(columns):
            halftone[i, j] = 255 * (sums[i, j + 1] > 127)
            error = (sums[i, j + 1] - halftone[i, j]) / 16
            sums[i, j + 2] += 7 * error
            sums[i + 1, j : j + 3] += error * np.array([3, 5, 1])
    return halftone


PATTERNS = {
    "checkerboard of single pixels": 255 * ((ROWS + COLUMNS) % 2),
    "faint checkerboard": 100 + 30 * ((ROWS + COLUMNS) % 2),
    "checkerboard of 4 pixels": 255 * ((ROWS // 4 + COLUMNS // 4) % 2),
    "grid of lines": 255 * ((COLUMNS % 7 > 0) & (ROWS % 11 > 0)),
    "diagonal dots": 255 * ((2 * ROWS + COLUMNS) % 9 > 0),
    "dots": np.where((ROWS % 10 == 0) & (COLUMNS % 10 == 0), 255, 100),
    "random squares": 255 * np.kron(np.random.default_rng(0).integers(0, 2, (64, 80)), np.ones((2, 2), int)),
    "ordered dither": 255 * (16 * np.tile(BAYER, (32, 40)) + 8 < SHADES),
    "diffused error": diffused_error(SHADES),
    "four levels of a photograph": np.clip(np.random.default_rng(0).normal(SHADES, 4), 0, 255) // 64 * 85,
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_pattern_is_not_taken_for_noise(name, dtype):
    pattern = (PATTERNS[name] / (1 if dtype == np.uint8 else 255)).astype(dtype)
    restored, res = tf.denoise(pattern, full_output=True)
    assert res.noise.is_none
    np.testing.assert_array_equal(restored, pattern)


def test_thin_grey_strokes_under_noise_are_not_taken_for_impulses():
    rng = np.random.default_rng(0)
    page = np.full((96, 128), 255.0)
    for row, column in np.argwhere(rng.random((12, 16)) < 0.8) * 8:
        page[row : row + 6, column + 3] = rng.uniform(0, 150, 6)  # one pixel wide, of many greys
        page[row + 3, column : column + 6] = rng.uniform(0, 150, 6)
    noisy = np.clip(rng.normal(page, 4), 0, 255).astype(np.uint8)
    restored, res = tf.denoise(noisy, rng=0, full_output=True)
    assert not res.noise.has_impulses and naive_apps.psnr(restored, page) > naive_apps.psnr(noisy, page) - 0.1


def test_frame_without_noise_ignores_the_start_from_the_last_frame(camera):
    noisy = np.clip(np.random.default_rng(10).normal(camera, 20), 0, 255).astype(np.uint8)
    _, last = tf.denoise(noisy, maxiter=1, rng=0, full_output=True)
    for x0 in (last, last.x):
        np.testing.assert_array_equal(tf.denoise(camera, x0=x0, rng=0), camera)


def test_given_parameters_are_used_even_if_no_noise_is_found():
    page = page_of_text()
    assert np.unique(tf.denoise(page, levels=[0, 128, 255], rng=0)).tolist() == [0, 255]
    with pytest.warns(UserWarning, match="sigma=60 is far from the noise of the image, estimated as 0"):
        assert (tf.denoise(page, sigma=60, rng=0) != page).any()
