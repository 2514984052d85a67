"""The search of a grid in tiles as tasks that may run anywhere: each a pure function of blocks and of earlier tasks."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from treefield.models.pairwise import as_pairwise
from treefield.models.stores import label_dtype
from treefield.models.tiled import shown
from treefield.models.tiles import Box, Tile, grown, halo_of, touch
from treefield.solvers.run import INTERRUPTED
from treefield.solvers.tiles import Solved, first_labels, seed_of, solve_tile, total_bound
from treefield.validation import as_real_array, check_labels

Halo = list[tuple[bool, bool]]


@dataclasses.dataclass(eq=False)
class Settings:
    """What all tasks of a search share. `costs` makes costs of a block, unless the block is of costs already; without
    `labels` the costs tell how many there are."""

    pairwise: Any
    labels: int | None = None
    costs: Callable[[np.ndarray], Any] | None = None
    method: str = ""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    root: int = 0

    def unary(self, block: Any, box: Box) -> np.ndarray:
        """The costs of a box."""
        found = as_real_array(block if self.costs is None else self.costs(np.asarray(block)), "unary")
        sites = tuple(part.stop - part.start for part in box)
        labels = self.labels or (found.shape[-1] if found.ndim else 0)
        if found.shape != (*sites, labels):
            raise ValueError(f"costs gave shape {found.shape} for the box {shown(box)}, expected {(*sites, labels)}")
        return found

    def tile(self, job: Job, block: Any, weights: Any, given: np.ndarray | None) -> Tile:
        """A box and its costs, or without a block only those of its edges to the sites around it."""
        unary = None if block is None else self.unary(block, job.box)
        labels = self.labels or (0 if unary is None else unary.shape[-1])
        return Tile(unary, labels, as_pairwise(self.pairwise, labels), weights, job.halo, given)


@dataclasses.dataclass(eq=False)
class Job:
    """A box in a turn: which sites beside it count, where the pieces of its labels and of those around it lie (in it,
    and in the boxes they are from), and, if it is searched only when something has changed there, the boxes to ask."""

    box: Box
    halo: Halo
    turn: int = 0
    places: list[tuple[Box, Box]] = dataclasses.field(default_factory=list)
    asked: list[Box] | None = None

    def given(self, pieces: list[Solved]) -> np.ndarray:
        """The labels of the box and around it; 0 at corners, which are nobody's neighbours."""
        sides = [part.stop - part.start for part in grown(self.box, self.halo)]
        labels = np.zeros(sides, pieces[0].x.dtype)
        for piece, (here, there) in zip(pieces, self.places, strict=True):
            labels[here] = piece.x[there]
        return labels


def start_with(settings: Settings, job: Job, block: Any) -> Solved:
    """A box's first labels: each site's own best, or without a block random ones."""
    assert settings.labels is not None
    unary = None if block is None else settings.unary(block, job.box)
    labels = first_labels(settings.root, job.box, settings.labels, unary)
    return Solved(labels.astype(label_dtype(settings.labels)), 0.0, 0)


def start_from(settings: Settings, job: Job, block: Any) -> Solved:
    """A box's first labels as they are given; nothing is known of them if it is not known how many labels there are."""
    x = np.asarray(block)
    if settings.labels is None:
        return Solved(x, 0.0, 0)
    check_labels(x, settings.labels, "x0" if settings.method else "x")
    return Solved(x.astype(label_dtype(settings.labels)), 0.0, 0)


def search_alone(settings: Settings, job: Job, block: Any, weights: Any) -> Solved:
    """Search a box by itself."""
    return _searched(settings, job, settings.tile(job, block, weights, None))


def search_given(
    settings: Settings, job: Job, block: Any, weights: Any, pieces: list[Solved], asked: list[Solved]
) -> Solved:
    """Search a box given the labels around it."""
    given = job.given(pieces)
    if job.asked is not None and not any(_reaches(*news, job.box) for news in zip(job.asked, asked, strict=True)):
        inside = tuple(slice(int(before), n - after) for (before, after), n in zip(job.halo, given.shape, strict=True))
        return Solved(given[inside].copy(), 0.0, 0)
    return _searched(settings, job, settings.tile(job, block, weights, given))


