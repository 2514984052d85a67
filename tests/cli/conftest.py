"""The command, and small files for it to read."""

import numpy as np
import pytest

from command import Command
from treefield.io import write_image


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """The command in this process and in a temporary folder."""
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capsys)


@pytest.fixture
def grey():
    """Four squares with noise, (12, 16)."""
    clean = np.kron([[50, 200], [120, 80]], np.ones((6, 8)))
    return np.clip(np.random.default_rng(0).normal(clean, 15), 0, 255).astype(np.uint8)


@pytest.fixture
def files(tmp_path, grey):
    """The folder with what the commands read."""
    rng = np.random.default_rng(1)
    scene = rng.integers(0, 256, (10, 24), dtype=np.uint8)
    mask = np.zeros(grey.shape, bool)
    mask[4:7, 5:9] = True
    images = {
        "grey.png": grey,
        "rgb.png": np.stack([grey, grey[::-1], grey[:, ::-1]], axis=-1),
        "mask.png": mask,
        "left.png": scene[:, :18],
        "right.png": scene[:, 3:21],
        "fields.npy": rng.normal(size=(12, 16)).astype(np.float32),
    }
    for name, image in images.items():
        write_image(tmp_path / name, image)
    np.savez(tmp_path / "model.npz", unary=rng.integers(0, 50, (8, 9, 4)), potts=8.0)
    return tmp_path
