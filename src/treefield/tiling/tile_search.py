"""The search of one tile, and how the results of tiles add up."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from treefield.backends.grid.ribbons import widest_ribbon
from treefield.results import MAPResult, Status
from treefield.tiling.array_protocols import Box
from treefield.tiling.tiles import Tile
from treefield.validation import label_dtype

_ROUNDING = 1e-12  # relative to a tile's energy


@dataclasses.dataclass
class Solved:
    """The result of the search of a tile.

    Attributes
    ----------
    x : array
        The labels of the box.
    finite, forbidden : float, int
        By how much they change the finite part of the energy and the number of forbidden costs; for a tile that was
        searched alone, the energy itself.
    bound : float
        A lower bound on the energy of a tile that was searched alone; otherwise nan.
    changed : Box or None
        The part of the box where labels have changed.
    status : Status
        Why the search ended.
    """

    x: np.ndarray
    finite: float
    forbidden: int
    bound: float = math.nan
    changed: Box | None = None
    status: Status = Status.CONVERGED


def solve_tile(tile: Tile, method: str, options: Mapping[str, object], seed: Sequence[int]) -> Solved:
    """Search a tile by a method of `minimize`.

    With fixed labels around the tile, new labels are taken only if they lower the energy by more than rounding.
    Otherwise a search could alternate for ever between labellings of equal energy.
    """
    from treefield.solvers.minimize import minimize

    search: Callable[..., MAPResult] = minimize
    dtype, options = label_dtype(tile.n_labels), dict(options, method=method, rng=np.random.default_rng(seed))
    width = options.get("width")
    if isinstance(width, int):  # small tiles have narrower ribbons
        options["width"] = min(width, widest_ribbon(tile.model.backend))
    if tile.fixed is None:
        res = search(tile.model, **options)
        return Solved(res.x.astype(dtype), *tile.model.backend.energy_parts(res.x), res.lower_bound, None, res.status)
    own = tile.own
    before = tile.energy_parts(own)
    res = search(tile.absorbed(), own, **options)
    after = tile.energy_parts(res.x)
    if after[1] > before[1] or (after[1] == before[1] and after[0] >= before[0] - _ROUNDING * abs(before[0])):
        return Solved(own.astype(dtype), 0.0, 0, status=res.status)
    places = np.nonzero(res.x != own)
    changed = tuple(slice(int(k.min()), int(k.max()) + 1) for k in places) if places[0].size else None
    finite, forbidden = after[0] - before[0], after[1] - before[1]
    return Solved(res.x.astype(dtype), finite, forbidden, changed=changed, status=res.status)


def take_cheapest_labels(tile: Tile) -> Solved:
    """Give each site of a tile its label of least unary cost."""
    x = tile.model.backend.best_labels()
    return Solved(x.astype(label_dtype(tile.n_labels)), *tile.model.backend.energy_parts(x), bound=-math.inf)


def seed_of(root: int, phase: int, box: Box) -> list[int]:
    """The seed for a box in a phase. It does not depend on the order of the searches."""
    return [root, phase, *(part.start for part in box)]


def first_labels(root: int, box: Box, n_labels: int, unary: np.ndarray | None) -> np.ndarray:
    """The labels that a box starts with: those of least unary cost, or without costs random ones."""
    if unary is not None:
        return unary.argmin(axis=-1)
    rng = np.random.default_rng(seed_of(root, 0, box))
    return rng.integers(n_labels, size=[part.stop - part.start for part in box])


def total_bound(bounds: list[float]) -> float:
    """A float64 that is not above the exact sum of the bounds."""
    total = math.fsum(bounds)
    is_exact = all(number.is_integer() for number in (total, *bounds))
    return total if is_exact else math.nextafter(total, -math.inf)
