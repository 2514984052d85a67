"""The problems that tests and benchmarks share: the paper's, and those of the Middlebury MRF benchmark."""

import os
import pathlib

import numpy as np

import treefield as tf
from treefield.apps.stereo_costs import distance_to_range, half_sample_range
from treefield_reproduce.problems import denoising_field, stereo_field


def data_folder():
    """Where the benchmark pictures are: the environment variable TREEFIELD_DATA, else ../shared/data; None if they are
    nowhere."""
    default = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = pathlib.Path(os.environ.get("TREEFIELD_DATA", default))
    return folder if folder.is_dir() else None


def picture(name):
    """One of the benchmark pictures, as an array."""
    from PIL import Image

    return np.asarray(Image.open(data_folder() / name))


def tsukuba():
    """The paper's energy on Tsukuba: 288 x 384 sites, 16 labels, Potts 20."""
    return stereo_field(*pair("tsukuba"), 16)


def venus():
    """The paper's energy on Venus: 383 x 434 sites, 20 labels, Potts 20."""
    return stereo_field(*pair("venus"), 20)


def pair(name):
    """The left and the right image."""
    return [picture(f"{name}/{name}-im{side}.png") for side in "LR"]


def penguin():
    """The paper's energy on Penguin: 179 x 122 sites, 256 labels, data truncated at 100, Potts 25, no mask."""
    return denoising_field(picture("penguin/penguin-input.png"))


def middlebury_tsukuba():
    """The Middlebury MRF benchmark's Tsukuba: 288 x 384 sites, 16 labels, truncated linear, twice the weight where the
    left image is flat."""
    colour = picture("tsukuba/tsukuba-imL.png").astype(np.int32)
    steps = [np.sum(np.diff(colour, axis=axis) ** 2, axis=-1) for axis in (0, 1)]
    weights = [np.where(step < 3 * 8**2, 2, 1).astype(np.uint8) for step in steps]
    return tf.GridMRF(birchfield_tomasi("tsukuba", 16, 1, 3 * 255), tf.TruncatedLinear(20.0, 2), weights=weights)


def middlebury_venus():
    """The Middlebury MRF benchmark's Venus: 383 x 434 sites, 20 labels, truncated quadratic."""
    return tf.GridMRF(birchfield_tomasi("venus", 20, 2, 16**2), tf.TruncatedQuadratic(50.0, 7))


def middlebury_penguin():
    """The Middlebury MRF benchmark's Penguin: 179 x 122 sites, 256 labels, truncated quadratic, no data in the hole."""
    grey = picture("penguin/penguin-input.png").astype(np.int32)
    unary = (grey[..., None] - np.arange(256)) ** 2
    unary[picture("penguin/penguin-mask.png") == 0] = 0
    return tf.GridMRF(unary.astype(np.uint16), tf.TruncatedQuadratic(25.0, 200))


def noisy_house(pairwise):
    """Like the Middlebury MRF benchmark's House: 256 x 256 sites, 256 labels, no data in a hole.

    The picture is drawn: four smooth areas, and noise of 20 grey values.
    """
    rng = np.random.default_rng(0)
    row, column = np.mgrid[:256, :256] / 256
    grey = 120 + 60 * np.sin(3 * row) - 50 * column
    grey[(row > 0.4) & (column > 0.2) & (column < 0.7)] = 200
    grey[(row > 0.6) & (column > 0.35) & (column < 0.5)] = 40
    grey[row + column < 0.4] = 230
    grey = np.clip(np.rint(rng.normal(grey, 20)), 0, 255)
    unary = (grey[..., None] - np.arange(256)) ** 2
    unary[rng.random(grey.shape) < 0.05] = 0
    unary[60:100, 150:200] = 0
    return tf.GridMRF(unary.astype(np.uint16), pairwise)


def birchfield_tomasi(name, labels, power, limit):
    """The Middlebury data cost of a stereo pair: Birchfield and Tomasi's difference, raised to a power and summed over
    the channels, at most `limit`.

    Half-way values are rounded down, as the benchmark does: the arrays are of integers. Label d matches column j of the
    left image with j - d of the right one; outside the image it costs `limit`.
    """
    left, right = (image.astype(np.int32) for image in pair(name))
    spans = half_sample_range(left), half_sample_range(right)
    width = left.shape[1]
    costs = np.full((*left.shape[:2], labels), limit, np.uint16)
    for d in range(labels):
        here, there = np.s_[:, d:], np.s_[:, : width - d]
        difference = np.minimum(
            distance_to_range(left[here], *(end[there] for end in spans[1])),
            distance_to_range(right[there], *(end[here] for end in spans[0])),
        )
        costs[:, d:, d] = np.minimum(np.sum(difference**power, axis=-1), limit)
    return costs


def ising_terms(mrf):
    """The fields (n,), edges (m, 2) and couplings (m,) of an Ising grid, as spin-glass solvers take them."""
    number = np.arange(mrf.size).reshape(mrf.shape)
    edges = np.concatenate(
        [
            np.stack([number[:-1], number[1:]], -1).reshape(-1, 2),
            np.stack([number[:, :-1], number[:, 1:]], -1).reshape(-1, 2),
        ]
    )
    couplings = np.concatenate([np.ravel(weight) for weight in mrf.weights])
    return mrf.unary[..., 1].reshape(-1), edges, couplings
