"""The holes of an image, each with a rim of one pixel, packed into one small grid."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

OUTSIDE = -1  # the pixel number of a position that shows no pixel


@dataclasses.dataclass(frozen=True)
class HoleGrid:
    """A grid of copies of the pixels in and next to the holes.

    Two pixels of holes are neighbours in the grid if and only if they are neighbours in the image, and all neighbours
    that a pixel of a hole has in the image are next to it in the grid.

    Attributes
    ----------
    boxes : list of tuples of slices
        The bounding boxes of the groups of holes, without their rims. No box touches another, not even at a corner.
    pixels : int array
        The number of the pixel (of the image, flat) at each position of the grid, OUTSIDE for none.
    hole : boolean array
        Which positions are in holes.
    """

    boxes: list[tuple[slice, ...]]
    pixels: np.ndarray
    hole: np.ndarray

    @functools.cached_property
    def known(self) -> np.ndarray:
        """Which positions show a known pixel."""
        return (self.pixels != OUTSIDE) & ~self.hole


def pack_holes(hole: np.ndarray) -> HoleGrid:
    """The grid of the holes of an image, at least one, given as a boolean array of its shape."""
    boxes = hole_boxes(hole)
    shape, corners = _pack_shelves([tuple(part.stop - part.start + 2 for part in box) for box in boxes])
    pixels = np.full(shape, OUTSIDE)
    for box, corner in zip(boxes, corners, strict=True):
        # the rim may reach one pixel beyond the image
        rimmed = [np.arange(part.start - 1, part.stop + 1) for part in box]
        inside = [(along >= 0) & (along < n) for along, n in zip(rimmed, hole.shape, strict=True)]
        kept = [along[valid] for along, valid in zip(rimmed, inside, strict=True)]
        place = tuple(
            slice(start + int(valid.argmax()), start + int(valid.argmax()) + len(along))
            for start, valid, along in zip(corner, inside, kept, strict=True)
        )
        pixels[place] = np.ravel_multi_index(np.ix_(*kept), hole.shape)
    return HoleGrid(boxes, pixels, hole.reshape(-1)[pixels] & (pixels != OUTSIDE))


def hole_boxes(hole: np.ndarray) -> list[tuple[slice, ...]]:
    """The bounding boxes of the connected holes; boxes that overlap or touch are merged."""
    from scipy import ndimage

    touching = np.ones((3,) * hole.ndim)
    boxes, count = ndimage.find_objects(ndimage.label(hole, touching)[0]), math.inf
    while len(boxes) < count:
        count = len(boxes)
        covered = np.zeros(hole.shape, bool)
        for box in boxes:
            covered[box] = True
        boxes = ndimage.find_objects(ndimage.label(covered, touching)[0])
    return boxes


def _pack_shelves(sizes: list[tuple[int, ...]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Put boxes into shelves: side by side along the last axis, the shelves one after the other along the first.

    Returns the shape of the grid and the first corner of each box.
    """
    width = max(*(size[-1] for size in sizes), math.isqrt(sum(size[0] * size[-1] for size in sizes)))
    corners: list[tuple[int, ...]] = [()] * len(sizes)
    shelf = top = left = right = 0
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number][0]):
        size = sizes[number]
        if left + size[-1] > width:
            shelf, left = top, 0
        corners[number] = (shelf, *(0 for _ in size[1:-1]), left)
        left += size[-1]
        top, right = max(top, shelf + size[0]), max(right, left)
    return (top, *(max(size[axis] for size in sizes) for axis in range(1, len(sizes[0]) - 1)), right), corners
