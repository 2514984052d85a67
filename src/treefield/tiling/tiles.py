"""A tile of a grid: a box of sites with its costs, alone or with the labels around it fixed."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np

from treefield.models.grid import GridMRF
from treefield.models.pairwise import Pairwise
from treefield.tiling.array_protocols import Box

_BORDER = 32  # sites on each side of a border that are searched again


@dataclasses.dataclass
class Tile:
    """The costs of a box of sites.

    Attributes
    ----------
    unary : array or None
        None where only the edges to the sites around the box are needed.
    n_labels, pairwise
        As in `GridMRF`.
    weights : list of arrays, or None
        One number or array per axis, the edges to the halo included.
    halo : list of (bool, bool)
        For each axis, whether there are sites before and after the box whose labels are fixed.
    fixed : array or None
        The labels of the box and its halo; None if the sites around the box do not count.
    """

    unary: np.ndarray | None
    n_labels: int
    pairwise: Pairwise
    weights: list[np.ndarray] | None
    halo: list[tuple[bool, bool]]
    fixed: np.ndarray | None = None

    @functools.cached_property
    def model(self) -> GridMRF:
        """The box alone."""
        assert self.unary is not None
        weights = None
        if self.weights is not None:
            weights = [self._inner_edges(axis, weight) for axis, weight in enumerate(self.weights)]
        return GridMRF(self.unary, self.pairwise, weights=weights)

    @property
    def own(self) -> np.ndarray:
        """The labels inside of the box."""
        assert self.fixed is not None
        return np.ascontiguousarray(self.fixed[self._inside], dtype=np.int32)

    def absorbed(self) -> GridMRF:
        """The box with the costs of the edges to the fixed labels absorbed into its unary (Eq. 8)."""
        model, table = self.model, self.pairwise.table(self.n_labels)
        unary = model.unary.astype(model.backend.dtype)
        for axis, after, labels_outside, weight in self._faces():
            costs = (table.T if after else table)[labels_outside]
            face = unary[self._face(axis, after)]
            face += _product(weight[..., None], costs)
        return model.with_unary(unary)

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        """The finite part and the number of forbidden costs of labels in the box, the edges to the halo included."""
        finite, forbidden = self.model.backend.energy_parts(x)
        edges, more, _ = self.between(x)
        return math.fsum([finite, edges]), forbidden + more

    def between(self, x: np.ndarray) -> tuple[float, int, float]:
        """The cost of the edges to the halo: its finite part, the number of forbidden costs, and a lower bound.

        The bound holds for any labels.
        """
        table = self.pairwise.table(self.n_labels)
        low, high = float(table.min()), float(table[np.isfinite(table)].max(initial=0.0))
        sums, forbidden, least = [0.0], 0, [0.0]
        for axis, after, labels_outside, weight in self._faces():
            own = x[self._face(axis, after)]
            costs = _product(weight, table[own, labels_outside] if after else table[labels_outside, own])
            finite = np.isfinite(costs)
            forbidden += int(finite.size - np.count_nonzero(finite))
            sums.append(float(costs[finite].sum()))
            least.append(float(_product(weight, np.where(weight > 0, low, high)).sum()))
        return math.fsum(sums), forbidden, math.fsum(least)

    def _faces(self) -> Iterator[tuple[int, bool, np.ndarray, np.ndarray]]:
        """The faces of the box with a halo: the axis, whether the halo is after the box or before it, its labels, and
        the weights of the edges to it."""
        if self.fixed is None:
            return
        for axis, sides in enumerate(self.halo):
            for after in (False, True):
                if not sides[after]:
                    continue
                place = list(self._inside)
                place[axis] = slice(-1, None) if after else slice(0, 1)
                labels_outside = self.fixed[tuple(place)]
                yield axis, after, labels_outside, np.broadcast_to(self._face_weight(axis, after), labels_outside.shape)

    def _face_weight(self, axis: int, after: bool) -> np.ndarray:
        weight = np.asarray(1.0 if self.weights is None else self.weights[axis], np.float64)
        if weight.ndim:
            weight = weight.take([-1 if after else 0], axis)
        return self.pairwise.weight * weight

    def _inner_edges(self, axis: int, weight: np.ndarray) -> np.ndarray:
        if not weight.ndim:
            return weight
        before, after = self.halo[axis]
        place = [slice(None)] * len(self.halo)
        place[axis] = slice(int(before), weight.shape[axis] - after)
        return weight[tuple(place)]

    def _face(self, axis: int, after: bool) -> Box:
        place = [slice(None)] * len(self.halo)
        place[axis] = slice(-1, None) if after else slice(0, 1)
        return tuple(place)

    @property
    def _inside(self) -> Box:
        return tuple(slice(int(before), -1 if after else None) for before, after in self.halo)


def _product(weight: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """The costs of edges: 0 where the weight is 0, even for forbidden pairs of labels."""
    with np.errstate(invalid="ignore"):
        return np.where(weight == 0, 0.0, weight * costs)


def halo_of(box: Box, shape: tuple[int, ...]) -> list[tuple[bool, bool]]:
    """For each axis, whether a grid has sites before a box and after it."""
    return [(part.start > 0, part.stop < n) for part, n in zip(box, shape, strict=True)]


def expand(box: Box, halo: list[tuple[bool, bool]]) -> Box:
    """A box with its halo."""
    sides = zip(box, halo, strict=True)
    return tuple(slice(part.start - before, part.stop + after) for part, (before, after) in sides)


def is_touching(first: Box, second: Box) -> bool:
    """Whether two boxes share a site or an edge; boxes that meet at a corner do not."""
    apart = [max(a.start, b.start) - min(a.stop, b.stop) for a, b in zip(first, second, strict=True)]
    return all(gap <= 0 for gap in apart) and apart.count(0) <= 1


def tile_boxes(shape: tuple[int, ...], tile: tuple[int, ...], is_shifted: bool = False) -> list[list[Box]]:
    """The tiles of a grid in two colour classes; tiles of one class do not touch.

    Shifted tiles are displaced by half a tile, so that the two sets have no border in common.
    """
    return _colour_classes([_split_axis(n, size, is_shifted) for n, size in zip(shape, tile, strict=True)])


def border_boxes(shape: tuple[int, ...], tile: tuple[int, ...], axis: int) -> list[list[Box]]:
    """Boxes around the borders between tiles across an axis, in two colour classes; boxes of one class do not touch."""
    edges = [_split_axis(n, size, is_shifted=True) for n, size in zip(shape, tile, strict=True)]
    borders = [part.start for part in _split_axis(shape[axis], tile[axis], is_shifted=False)[1:]]
    wide = min(_BORDER, max(1, tile[axis] // 4))
    edges[axis] = [slice(max(0, at - wide), min(shape[axis], at + wide)) for at in borders]
    classes = _colour_classes([parts if number != axis else [slice(0, 0)] for number, parts in enumerate(edges)])
    return [[(*box[:axis], strip, *box[axis + 1 :]) for strip in edges[axis] for box in boxes] for boxes in classes]


def _colour_classes(edges: list[list[slice]]) -> list[list[Box]]:
    classes: list[list[Box]] = [[], []]
    for number in itertools.product(*(range(len(parts)) for parts in edges)):
        classes[sum(number) % 2].append(tuple(parts[k] for parts, k in zip(edges, number, strict=True)))
    return classes


def _split_axis(length: int, size: int, is_shifted: bool) -> list[slice]:
    """Divide an axis into parts of about the same size; shifted by half of it, the first and last parts are shorter."""
    count = -(-length // size)
    borders = [length * k // count for k in range(count + 1)]
    if is_shifted and count > 1:
        borders = [0, *((a + b) // 2 for a, b in itertools.pairwise(borders)), length]
    return [slice(a, b) for a, b in itertools.pairwise(borders) if a < b]
