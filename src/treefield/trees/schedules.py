"""Lines of a grid, in the order in which they are solved.

The lines along one axis are numbered in raster order of the other axes. A schedule packs them into *steps* of up to eight lines that do not touch,
and says in which order the steps run: phase after phase, and within a phase several queues that do not touch either, so that threads may share them.
All of it depends on the model alone, never on the machine, so that the answer does not either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LANES = 8  # as in kernels.lanes, which imports the compiler
_QUEUES = 16  # into which steps that are all independent are split

Phases = list[list[np.ndarray]]


class Schedule(NamedTuple):
    """`lines` (steps, 8) holds line numbers, -1 in lanes not in use, which come last; `phases(rng)` the order, random if `rng` is given."""

    axis: int
    lines: np.ndarray
    phases: Callable[[np.random.Generator | None], Phases]


def cross_shape(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape of the lines along `axis`."""
    return shape[:axis] + shape[axis + 1 :]


def rows_columns(shape: tuple[int, ...], axis: int) -> Schedule:
    """One line after the other: the paper's first tree set."""
    count = math.prod(cross_shape(shape, axis))
    lines = np.full((count, LANES), -1)
    lines[:, 0] = np.arange(count)
    return Schedule(axis, lines, lambda rng: [[np.arange(count) if rng is None else rng.permutation(count)]])


def alternating(shape: tuple[int, ...], axis: int) -> Schedule:
    """Every second line at once, then the others: the paper's second tree set. In 3-D by the parity of the sum of the other coordinates."""
    cross = cross_shape(shape, axis)
    parity = np.indices(cross).sum(axis=0).reshape(-1) % 2
    halves = [_in_lanes(np.flatnonzero(parity == p)) for p in (0, 1)]
    steps = np.split(np.arange(sum(map(len, halves))), [len(halves[0])])
    queues = [np.array_split(part, min(_QUEUES, len(part))) for part in steps if len(part)]

    def phases(rng: np.random.Generator | None) -> Phases:
        return queues if rng is None else [queues[i] for i in rng.permutation(len(queues))]

    return Schedule(axis, np.concatenate(halves), phases)


def bands(shape: tuple[int, ...], axis: int, labels: int, count: int | None = None) -> Schedule:
    """Cut the grid into bands and sweep all of them together, each from its first line to its last: sequential inside a band.

    Lane b holds line b K + k at step k. In 3-D the cut is across the longer of the other axes.
    """
    cross = cross_shape(shape, axis)
    cut = int(np.argmax(cross))
    length = cross[cut]
    wanted = band_count(length, labels) if count is None else count
    number = max(1, min(wanted, length // 2))
    depth = -(-length // number)
    groups = -(-number // LANES)
    coordinate = np.arange(groups * LANES).reshape(groups, 1, LANES) * depth + np.arange(depth)[:, None]  # [group][k][lane]
    inside = (coordinate < length) & (np.arange(groups * LANES).reshape(groups, 1, LANES) < number)
    others = cross[1 - cut] if len(cross) == 2 else 1
    other = np.arange(others)[:, None]
    line = coordinate[:, :, None] if len(cross) == 1 else _raster(coordinate[:, :, None], other, cut, cross)
    lines = np.where(inside[:, :, None], line, -1).reshape(groups * depth * others, LANES)

    def phases(rng: np.random.Generator | None) -> Phases:
        ks = np.arange(depth) if rng is None else rng.permutation(depth)
        ms = np.arange(others) if rng is None else rng.permutation(others)
        # bands of different queues touch only where one ends (k = depth - 1) and the next begins (k = 0)
        barrier = max(np.flatnonzero(ks == 0)[0], np.flatnonzero(ks == depth - 1)[0]) if groups > 1 else 0
        return [
            [((group * depth + part[:, None]) * others + ms).reshape(-1) for group in range(groups)]
            for part in (ks[:barrier], ks[barrier:])
            if len(part)
        ]

    return Schedule(axis, lines, phases)


def band_count(length: int, labels: int) -> int:
    """How many bands: 8, doubled while bands stay at least 32 lines deep (8 where labels are few and order matters little)."""
    least = 8 if labels <= 4 else 32
    count = LANES
    while length // (2 * count) >= least:
        count *= 2
    return count


def _raster(coordinate: np.ndarray, other: np.ndarray, cut: int, cross: tuple[int, ...]) -> np.ndarray:
    return coordinate * cross[1] + other if cut == 0 else other * cross[1] + coordinate


def _in_lanes(lines: np.ndarray) -> np.ndarray:
    padded = np.full(-(-len(lines) // LANES) * LANES, -1)
    padded[: len(lines)] = lines
    return padded.reshape(-1, LANES)
