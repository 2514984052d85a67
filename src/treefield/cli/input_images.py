"""Images and masks as the commands read them: colours and alpha channel apart."""

from __future__ import annotations

import pathlib

import numpy as np

from treefield.apps.image_arrays import has_channels
from treefield.io import read_image
from treefield.io.paths import as_text


def split_alpha(image: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, int | None]:
    """Split an image into colours, alpha channel (None if it has none) and channel axis (None if it is grey)."""
    if not has_channels(image.shape):
        return image, None, None
    channels = image.shape[-1]
    alpha = image[..., -1:] if channels in (2, 4) else None
    colours = image[..., : channels - (alpha is not None)]
    return (colours[..., 0], alpha, None) if colours.shape[-1] == 1 else (colours, alpha, -1)


def join_alpha(image: np.ndarray, alpha: np.ndarray | None, axis: int | None) -> np.ndarray:
    """Undo `split_alpha`."""
    if alpha is None:
        return image
    return np.concatenate([image[..., None] if axis is None else image, alpha], axis=-1)


def read_mask(path: pathlib.Path, image: np.ndarray, axis: int | None) -> np.ndarray:
    """Read the mask of an image: True where a pixel of the file is not black. Raises unless the shapes are equal."""
    mask, _, channels = split_alpha(read_image(path))
    mask = mask != 0 if channels is None else np.any(mask != 0, axis=-1)
    shape = image.shape if axis is None else image.shape[:-1]
    if mask.shape != shape:
        raise ValueError(
            f"{as_text(path)} has shape {mask.shape}, but the image has {shape}: the mask must be of the same size"
        )
    return mask
