"""The search of a tiled grid as tasks that run anywhere: pure functions of blocks and of the results of other tasks."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from treefield.models.pairwise import Pairwise
from treefield.results import Status
from treefield.tiling.array_protocols import BlockCosts, Box
from treefield.tiling.model import block_unary
from treefield.tiling.tile_search import Solved, first_labels, seed_of, solve_tile, total_bound
from treefield.tiling.tiles import Tile, expand, halo_of, is_touching
from treefield.validation import check_labels, label_dtype

Key: TypeAlias = tuple[str, *tuple[int, ...]]  # of a task in Dask's graph
Halo: TypeAlias = list[tuple[bool, bool]]
Figures: TypeAlias = tuple[float, int, float]  # the finite part of an energy, its forbidden costs, and a bound


@dataclasses.dataclass(eq=False)
class Settings:
    """Settings that all tasks of a search share; `costs` is that of `TiledMRF`, `root` the seed."""

    pairwise: Pairwise
    n_labels: int
    costs: BlockCosts | None = None
    method: str = ""
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)
    root: int = 0

    def unary(self, block: ArrayLike, box: Box) -> np.ndarray:
        """The unary costs of a box, given its block of the model's array."""
        return block_unary(block, box, self.costs, self.n_labels)

    def tile(
        self, plan: BoxPlan, block: ArrayLike | None, weights: list[ArrayLike] | None, fixed: np.ndarray | None
    ) -> Tile:
        """A box with its costs; without a block only the edges to its halo."""
        unary = None if block is None else self.unary(block, plan.box)
        arrays = None if weights is None else [np.asarray(weight) for weight in weights]
        return Tile(unary, self.n_labels, self.pairwise, arrays, plan.halo, fixed)


@dataclasses.dataclass(eq=False)
class BoxPlan:
    """The task of a box.

    Attributes
    ----------
    box, halo
        The box, and for each axis whether there are sites before and after it whose labels are fixed.
    phase : int
        The number of the phase, which is part of the seed.
    places : list of (Box, Box)
        For each task that has some of the labels of the box and its halo: where they belong here, and where they are in
        that task's box.
    watched : list of Box, or None
        The box is searched only if labels near it have changed in one of these; None to search it in any case.
    """

    box: Box
    halo: Halo
    phase: int = 0
    places: list[tuple[Box, Box]] = dataclasses.field(default_factory=list)
    watched: list[Box] | None = None

    def gather_labels(self, pieces: list[Solved]) -> np.ndarray:
        """The labels of the box and its halo; 0 at corners, which have no edge to the box."""
        sides = [part.stop - part.start for part in expand(self.box, self.halo)]
        labels = np.zeros(sides, pieces[0].x.dtype)
        for piece, (here, there) in zip(pieces, self.places, strict=True):
            labels[here] = piece.x[there]
        return labels


def start_by_name(settings: Settings, plan: BoxPlan, block: ArrayLike | None) -> Solved:
    """The first labels of a box: those of least unary cost, or without a block random ones."""
    unary = None if block is None else settings.unary(block, plan.box)
    labels = first_labels(settings.root, plan.box, settings.n_labels, unary)
    return Solved(labels.astype(label_dtype(settings.n_labels)), 0.0, 0)


def start_from_labels(settings: Settings, plan: BoxPlan, block: ArrayLike) -> Solved:
    """The given first labels of a box, checked."""
    x = np.asarray(block)
    check_labels(x, settings.n_labels, "x0" if settings.method else "x")
    return Solved(x.astype(label_dtype(settings.n_labels)), 0.0, 0)


def search_alone(settings: Settings, plan: BoxPlan, block: ArrayLike, weights: list[ArrayLike] | None) -> Solved:
    """Search a box without the sites around it."""
    return _search(settings, plan, settings.tile(plan, block, weights, None))


def search_in_context(
    settings: Settings,
    plan: BoxPlan,
    block: ArrayLike,
    weights: list[ArrayLike] | None,
    pieces: list[Solved],
    watched: list[Solved],
) -> Solved:
    """Search a box given the labels around it."""
    fixed = plan.gather_labels(pieces)
    if plan.watched is not None and not any(
        _has_changed_near(box, solved, plan.box) for box, solved in zip(plan.watched, watched, strict=True)
    ):
        inside = tuple(slice(int(before), n - after) for (before, after), n in zip(plan.halo, fixed.shape, strict=True))
        return Solved(fixed[inside].copy(), 0.0, 0)
    return _search(settings, plan, settings.tile(plan, block, weights, fixed))


