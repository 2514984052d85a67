"""Strokes of flat colours as labels."""

from __future__ import annotations

import numpy as np

MAX_COLOURS = 64  # more are the in-between colours of anti-aliasing or of JPEG


def number_colours(image: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """Labels of an unsigned image (..., channels) of flat colours, and the number of pixels of each colour.

    Colours are numbered from 1 on in the order of their codes, such as "#0000ff", and named by them. Black and fully
    transparent pixels are 0. The channels are grey or red, green and blue, and alpha if their number is even.
    """
    has_alpha = image.shape[-1] % 2 == 0
    colours = image[..., :-1] if has_alpha else image
    drawn = colours.any(axis=-1)
    if has_alpha:
        drawn &= image[..., -1] > 0
    bits = 8 * image.dtype.itemsize
    codes = np.zeros(np.count_nonzero(drawn), np.uint64)
    for channel in np.moveaxis(np.broadcast_to(colours, (*colours.shape[:-1], 3)), -1, 0):
        codes = (codes << np.uint64(bits)) | channel[drawn].astype(np.uint64)
    found, numbers, counts = np.unique(codes, return_inverse=True, return_counts=True)
    if len(found) > MAX_COLOURS:
        raise ValueError(
            f"it has {len(found)} colours, expected at most {MAX_COLOURS}, a flat one for each label on black or "
            "transparent ground; draw with a hard brush, without anti-aliasing, and save as PNG, not as JPEG"
        )
    labels = np.zeros(drawn.shape, np.uint8)
    labels[drawn] = numbers + 1
    names = [f"#{code:0{3 * bits // 4}x}" for code in found.tolist()]
    return labels, dict(zip(names, counts.tolist(), strict=True))
