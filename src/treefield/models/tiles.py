"""A tile of a grid: a box of sites with what they cost, by itself or with the sites around it fixed."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from treefield.models.grid import GridMRF
from treefield.models.pairwise import Pairwise

Box = tuple[slice, ...]

_SEAM = 32  # sites on each side of a border that are searched again


@dataclasses.dataclass
class Tile:
    """What a box of sites costs.

    `halo` tells for each axis whether there are sites beside the box, before its first and after its last one;
    `weights` are one number or array per axis, with the edges to these sites. `given` are labels of the box and of the
    sites around it; without them the sites around it do not count. The unary is left out where only the edges to those
    matter.
    """

    unary: np.ndarray | None
    labels: int
    pairwise: Pairwise
    weights: list[Any] | None
    halo: list[tuple[bool, bool]]
    given: np.ndarray | None = None

    @functools.cached_property
    def model(self) -> GridMRF:
        """The box by itself."""
        weights = None
        if self.weights is not None:
            weights = [self._inner_edges(axis, weight) for axis, weight in enumerate(self.weights)]
        return GridMRF(self.unary, self.pairwise, weights=weights)

    @property
    def own(self) -> np.ndarray:
        """The labels that are given inside the box."""
        assert self.given is not None
        return np.ascontiguousarray(self.given[self._inside], dtype=np.int32)

    def absorbed(self) -> GridMRF:
        """The box with what the labels around it cost added to the costs of its own (Eq. 8)."""
        model, table = self.model, self.pairwise.table(self.labels)
        unary = model.unary.astype(model.dtype)
        for axis, after, beside, weight in self._faces():
            costs = (table.T if after else table)[beside]
            face = unary[self._face(axis, after)]
            face += _product(weight[..., None], costs)
        return model.with_unary(unary)

    def energy_parts(self, x: np.ndarray) -> tuple[float, int]:
        """The energy of labels in the box, and of its edges to the labels around it, as `GridMRF.energy_parts`."""
        finite, forbidden = self.model.energy_parts(x)
        edges, more, _ = self.between(x)
        return math.fsum([finite, edges]), forbidden + more

    def between(self, x: np.ndarray) -> tuple[float, int, float]:
        """What the edges to the labels around the box cost: the finite part, how many are forbidden, and what they cost
        at least, whatever the labels."""
        table = self.pairwise.table(self.labels)
        low, high = float(table.min()), float(table[np.isfinite(table)].max(initial=0.0))
        sums, forbidden, least = [0.0], 0, [0.0]
        for axis, after, beside, weight in self._faces():
            own = x[self._face(axis, after)]
            costs = _product(weight, table[own, beside] if after else table[beside, own])
            finite = np.isfinite(costs)
            forbidden += int(finite.size - np.count_nonzero(finite))
            sums.append(float(costs[finite].sum()))
            least.append(float(_product(weight, np.where(weight > 0, low, high)).sum()))
        return math.fsum(sums), forbidden, math.fsum(least)

    def _faces(self) -> Iterator[tuple[int, bool, np.ndarray, np.ndarray]]:
        """The sides with given labels beside them: the axis, whether they are after the box or before it, and the
        labels and the weights of the edges there."""
        if self.given is None:
            return
        for axis, sides in enumerate(self.halo):
            for after in (False, True):
                if not sides[after]:
                    continue
                place = list(self._inside)
                place[axis] = slice(-1, None) if after else slice(0, 1)
                beside = self.given[tuple(place)]
                yield axis, after, beside, np.broadcast_to(self._face_weight(axis, after), beside.shape)

    def _face_weight(self, axis: int, after: bool) -> np.ndarray:
        weight = np.asarray(1.0 if self.weights is None else self.weights[axis], np.float64)
        if weight.ndim:
            weight = weight.take([-1 if after else 0], axis)
        return self.pairwise.weight * weight

    def _inner_edges(self, axis: int, weight: Any) -> Any:
        before, after = self.halo[axis]
        place = [slice(None)] * len(self.halo)
        place[axis] = slice(int(before), np.shape(weight)[axis] - after) if np.ndim(weight) else slice(None)
        return np.asarray(weight)[tuple(place)] if np.ndim(weight) else weight

    def _face(self, axis: int, after: bool) -> Box:
        place = [slice(None)] * len(self.halo)
        place[axis] = slice(-1, None) if after else slice(0, 1)
        return tuple(place)

    @property
    def _inside(self) -> Box:
        return tuple(slice(int(before), -1 if after else None) for before, after in self.halo)


def _product(weight: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """What edges cost; nothing where their weight is 0, whatever is forbidden."""
    with np.errstate(invalid="ignore"):
        return np.where(weight == 0, 0.0, weight * costs)


def halo_of(box: Box, shape: tuple[int, ...]) -> list[tuple[bool, bool]]:
    """For each axis, whether a grid has sites before a box and after it."""
    return [(part.start > 0, part.stop < n) for part, n in zip(box, shape, strict=True)]


def grown(box: Box, halo: list[tuple[bool, bool]]) -> Box:
    """A box and the sites beside it."""
    sides = zip(box, halo, strict=True)
    return tuple(slice(part.start - before, part.stop + after) for part, (before, after) in sides)


def touch(first: Box, second: Box) -> bool:
    """Whether two boxes have a site in common, or neighbours: at a corner there are none."""
    apart = [max(a.start, b.start) - min(a.stop, b.stop) for a, b in zip(first, second, strict=True)]
    return all(gap <= 0 for gap in apart) and apart.count(0) <= 1


def cut(shape: tuple[int, ...], tile: tuple[int, ...], shifted: bool = False) -> list[list[Box]]:
    """A grid cut into boxes, in two colour classes: boxes of one class share no edge. Shifted by half a tile, the
    borders are where there was none."""
    edges = [_cut_axis(n, size, shifted) for n, size in zip(shape, tile, strict=True)]
    return _two_lots(edges)


def seams(shape: tuple[int, ...], tile: tuple[int, ...], axis: int) -> list[list[Box]]:
    """Boxes around the borders that `cut` makes across an axis, in two colour classes of boxes that do not touch."""
    edges = [_cut_axis(n, size, shifted=True) for n, size in zip(shape, tile, strict=True)]
    borders = [part.start for part in _cut_axis(shape[axis], tile[axis], shifted=False)[1:]]
    wide = min(_SEAM, max(1, tile[axis] // 4))
    edges[axis] = [slice(max(0, at - wide), min(shape[axis], at + wide)) for at in borders]
    lots = _two_lots([parts if number != axis else [slice(0, 0)] for number, parts in enumerate(edges)])
    return [[(*box[:axis], strip, *box[axis + 1 :]) for strip in edges[axis] for box in lot] for lot in lots]


def _two_lots(edges: list[list[slice]]) -> list[list[Box]]:
    lots: list[list[Box]] = [[], []]
    for number in itertools.product(*(range(len(parts)) for parts in edges)):
        lots[sum(number) % 2].append(tuple(parts[k] for parts, k in zip(edges, number, strict=True)))
    return lots


def _cut_axis(length: int, size: int, shifted: bool) -> list[slice]:
    """An axis cut into parts of about the same size; shifted by half of it, the first and the last are the rest."""
    count = -(-length // size)
    borders = [length * k // count for k in range(count + 1)]
    if shifted and count > 1:
        borders = [0, *((a + b) // 2 for a, b in itertools.pairwise(borders)), length]
    return [slice(a, b) for a, b in itertools.pairwise(borders) if a < b]
