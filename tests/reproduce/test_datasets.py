"""Where the paper's pictures are looked for, and what stands in for them."""

import numpy as np
import pytest

from small import check_raises, hide_package
from treefield.io import write_image
from treefield_reproduce import datasets as module
from treefield_reproduce.datasets import data_folder, load_datasets


class SmallData:
    """In place of skimage.data."""

    def camera(self):
        return np.kron([[50, 200], [120, 80]], np.ones((8, 8))).astype(np.uint8)

    def stereo_motorcycle(self):
        scene = np.random.default_rng(0).integers(0, 256, (13, 40, 4), np.uint8)
        truth = np.full((13, 30), 6.0)
        truth[0] = np.inf
        return scene[:, :30], scene[:, 6:36], truth


@pytest.fixture
def substitutes(monkeypatch):
    monkeypatch.setattr(module, "_example_images", SmallData)


@pytest.fixture
def folder(tmp_path):
    """All three of the paper's, small."""
    rng = np.random.default_rng(0)
    for name, scale in (("tsukuba", 16), ("venus", 8)):
        (tmp_path / name).mkdir()
        for side in "LR":
            write_image(tmp_path / name / f"{name}-im{side}.png", rng.integers(0, 256, (6, 9, 3), dtype=np.uint8))
        truth = np.full((6, 9), 3 * scale, np.uint8)
        truth[0] = 0
        write_image(tmp_path / name / f"{name}-truedispL.png", truth)
    (tmp_path / "penguin").mkdir()
    for which in ("input", "clean"):
        write_image(tmp_path / "penguin" / f"penguin-{which}.png", rng.integers(0, 256, (7, 5), dtype=np.uint8))
    return tmp_path


def test_the_given_folder_comes_before_the_variable_and_nothing_is_looked_for_elsewhere(tmp_path, monkeypatch):
    for name in ("given", "named", "shared/data", "here"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("TREEFIELD_DATA", raising=False)
    assert data_folder() is None
    monkeypatch.setenv("TREEFIELD_DATA", str(tmp_path / "named"))
    assert data_folder() == tmp_path / "named"
    assert data_folder(tmp_path / "given") == tmp_path / "given"


def test_a_named_folder_that_does_not_exist_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREEFIELD_DATA", raising=False)
    assert data_folder() is None
    check_raises(lambda: data_folder(tmp_path / "none"), ValueError, "none, from --data, is no folder.*tsukuba/")
    monkeypatch.setenv("TREEFIELD_DATA", str(tmp_path / "gone"))
    check_raises(data_folder, ValueError, "gone, from the environment variable TREEFIELD_DATA")


def test_the_papers_pictures_are_read_with_their_truth(folder):
    found = load_datasets(folder)
    assert [(pair.name, pair.labels) for pair in found.pairs] == [("Tsukuba", 16), ("Venus", 20)]
    for pair in found.pairs:
        assert pair.left.shape == (6, 9, 3) and np.isnan(pair.truth[0]).all() and (pair.truth[1:] == 3).all()
    assert found.image.name == "Penguin" and found.image.noisy.shape == (7, 5)
    assert "the paper's" in found.description and "scikit-image" not in found.description


def test_missing_pictures_are_replaced_by_scikit_images_with_a_note(substitutes):
    found = load_datasets(None)
    (pair,) = found.pairs
    assert (pair.name, found.image.name) == ("Motorcycle", "Cameraman")
    assert pair.left.shape == pair.right.shape == (6, 15, 3) and pair.truth.shape == (6, 15)
    assert np.isnan(pair.truth[0]).all() and (pair.truth[1:] == 3).all()  # half the size, half the disparity
    assert found.image.clean.tolist() == [[50, 50, 200, 200]] * 2 + [[120, 120, 80, 80]] * 2
    assert found.image.noisy.dtype == np.uint8 and (found.image.noisy != found.image.clean).any()
    assert all(
        word in found.description for word in ("Tsukuba", "Venus", "Penguin", "--data", "motorcycle", "cameraman")
    )


def test_the_papers_pictures_that_exist_are_used(folder, substitutes):
    for path in [*(folder / "venus").iterdir(), *(folder / "penguin").iterdir()]:
        path.unlink()
    (folder / "venus").rmdir()
    (folder / "penguin").rmdir()
    found = load_datasets(folder)
    assert [pair.name for pair in found.pairs] == ["Tsukuba"] and found.image.name == "Cameraman"
    assert "Venus" in found.description and "motorcycle" not in found.description


def test_damaged_pictures_are_refused_by_name(folder):
    write_image(folder / "venus" / "venus-imR.png", np.zeros((6, 8, 3), np.uint8), force=True)
    check_raises(lambda: load_datasets(folder), ValueError, r"venus differ in shape.*\(6, 8, 3\)")
    write_image(folder / "venus" / "venus-imR.png", np.zeros((6, 9, 3), np.uint16), force=True)
    check_raises(lambda: load_datasets(folder), ValueError, "venus-imR.png is uint16.*8-bit")
    (folder / "venus" / "venus-imR.png").unlink()
    check_raises(lambda: load_datasets(folder), FileNotFoundError, "venus-imR.png")


def test_datasets_without_scikit_image_say_what_to_install(monkeypatch):
    hide_package(monkeypatch, "skimage")
    check_raises(lambda: load_datasets(None), ImportError, r"treefield\[demo\]")
