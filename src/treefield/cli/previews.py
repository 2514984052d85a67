"""Images, labellings and disparities as uint8 pictures to look at."""

from __future__ import annotations

import numpy as np

from treefield.apps.grey_levels import grey_scale

_HOLE = (220, 40, 40)  # red


def draw_image(image: np.ndarray, axis: int | None) -> np.ndarray:
    """Any image as pixels; of a volume the middle slice."""
    image = _middle_slice(image, 2 if axis is None else 3)
    if image.dtype != np.uint8:
        image = np.nan_to_num(image, posinf=0.0, neginf=0.0)  # holes may hold anything
        image = np.round(grey_scale(image).to_levels(image)).astype(np.uint8)
    return image if axis is None or image.shape[-1] == 3 else image[..., 0]


def draw_masked(image: np.ndarray, axis: int | None, hole: np.ndarray) -> np.ndarray:
    """An image with its hole in red."""
    pixels = draw_image(image, axis)
    pixels = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else pixels.copy()
    pixels[_middle_slice(hole, 2)] = _HOLE
    return pixels


def draw_disparities(disparity: np.ndarray, first: float, number: int) -> np.ndarray:
    """Disparities as colours from blue (far) to red (near); black where they are NaN."""
    from matplotlib import colormaps

    share = (np.nan_to_num(disparity, nan=first) - first) / max(1, number - 1)
    pixels = (colormaps["turbo"](share)[..., :3] * 255).astype(np.uint8)
    pixels[np.isnan(disparity)] = 0
    return pixels


def draw_regions(labels: np.ndarray) -> np.ndarray:
    """Labels as distinct colours; of a volume the middle slice."""
    from treefield.io.images.pillow_files import label_colours

    return label_colours()[_middle_slice(labels, 2) % 256]


def draw_shades(labels: np.ndarray, number: int) -> np.ndarray:
    """Labels as shades of grey; of a volume the middle slice."""
    return (_middle_slice(labels, 2) * (255 / max(1, number - 1))).astype(np.uint8)


def _middle_slice(array: np.ndarray, dimensions: int) -> np.ndarray:
    return array[len(array) // 2] if array.ndim > dimensions else array