def _searched(settings: Settings, job: Job, tile: Tile) -> Solved:
    solved = solve_tile(tile, settings.method, settings.options, seed_of(settings.root, job.turn, job.box))
    if solved.status == INTERRUPTED:  # the search of a tile ends well at Ctrl-C, but the whole is to end
        raise KeyboardInterrupt
    return solved


def _reaches(box: Box, solved: Solved, other: Box) -> bool:
    """Whether what has changed in a box touches another one."""
    if solved.changed is None:
        return False
    sides = zip(box, solved.changed, strict=True)
    return touch(tuple(slice(part.start + k.start, part.start + k.stop) for part, k in sides), other)


def labels_of_box(job: Job, pieces: list[Solved]) -> np.ndarray:
    """The labels of a box as they are in the end."""
    return job.given(pieces)


Figures = tuple[float, int, float]


def figures_of(solved: Solved) -> Figures:
    """The finite part, the forbidden costs, and the bound of what was found in a box."""
    return solved.finite, solved.forbidden, solved.bound


def energy_of(settings: Settings, job: Job, block: Any, weights: Any, pieces: list[Solved]) -> Figures:
    """The energy of a box and of its edges to the boxes before it; without a block of these edges alone, and what they
    cost at least."""
    tile = settings.tile(job, block, weights, job.given(pieces))
    assert tile.given is not None
    for x in (tile.own, tile.given):
        check_labels(x, tile.labels, "x")
    return tile.between(tile.own) if block is None else (*tile.energy_parts(tile.own), math.nan)


def total(changes: list[Figures], tiles: list[Figures], between: list[Figures]) -> tuple[float, float]:
    """The energy of all, and the bound of the tiles by themselves and the edges between them, nan if there is none."""
    finite, forbidden, _ = zip(*changes, *tiles, *between, strict=True)
    fun = math.inf if sum(forbidden) else math.fsum(finite)
    if not between:
        return fun, math.nan
    least = math.fsum(figures[2] for figures in between)
    return fun, min(total_bound([*(figures[2] for figures in tiles), least]), fun)


def one_of(figures: tuple[float, float], number: int) -> np.float64:
    """One of the figures of `total`."""
    return np.float64(figures[number])


class Sources:
    """Which task has the labels of which box, the later before the earlier; found by place."""

    def __init__(self, shape: tuple[int, ...], tile: tuple[int, ...]) -> None:
        self._shape, self._tile = shape, tile
        self._cells: dict[tuple[int, ...], list[int]] = {}
        self._all: list[tuple[Box, Any]] = []

    def __iter__(self) -> Iterator[tuple[Box, Any]]:
        return iter(self._all)

    def add(self, box: Box, key: Any) -> None:
        """The labels of a box are now those of this task."""
        for cell in self._cells_of(box):
            self._cells.setdefault(cell, []).append(len(self._all))
        self._all.append((box, key))

    def job(self, box: Box, *, turn: int = 0, before: bool = True, after: bool = True) -> tuple[Job, list[Any]]:
        """A box with the sites before it and after it, and the tasks that have its labels and theirs."""
        halo = [(low and before, high and after) for low, high in halo_of(box, self._shape)]
        around, places, keys = grown(box, halo), [], []
        for owner, key in self.touching(box):
            common = [_common(a, b) for a, b in zip(around, owner, strict=True)]
            if all(part.start < part.stop for part in common):
                places.append((_moved(common, around), _moved(common, owner)))
                keys.append(key)
        return Job(box, halo, turn, places), keys

    def touching(self, box: Box) -> list[tuple[Box, Any]]:
        """The boxes that touch this one, and their tasks, in order."""
        cells = self._cells_of(grown(box, halo_of(box, self._shape)))
        near = sorted({number for cell in cells for number in self._cells.get(cell, ())})
        return [self._all[number] for number in near if touch(box, self._all[number][0])]

    def _cells_of(self, box: Box) -> Any:
        ranges = [range(part.start // n, (part.stop - 1) // n + 1) for part, n in zip(box, self._tile, strict=True)]
        return itertools.product(*ranges)


def _common(first: slice, second: slice) -> slice:
    return slice(max(first.start, second.start), min(first.stop, second.stop))


def _moved(box: list[slice], within: Box) -> Box:
    """A box as seen from the corner of another."""
    return tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(box, within, strict=True))
