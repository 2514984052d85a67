"""Weights of edges: the same checks for grids, tiled grids, graphs and Ising models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from treefield.backends.grid.lattice import Lattice
from treefield.validation import as_real_array

Weight = TypeVar("Weight")


def as_weight_list(weights: Sequence[Weight] | np.ndarray, lattice: Lattice) -> list[Weight]:
    """The weights of each direction of edges of a grid, unread, or an error if their number is wrong."""
    shapes = ", ".join(map(str, lattice.edge_shapes))
    wanted = f"one number or array per {lattice.unit_name} is needed, of shapes {shapes}"
    if not isinstance(weights, list | tuple) and not (isinstance(weights, np.ndarray) and weights.ndim):
        raise TypeError(f"weights is {weights!r}, but {wanted}")
    if len(weights) != len(lattice.edge_shapes):
        raise ValueError(f"weights has {len(weights)} entries, but {wanted}")
    return list(weights)


def as_grid_weights(weights: Sequence[ArrayLike] | np.ndarray | None, lattice: Lattice) -> list[np.ndarray] | None:
    """One number or array for each direction of edges of a grid, or an error."""
    if weights is None:
        return None
    per_direction = zip(as_weight_list(weights, lattice), lattice.edge_shapes, strict=True)
    expected = f" for sites of shape {lattice.shape}"
    return [as_weights(value, f"weights[{k}]", shape, expected) for k, (value, shape) in enumerate(per_direction)]


def as_weights(value: ArrayLike, name: str, shape: tuple[int, ...], context: str = "") -> np.ndarray:
    """A finite number, or an array of finite numbers of the edges' shape, or an error."""
    array = as_real_array(value, name)
    check_weight_shape(array.shape, name, shape, context)
    if not np.isfinite(array).all():
        plural = name.split("[", maxsplit=1)[0]
        raise ValueError(
            f"{name} holds NaN or infinity; {plural} must be finite (0 for no edge; a table with +inf forbids pairs)"
        )
    return array


def check_weight_shape(actual: tuple[int, ...], name: str, shape: tuple[int, ...], context: str = "") -> None:
    """Raise unless weights are a single number or have the edges' shape."""
    if actual not in ((), shape):
        raise ValueError(f"{name} has shape {actual}, expected a number or {shape}{context}")