def _search(settings: Settings, plan: BoxPlan, tile: Tile) -> Solved:
    solved = solve_tile(tile, settings.method, settings.options, seed_of(settings.root, plan.phase, plan.box))
    if solved.status == Status.INTERRUPTED:  # `minimize` handles Ctrl-C, but here it must stop all tasks
        raise KeyboardInterrupt
    return solved


def _has_changed_near(box: Box, solved: Solved, other: Box) -> bool:
    """Whether the part of a box that has changed touches another box."""
    if solved.changed is None:
        return False
    sides = zip(box, solved.changed, strict=True)
    return is_touching(tuple(slice(part.start + k.start, part.start + k.stop) for part, k in sides), other)


def final_labels(plan: BoxPlan, pieces: list[Solved]) -> np.ndarray:
    """The labels of a box after all searches."""
    return plan.gather_labels(pieces)


def figures_of(solved: Solved) -> Figures:
    """The figures of a search without its labels."""
    return solved.finite, solved.forbidden, solved.bound


def box_energy(
    settings: Settings, plan: BoxPlan, block: ArrayLike | None, weights: list[ArrayLike] | None, pieces: list[Solved]
) -> Figures:
    """The energy of a box and of its edges to the boxes before it.

    Without a block only that of these edges, with a bound on it for any labels.
    """
    tile = settings.tile(plan, block, weights, plan.gather_labels(pieces))
    return tile.between(tile.own) if block is None else (*tile.energy_parts(tile.own), math.nan)


def total_figures(changes: list[Figures], tiles: list[Figures], between: list[Figures]) -> tuple[float, float]:
    """The energy of the grid, and its bound: that of the tiles alone plus the edges between them, nan without these."""
    finite, forbidden, _ = zip(*changes, *tiles, *between, strict=True)
    fun = math.inf if sum(forbidden) else math.fsum(finite)
    if not between:
        return fun, math.nan
    least = math.fsum(figures[2] for figures in between)
    return fun, min(total_bound([*(figures[2] for figures in tiles), least]), fun)


def pick_figure(figures: tuple[float, float], number: int) -> np.float64:
    """The energy (0) or the bound (1) of `total_figures`."""
    return np.float64(figures[number])


class LabelSources:
    """Which task has the labels of which box; later tasks replace the labels of earlier ones."""

    def __init__(self, shape: tuple[int, ...], tile: tuple[int, ...]) -> None:
        self._shape, self._tile = shape, tile
        self._cells: dict[tuple[int, ...], list[int]] = {}  # entries of `_all` by place, so that they are found fast
        self._all: list[tuple[Box, Key]] = []

    def __iter__(self) -> Iterator[tuple[Box, Key]]:
        return iter(self._all)

    def add(self, box: Box, key: Key) -> None:
        """Note that a task sets the labels of a box."""
        for cell in self._cells_of(box):
            self._cells.setdefault(cell, []).append(len(self._all))
        self._all.append((box, key))

    def plan(
        self, box: Box, *, phase: int = 0, has_before: bool = True, has_after: bool = True
    ) -> tuple[BoxPlan, list[Key]]:
        """The plan for a box with the halo before and after it, and the tasks that have the labels."""
        halo = [(low and has_before, high and has_after) for low, high in halo_of(box, self._shape)]
        around = expand(box, halo)
        places, keys = [], []
        for owner, key in self.find_touching(box):
            common = [_intersection(a, b) for a, b in zip(around, owner, strict=True)]
            if all(part.start < part.stop for part in common):
                places.append((_relative_to(around, common), _relative_to(owner, common)))
                keys.append(key)
        return BoxPlan(box, halo, phase, places), keys

    def find_touching(self, box: Box) -> list[tuple[Box, Key]]:
        """The boxes that touch this one, with their tasks, in order."""
        cells = self._cells_of(expand(box, halo_of(box, self._shape)))
        near = sorted({number for cell in cells for number in self._cells.get(cell, ())})
        return [self._all[number] for number in near if is_touching(box, self._all[number][0])]

    def _cells_of(self, box: Box) -> Iterator[tuple[int, ...]]:
        ranges = [range(part.start // n, (part.stop - 1) // n + 1) for part, n in zip(box, self._tile, strict=True)]
        return itertools.product(*ranges)


def _intersection(first: slice, second: slice) -> slice:
    return slice(max(first.start, second.start), min(first.stop, second.stop))


def _relative_to(origin: Box, box: list[slice]) -> Box:
    """A box in coordinates that start at the first corner of another."""
    return tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(box, origin, strict=True))
