"""The problems that tests and benchmarks share: the paper's Ising field and stereo pairs."""

import os
import pathlib

import numpy as np

import treefield as tf


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


def stereo_costs(name, labels):
    """The paper's data cost: |I_l - I_r| on rounded luminance, the column clamped at the left border."""
    left, right = (luminance(picture(f"{name}/{name}-im{side}.png")) for side in "LR")
    column = np.arange(left.shape[1])
    shifted = [right[:, np.maximum(column - d, 0)] for d in range(labels)]
    return np.abs(left[:, :, None] - np.stack(shifted, axis=-1)).astype(np.float32)


def luminance(colour):
    """Grey values, rounded."""
    return np.round(colour[..., :3] @ np.array([0.299, 0.587, 0.114]))


def tsukuba():
    """The paper's energy on Tsukuba: 288 x 384 sites, 16 labels, Potts 20."""
    return tf.GridMRF(stereo_costs("tsukuba", 16), tf.Potts(20.0))


def venus():
    """The paper's energy on Venus: 383 x 434 sites, 20 labels, Potts 20."""
    return tf.GridMRF(stereo_costs("venus", 20), tf.Potts(20.0))


def ising(size=500, strength=1.0, seed=0, dtype=np.float32):
    """The paper's Ising field: fields U(-1, 1), couplings U(-strength, strength)."""
    rng = np.random.default_rng(seed)
    fields = rng.uniform(-1, 1, (size, size))
    couplings = [
        rng.uniform(-strength, strength, shape).astype(dtype) for shape in ((size - 1, size), (size, size - 1))
    ]
    return tf.GridMRF(
        np.stack([-fields, fields], axis=-1).astype(dtype), tf.Table([[1, -1], [-1, 1]]), weights=couplings
    )


def penguin():
    """The paper's energy on Penguin: 179 x 122 sites, 256 labels, data truncated at 100, Potts 25, no mask."""
    grey = picture("penguin/penguin-input.png").astype(np.float32)
    levels = np.arange(256, dtype=np.float32)
    return tf.GridMRF(np.minimum(np.abs(grey[..., None] - levels), 100), tf.Potts(25.0))


def ising_terms(mrf):
    """The fields (n,), edges (m, 2) and couplings (m,) of an Ising grid of `ising`, as spin-glass solvers take them."""
    number = np.arange(mrf.size).reshape(mrf.shape)
    edges = np.concatenate(
        [
            np.stack([number[:-1], number[1:]], -1).reshape(-1, 2),
            np.stack([number[:, :-1], number[:, 1:]], -1).reshape(-1, 2),
        ]
    )
    couplings = np.concatenate([np.ravel(weight) for weight in mrf.weights])
    return mrf.unary[..., 1].reshape(-1), edges, couplings
