"""Lines of a grid, in the order in which they are solved.

The lines along one axis are numbered in raster order of the other axes. A schedule packs them into *steps* of up to
eight lines that do not touch, and says in which order the steps run: phase after phase, and within a phase several
queues that do not touch either, so that threads may share them. All of it depends on the model alone, never on the
machine, so that the answer does not either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LANES = 8  # as in kernels.simd.lanes, which imports the compiler
_QUEUES = 16  # into which steps that are all independent are split

Phases = list[list[np.ndarray]]


class Schedule(NamedTuple):
    """Which lines go together, and when.

    `lines` (blocks, 8) holds line numbers, -1 in lanes not in use, which come last. Step q solves the lines of block
    `blocks[q]` in the lanes of the bit mask `active[q]`. `phases(rng)` is the order, random if `rng` is given.
    """

    axis: int
    lines: np.ndarray
    blocks: np.ndarray
    active: np.ndarray
    phases: Callable[[np.random.Generator | None], Phases]


def cross_shape(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape of the lines along `axis`."""
    return shape[:axis] + shape[axis + 1 :]


def rows_columns(shape: tuple[int, ...], axis: int) -> Schedule:
    """One line after the other: the paper's first tree set."""
    count = math.prod(cross_shape(shape, axis))
    lines = np.full(-(-count // LANES) * LANES, -1)
    lines[:count] = np.arange(count)
    blocks, lanes = np.divmod(np.arange(count), LANES)

    def phases(rng: np.random.Generator | None) -> Phases:
        return [[np.arange(count) if rng is None else rng.permutation(count)]]

    return Schedule(axis, lines.reshape(-1, LANES), blocks, 1 << lanes, phases)


def alternating(shape: tuple[int, ...], axis: int, periodic: tuple[bool, ...] | None = None) -> Schedule:
    """Every second line at once, then the others: the paper's second tree set.

    In 3-D the parity is that of the sum of the other coordinates. Along an odd `periodic` axis the first line and the
    last are of one parity, but not of one step, and queues may touch.
    """
    length = max(cross_shape(shape, axis))
    depth = -(-length // (2 * LANES)) * 2  # an even depth: the lines of one step are of one parity
    depth = _apart(depth, 2, shape, axis, periodic)
    lines, _, others = _layout(shape, axis, LANES, depth)
    k, m = np.divmod(np.arange(len(lines)), others)
    halves = [np.flatnonzero((lines[:, 0] >= 0) & ((k + m) % 2 == parity)) for parity in (0, 1)]
    queues = [np.array_split(half, min(_QUEUES, len(half))) for half in halves if len(half)]

    def phases(rng: np.random.Generator | None) -> Phases:
        return queues if rng is None else [queues[i] for i in rng.permutation(len(queues))]

    return Schedule(axis, lines, *_whole_blocks(lines), phases)


def bands(
    shape: tuple[int, ...],
    axis: int,
    labels: int,
    count: int | None = None,
    periodic: tuple[bool, ...] | None = None,
) -> Schedule:
    """Cut the grid into bands and sweep all of them together, each sequentially from its first line to its last.

    Lane b holds line b K + k at step k. In 3-D the cut is across the longer of the other axes. If that is `periodic`,
    queues may touch.
    """
    length = max(cross_shape(shape, axis))
    number = max(1, min(band_count(length, labels) if count is None else count, length // 2))
    depth = _apart(-(-length // number), 1, shape, axis, periodic)
    lines, groups, others = _layout(shape, axis, number, depth)

    def phases(rng: np.random.Generator | None) -> Phases:
        ks = np.arange(depth) if rng is None else rng.permutation(depth)
        ms = np.arange(others) if rng is None else rng.permutation(others)
        # bands of different queues touch only where one ends (k = depth - 1) and the next begins (k = 0)
        barrier = max(np.flatnonzero(ks == 0)[0], np.flatnonzero(ks == depth - 1)[0]) if groups > 1 else 0
        parts = [part[:, None] for part in (ks[:barrier], ks[barrier:]) if len(part)]
        phases = [[((group * depth + part) * others + ms).reshape(-1) for group in range(groups)] for part in parts]
        return [[steps[lines[steps, 0] >= 0] for steps in queues] for queues in phases]  # bands at the end may be empty

    return Schedule(axis, lines, *_whole_blocks(lines), phases)


def _apart(depth: int, step: int, shape: tuple[int, ...], axis: int, periodic: tuple[bool, ...] | None) -> int:
    """The next depth of bands at which the first line and the last, which touch if joined, are in different steps."""
    cross = cross_shape(shape, axis)
    cut = int(np.argmax(cross))
    joined = periodic is not None and (periodic[:axis] + periodic[axis + 1 :])[cut]
    while joined and (cross[cut] - 1) % depth == 0:
        depth += step
    return depth


def _whole_blocks(lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps that solve every line of a block: their blocks, and the lanes in use."""
    return np.arange(len(lines)), ((lines >= 0) << np.arange(LANES)).sum(axis=1)


def _layout(shape: tuple[int, ...], axis: int, number: int, depth: int) -> tuple[np.ndarray, int, int]:
    """Lines [group][k][other coordinate][lane]: band b, of `depth` lines across the longest other axis, in lane b. And
    groups, and others.

    The lines next to those of a step are then, but for the ends of bands, those of one other step, lane by lane.
    """
    cross = cross_shape(shape, axis)
    cut = int(np.argmax(cross))
    groups = -(-number // LANES)
    band = np.arange(groups * LANES).reshape(groups, 1, 1, LANES)
    coordinate = band * depth + np.arange(depth)[:, None, None]
    inside = (coordinate < cross[cut]) & (band < number)
    if len(cross) == 1:
        others, line = 1, coordinate
    else:
        others = cross[1 - cut]
        other = np.arange(others)[:, None]
        line = coordinate * cross[1] + other if cut == 0 else other * cross[1] + coordinate
    return np.where(inside, line, -1).reshape(groups * depth * others, LANES), groups, others


def band_count(length: int, labels: int) -> int:
    """The number of bands: 8, doubled while bands stay at least 32 lines deep.

    The least depth is 8 where labels are few and order matters little.
    """
    least = 8 if labels <= 4 else 32
    count = LANES
    while length // (2 * count) >= least:
        count *= 2
    return count
