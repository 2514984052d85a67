"""What makes a grid, checked: its sites and their costs, which of them are neighbours, and arrays with an entry for
each of their edges."""

from __future__ import annotations

import itertools
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from treefield.validation import as_real_array, smallest_dtype

_SHORTEST_RING = 3  # sites: of fewer, two would be joined twice, or one to itself


def directions(dimensions: int, connectivity: int) -> list[tuple[int, ...]]:
    """The steps from a site to half of its neighbours, the other half being the same steps backwards: along the axes in
    their order; then, with connectivity 2, along two axes at once, and in 3-D along three.

    Each kind goes by its axes, the first axes first, and forwards before backwards: (1, 1), (1, -1) in 2-D; (1, 1, 0),
    (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1), (1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1) in 3-D. The
    first step that is not 0 is forwards, so that edges go from the lower site in raster order to the higher.
    """
    forwards = [step for step in itertools.product((1, 0, -1), repeat=dimensions) if step > (0,) * dimensions]
    kinds = sorted(forwards, key=lambda step: (sum(map(abs, step)), [-abs(s) for s in step], [-s for s in step]))
    return kinds[:dimensions] if connectivity == 1 else kinds


@dataclass(frozen=True)
class Lattice:
    """The edges of a grid, direction by direction.

    Those of one direction are an array with one entry fewer than sites along every axis that the direction steps along,
    as many as sites if that axis is periodic: entry k is for k and k + 1, the last one for the last site and the first.
    """

    shape: tuple[int, ...]
    steps: list[tuple[int, ...]]
    periodic: tuple[bool, ...]

    @property
    def plain(self) -> bool:
        """Whether neighbours are those along the axes, and none beyond the border."""
        return len(self.steps) == len(self.shape) and not any(self.periodic)

    @property
    def edge_shapes(self) -> list[tuple[int, ...]]:
        """The shape of the edges of each direction."""
        axes = list(zip(self.shape, self.periodic, strict=True))
        return [
            tuple(n - (s != 0 and not ring) for s, (n, ring) in zip(step, axes, strict=True)) for step in self.steps
        ]

    def ends(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The flat indices of the first and of the second site of every edge of a direction."""
        places = [np.arange(n) for n in self.edge_shapes[number]]
        axes = list(zip(places, self.steps[number], self.shape, strict=True))
        first = np.ix_(*((k + (step < 0)) % n for k, step, n in axes))
        second = np.ix_(*((k + (step > 0)) % n for k, step, n in axes))
        return np.ravel_multi_index(first, self.shape), np.ravel_multi_index(second, self.shape)

    @property
    def called(self) -> str:
        """What the edges' arrays are one for each of."""
        axes = len(self.steps) == len(self.shape)
        return "axis" if axes else f"direction, {', '.join(map(str, self.steps))}"


def lattice(shape: tuple[int, ...], connectivity: Any, periodic: Any) -> Lattice:
    """The lattice that a user asks for, or an error."""
    if isinstance(connectivity, bool) or not isinstance(connectivity, numbers.Integral) or connectivity not in (1, 2):
        raise ValueError(
            "connectivity must be 1 (neighbours along the axes) or 2 (all that touch, diagonally too), "
            f"got {connectivity!r}"
        )
    steps = directions(len(shape), int(connectivity))
    return Lattice(shape, steps, _checked_periodic(periodic, shape))


def _checked_periodic(periodic: Any, shape: tuple[int, ...]) -> tuple[bool, ...]:
    flags = np.asarray(periodic)
    if flags.dtype != np.bool_ or flags.ndim > 1:
        raise TypeError(f"periodic must be True or False, or one of these for each axis, got {periodic!r}")
    if flags.ndim == 1 and len(flags) != len(shape):
        raise ValueError(f"periodic has {len(flags)} entries, but the grid has {len(shape)} axes")
    rings = tuple(np.broadcast_to(flags, len(shape)).tolist())
    for axis, (ring, n) in enumerate(zip(rings, shape, strict=True)):
        if ring and n < _SHORTEST_RING:
            raise ValueError(
                f"axis {axis} has {n} sites, too few to be periodic: at least {_SHORTEST_RING} are needed; "
                "say which axes are, as in periodic=(True, False)"
            )
    return rings


def checked_unary(unary: Any, mask: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """The unary as it is kept, 0 where there is no site, and the mask."""
    array = as_real_array(unary, "unary")
    if array.ndim not in (3, 4):
        hint = "; a chain of N sites is a (1, N, L) grid" if array.ndim == 2 else ""
        raise ValueError(f"unary has shape {array.shape}, expected (M, N, labels) or (P, M, N, labels){hint}")
    if array.size == 0:
        raise ValueError(f"unary has shape {array.shape}: there must be at least one site and one label")
    exists = _checked_mask(mask, array.shape[:-1])
    if exists is not None:
        array = np.where(exists[..., None], array, array.dtype.type(0))
    array = np.ascontiguousarray(array, dtype=smallest_dtype(array, "unary"))
    if array.dtype.kind == "f":
        low = array.min()
        if np.isnan(low):
            raise ValueError("unary holds NaN; every cost must be a number (use +inf for a forbidden label)")
        if low == -np.inf:
            raise ValueError("unary holds -inf; costs may be +inf (forbidden) but not -inf")
    return array, exists


def _checked_mask(mask: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """A copy of a mask, None if there is none or if every site exists, or an error."""
    if mask is None:
        return None
    array = np.array(mask, order="C")
    if array.dtype != np.bool_:
        raise TypeError(f"mask must be an array of bool, True where there is a site, got dtype {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"mask has shape {array.shape}, expected {shape}, that of the grid")
    if not array.any():
        raise ValueError("mask is False everywhere: there must be at least one site")
    array.flags.writeable = False
    return None if array.all() else array


def checked_weights(weights: Any, edges: Lattice) -> list[np.ndarray] | None:
    """One number or array per direction, or an error."""
    if weights is None:
        return None
    shapes = edges.edge_shapes
    wanted = f"one number or array per {edges.called} is needed, of shapes {', '.join(map(str, shapes))}"
    if not isinstance(weights, list | tuple) and not (isinstance(weights, np.ndarray) and weights.ndim):
        raise TypeError(f"weights is {weights!r}, but {wanted}")
    if len(weights) != len(shapes):
        raise ValueError(f"weights has {len(weights)} entries, but {wanted}")
    checked = []
    for number, (weight, shape) in enumerate(zip(weights, shapes, strict=True)):
        array = as_real_array(weight, f"weights[{number}]")
        if array.ndim and array.shape != shape:
            expected = f"expected {shape} for sites of shape {edges.shape}"
            raise ValueError(f"weights[{number}] has shape {array.shape}, {expected}")
        if not np.isfinite(array).all():
            raise ValueError(f"weights[{number}] holds NaN or infinity; weights must be finite (0 for no edge)")
        checked.append(array)
    return checked


def masked_weights(weights: list[Any], edges: Lattice, mask: np.ndarray) -> list[np.ndarray]:
    """The float64 weight of every edge, 0 where an end does not exist."""
    exists = mask.reshape(-1)
    masked = []
    for number, weight in enumerate(weights):
        first, second = edges.ends(number)
        masked.append(np.where(exists[first] & exists[second], np.asarray(weight, np.float64), 0.0))
    return masked
