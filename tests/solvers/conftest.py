"""The model that tests of searches share, and files for their checkpoints."""

import numpy as np
import pytest

import treefield as tf


@pytest.fixture(scope="module")
def mrf():
    return tf.GridMRF(np.random.default_rng(0).random((20, 24, 4), dtype=np.float32), tf.Potts(0.4))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "search.checkpoint"
