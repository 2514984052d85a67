"""The images of the paper, and substitutes where they are missing."""

from __future__ import annotations

import dataclasses
import importlib
import os
import pathlib
from typing import Protocol

import numpy as np

from treefield.io import read_image
from treefield.io.paths import as_text

_REDUCED = 2  # the motorcycle, along each side: as many sites and labels as the paper's pairs have
_SMALL = 4  # the cameraman, along each side: about as many sites as Penguin has
_NOISE = 25.0  # of the cameraman, standard deviation


@dataclasses.dataclass(frozen=True)
class StereoPair:
    """Two images of one scene; `truth` holds disparities of the left one, nan where they are not known."""

    name: str
    left: np.ndarray
    right: np.ndarray
    truth: np.ndarray
    labels: int


@dataclasses.dataclass(frozen=True)
class NoisyImage:
    """A grey image of 256 levels, and the same without noise."""

    name: str
    noisy: np.ndarray
    clean: np.ndarray


@dataclasses.dataclass(frozen=True)
class Datasets:
    """The images of the experiments, and a sentence on where they come from."""

    pairs: list[StereoPair]
    image: NoisyImage
    description: str


class _ExampleImages(Protocol):
    """The part of skimage.data that is used."""

    def camera(self) -> np.ndarray: ...
    def stereo_motorcycle(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...


def data_folder(given: pathlib.Path | None = None) -> pathlib.Path | None:
    """The folder with the paper's images: the one given, else that of the environment variable TREEFIELD_DATA; None
    without either."""
    folder = given or (pathlib.Path(os.environ["TREEFIELD_DATA"]) if os.environ.get("TREEFIELD_DATA") else None)
    if folder is None or folder.is_dir():
        return folder
    where = "--data" if given is not None else "the environment variable TREEFIELD_DATA"
    raise ValueError(f"{as_text(folder)}, from {where}, is no folder; it should hold tsukuba/, venus/ and penguin/")


def load_datasets(folder: pathlib.Path | None) -> Datasets:
    """Read the paper's images; scikit-image's replace those that are missing."""
    missing, pairs, image = [], [], None
    for name, read in (("tsukuba", _tsukuba), ("venus", _venus)):
        if folder is not None and (folder / name).is_dir():
            pairs.append(read(folder))
        else:
            missing.append(name.title())
    if folder is not None and (folder / "penguin").is_dir():
        image = penguin(folder)
    else:
        missing.append("Penguin")
    instead = []
    if not pairs:
        pairs, instead = [_motorcycle()], ["motorcycle pair (at half its size)"]
    if image is None:
        image = _camera()
        instead.append("cameraman (at a quarter of its size, with Gaussian noise)")
    return Datasets(pairs, image, _describe(missing, instead))


def _describe(missing: list[str], instead: list[str]) -> str:
    if not missing:
        return "The images are the paper's: Tsukuba, Venus and Penguin of the Middlebury benchmarks."
    text = f"The paper's {', '.join(missing)} are missing (give --data DIR or set TREEFIELD_DATA)"
    if instead:
        text += f": scikit-image's {' and '.join(instead)} are used instead, for which the paper has no figures"
    return text + "."


def stereo_pair(folder: pathlib.Path, name: str, labels: int, scale: int) -> StereoPair:
    """A Middlebury pair: its truth is disparity times `scale`, 0 where it is not known."""
    left, right, truth = (_read(folder / name / f"{name}-{which}.png") for which in ("imL", "imR", "truedispL"))
    if left.shape != right.shape or truth.shape[:2] != left.shape[:2]:
        raise ValueError(
            f"the images of {as_text(folder / name)} differ in shape: {left.shape}, {right.shape} and {truth.shape}"
        )
    truth = truth if truth.ndim == 2 else truth[..., 0]
    disparity = np.where(truth > 0, truth / scale, np.nan)
    return StereoPair(name.title(), left, right, disparity, labels)


def _tsukuba(folder: pathlib.Path) -> StereoPair:
    return stereo_pair(folder, "tsukuba", 16, 16)


def _venus(folder: pathlib.Path) -> StereoPair:
    return stereo_pair(folder, "venus", 20, 8)


def penguin(folder: pathlib.Path) -> NoisyImage:
    """The noisy Penguin, hole and all: the paper's energy uses no mask."""
    noisy, clean = (_read(folder / "penguin" / f"penguin-{which}.png") for which in ("input", "clean"))
    if noisy.ndim != 2 or clean.shape != noisy.shape:
        raise ValueError(
            f"the images of {as_text(folder / 'penguin')} must be grey and of one size, got {noisy.shape} and "
            f"{clean.shape}"
        )
    return NoisyImage("Penguin", noisy, clean)


def _read(path: pathlib.Path) -> np.ndarray:
    image = read_image(path)
    if image.dtype != np.uint8:
        raise ValueError(f"{as_text(path)} is {image.dtype}, expected 8-bit grey or colour")
    return image


def _motorcycle() -> StereoPair:
    left, right, truth = _example_images().stereo_motorcycle()
    left, right = (_reduce(image[..., :3], _REDUCED) for image in (left, right))
    truth = truth[: _REDUCED * left.shape[0] : _REDUCED, : _REDUCED * left.shape[1] : _REDUCED] / _REDUCED
    return StereoPair("Motorcycle", left, right, np.where(np.isfinite(truth) & (truth > 0), truth, np.nan), 32)


def _camera() -> NoisyImage:
    clean = _reduce(_example_images().camera(), _SMALL)
    noisy = np.random.default_rng(0).normal(clean, _NOISE)
    return NoisyImage("Cameraman", np.clip(np.round(noisy), 0, 255).astype(np.uint8), clean)


def _reduce(image: np.ndarray, factor: int) -> np.ndarray:
    """Reduce an image to the means of its blocks."""
    rows, columns = image.shape[0] // factor, image.shape[1] // factor
    blocks = image[: rows * factor, : columns * factor].reshape(rows, factor, columns, factor, *image.shape[2:])
    return np.round(blocks.mean(axis=(1, 3))).astype(np.uint8)


def _example_images() -> _ExampleImages:
    try:
        data: _ExampleImages = importlib.import_module("skimage.data")
    except ImportError as error:
        raise ImportError(
            "no images of the paper: give --data DIR or set TREEFIELD_DATA; for scikit-image's instead, "
            'pip install "treefield[demo]"'
        ) from error
    return data
