"""How strongly neighbouring pixels are tied to each other: less across the edges of an image."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from treefield.apps.blocks import over_blocks

_MIN_TIE = 0.05  # relative to the weight, across the strongest edges
_MAX_CONTRAST = 1e100
_BLOCK = 2**15  # pixels


def contrast_ties(
    image: np.ndarray,
    normalise: Callable[[np.ndarray], np.ndarray],
    steps: list[tuple[int, ...]],
    contrast: float,
    spacing: list[float],
    threads: int | None = None,
) -> list[np.ndarray]:
    """The factors of the weight in each direction: 1 where the image is flat, less across an edge and with distance.

    They are divided by their sum over the edges that cross a straight border along an axis, per pixel. `image` has its
    channels last; `normalise` converts a part of it to numbers from 0 to 1.
    """
    changes = [_squared_changes(*edge_ends(image, step), normalise, threads) for step in steps]
    mean = sum(change.sum() for change in changes) / max(1, sum(change.size for change in changes))
    rate = min(contrast, _MAX_CONTRAST) / (2 * mean) if mean > 0 else 0.0
    crossing = sum(1 / math.hypot(*step) for step in steps if step[0])
    nearest = min(spacing) / crossing
    distances = [math.hypot(*(s * size for s, size in zip(step, spacing, strict=True))) for step in steps]
    ties: list[np.ndarray] = []
    while changes:  # each is freed once it is used
        distance = distances[len(ties)]
        ties.append(_ties_of_changes(changes.pop(0), rate, nearest, distance, threads))
    return ties


def edge_ends(array: np.ndarray, step: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The values at the first and at the second site of every edge of a direction."""
    first = tuple(slice(max(0, -s), -s if s > 0 else None) for s in step)
    second = tuple(slice(max(0, s), s if s < 0 else None) for s in step)
    return array[first], array[second]


def _squared_changes(
    first: np.ndarray, second: np.ndarray, normalise: Callable[[np.ndarray], np.ndarray], threads: int | None
) -> np.ndarray:
    """The squared distance of the colours at the ends of each edge."""
    changes = np.empty(first.shape[:-1])

    def fill(rows: slice) -> None:
        difference = normalise(second[rows])
        difference -= normalise(first[rows])
        difference *= difference
        difference.sum(axis=-1, out=changes[rows])

    over_blocks(fill, len(first), _rows(changes), threads)
    return changes


def _ties_of_changes(
    changes: np.ndarray, rate: float, nearest: float, distance: float, threads: int | None
) -> np.ndarray:
    ties = np.empty(changes.shape, np.float32)

    def fill(rows: slice) -> None:
        ties[rows] = (_MIN_TIE + (1 - _MIN_TIE) * np.exp(-rate * changes[rows])) * nearest / distance

    over_blocks(fill, len(changes), _rows(changes), threads)
    return ties


def _rows(array: np.ndarray) -> int:
    """The number of rows of a block."""
    return max(1, _BLOCK // max(1, array[:1].size))
