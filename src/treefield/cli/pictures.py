"""Images as commands get them, and as pictures to look at."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefield.apps.pictures import grey_scale, has_channels


def split_alpha(image: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, int | None]:
    """An image without its alpha channel, that channel, and the axis of the colours, None if it is grey."""
    if not has_channels(image.shape):
        return image, None, None
    channels = image.shape[-1]
    alpha = image[..., -1:] if channels in (2, 4) else None
    colours = image[..., : channels - (alpha is not None)]
    return (colours[..., 0], alpha, None) if colours.shape[-1] == 1 else (colours, alpha, -1)


def join_alpha(image: np.ndarray, alpha: np.ndarray | None, axis: int | None) -> np.ndarray:
    """The opposite of `split_alpha`."""
    if alpha is None:
        return image
    return np.concatenate([image[..., None] if axis is None else image, alpha], axis=-1)


def grey_or_colour(image: np.ndarray, axis: int | None) -> np.ndarray:
    """Any image as uint8 pixels; of a volume its middle slice."""
    image = _middle(image, 2 if axis is None else 3)
    if image.dtype != np.uint8:
        image = np.nan_to_num(image, posinf=0.0, neginf=0.0)  # holes may hold anything
        image = np.round(grey_scale(image).grey(image)).astype(np.uint8)
    return image if axis is None or image.shape[-1] == 3 else image[..., 0]


def _middle(array: np.ndarray, dimensions: int) -> np.ndarray:
    """The middle slice of what has more dimensions than a picture."""
    return array[len(array) // 2] if array.ndim > dimensions else array


def depths(disparity: np.ndarray, first: float, number: int) -> np.ndarray:
    """Disparities as colours from blue (far) to red (near); black where there are none."""
    from matplotlib import colormaps

    share = (np.nan_to_num(disparity, nan=first) - first) / max(1, number - 1)
    pixels = (colormaps["turbo"](share)[..., :3] * 255).astype(np.uint8)
    pixels[np.isnan(disparity)] = 0
    return pixels


def regions(labels: np.ndarray) -> np.ndarray:
    """Labels as distinct colours; of a volume the middle slice."""
    from treefield.io.pictures import label_colours

    return label_colours()[_middle(labels, 2) % 256]


def ordered(labels: np.ndarray, number: int) -> np.ndarray:
    """Labels as shades of grey; of a volume the middle slice."""
    return (_middle(labels, 2) * (255 / max(1, number - 1))).astype(np.uint8)


def masked(image: np.ndarray, axis: int | None, hole: np.ndarray) -> np.ndarray:
    """An image as pixels whose hole is red."""
    pixels: Any = grey_or_colour(image, axis)
    pixels = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else pixels.copy()
    pixels[_middle(hole, 2)] = (220, 40, 40)
    return pixels
