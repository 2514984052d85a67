"""Grids larger than memory: costs are read or computed tile by tile, labels are kept on disk."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treefield.models.grid import GridMRF
from treefield.models.lattice import lattice
from treefield.models.pairwise import EdgeTables, Pairwise, as_pairwise
from treefield.models.stores import discard, label_store
from treefield.models.tiles import Box, Tile, cut, grown, halo_of
from treefield.validation import as_byte_count, as_count, as_real_array, check_labels

LEAST = 4  # sites along a side of a tile
_STEP = 64  # sides are multiples of this, if they are not given
_PROBE = 64  # sites along a side of the box whose costs tell what a site needs
_LABELLINGS = 12  # of 4 bytes a site, while a tile is searched
_DEFAULT_LIMIT = 10**9


class TiledMRF:
    """A grid model of any size: only what a tile needs is in memory.

    `minimize`, `t_icm` and `t_ils` search it tile by tile, the sites around a tile fixed: the energy never rises. Where
    one tile ends, another has its middle, so that no border stays a border. Everything else about the model is as in
    `GridMRF`: costs of any shape, neighbours along the axes.

    Parameters
    ----------
    unary : (M, N, L) or (P, M, N, L) array, or function
        Anything that has a shape and can be sliced: a NumPy memmap, a Zarr or HDF5 array, a Dask array. Or a function
        that is given a tuple of slices, one for each axis of the grid, and returns the costs of that box, labels along
        the last axis.
    pairwise : Potts, TruncatedLinear, TruncatedQuadratic, Table or function of two labels
    shape, labels : the grid's shape and the number of labels
        With a function for the unary; otherwise its shape tells.
    weights : sequence, optional
        One number or array per axis, as in `GridMRF`; arrays need only be sliceable.
    tile : int or one for each axis, optional
        How many sites a tile has along each axis, about; by default as many as `memory_limit` allows.
    memory_limit : int or str
        What the search of a tile may need: bytes, or text such as "500 MB". Beside it there are Python and its
        libraries, some 250 MB.
    store : path or array, optional
        Where a search keeps its labelling: a new .npy file or .zarr folder, or an array of the grid's shape whose
        integers hold all labels, which the next search overwrites. By default it is in memory, in the smallest integers
        that hold them. A disk without room for all labels, unpacked, is refused before the search; if it fills up
        later, what was found stays in an array that is given, and a new file is removed.

    Attributes
    ----------
    shape, size, labels, pairwise, weights : as in `GridMRF`.
    tile : how many sites a tile has along each axis, at most.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> image = np.random.default_rng(0).normal(np.indices((90, 90))[0] > 45, 0.4)
    >>> def costs(box):
    ...     return (image[box][..., None] - [0, 1]) ** 2
    >>> mrf = tf.TiledMRF(costs, tf.Potts(0.5), shape=image.shape, labels=2, tile=32)
    >>> mrf
    TiledMRF(shape=(90, 90), labels=2, pairwise=Potts(0.5), tiles of (32, 32))
    >>> res = tf.minimize(mrf, rng=0)
    >>> res.x.dtype, res.fun == mrf.energy(res.x), bool(res.gap < 0.05)
    (dtype('uint8'), True, True)
    """

    big = math.inf  # forbidden costs are counted beside the finite ones

    def __init__(
        self,
        unary: Any,
        pairwise: Any,
        *,
        shape: Sequence[int] | None = None,
        labels: int | None = None,
        weights: Any = None,
        tile: Any = None,
        memory_limit: Any = _DEFAULT_LIMIT,
        store: Any = None,
    ) -> None:
        self._unary = unary
        self.shape, self.labels = _extent(unary, shape, labels)
        self.pairwise: Pairwise = as_pairwise(pairwise, self.labels)
        if isinstance(self.pairwise, EdgeTables):
            raise TypeError("EdgeTables do not go with tiles: give one table, and weights for its edges")
        self.pairwise.table(self.labels)  # it must know all labels
        self.weights = _checked_weights(weights, self.shape)
        self._limit = as_byte_count(memory_limit, "memory_limit")
        self.tile = self._checked_tile(tile)
        self._store = store

    def __repr__(self) -> str:
        weights = "" if self.weights is None else ", weighted"
        sites = f"shape={self.shape}, labels={self.labels}"
        return f"TiledMRF({sites}, pairwise={self.pairwise!r}{weights}, tiles of {self.tile})"

    @property
    def size(self) -> int:
        """The number of sites."""
        return math.prod(self.shape)

    @property
    def tiles(self) -> list[Box]:
        """The boxes of all tiles, as tuples of slices."""
        return [box for lot in cut(self.shape, self.tile) for box in lot]

    def costs(self, box: Box) -> np.ndarray:
        """The unary costs of a box."""
        found = as_real_array(self._unary(box) if callable(self._unary) else self._unary[box], "unary")
        expected = (*(part.stop - part.start for part in box), self.labels)
        if found.shape != expected:
            raise ValueError(f"unary gave shape {found.shape} for the box {shown(box)}, expected {expected}")
        return found

    def read(self, box: Box, x: Any = None, *, after: bool = True, unary: bool = True) -> Tile:
        """A box and its costs, given the labels around it in `x` (but for those `after` it, if not), or by itself; or
        only what its edges to the others cost."""
        halo = [(low and x is not None, high and x is not None and after) for low, high in halo_of(box, self.shape)]
        around = grown(box, halo)
        weights = None
        if self.weights is not None:
            weights = [
                weight if np.ndim(weight) == 0 else np.asarray(weight[edges_of(axis, box, around)])
                for axis, weight in enumerate(self.weights)
            ]
        given = None if x is None else self.checked(np.asarray(x[around]))
        return Tile(self.costs(box) if unary else None, self.labels, self.pairwise, weights, halo, given)

    def energy_parts(self, x: Any) -> tuple[float, int]:
        """The finite part of a labelling's energy, and how many forbidden costs it holds; read tile by tile."""
        sums: list[float] = []
        forbidden = 0
        for box in self.tiles:
            tile = self.read(box, x, after=False)  # the edges to a tile after it are that tile's
            finite, count = tile.energy_parts(tile.own)
            sums.append(finite)
            forbidden += count
        return math.fsum(sums), forbidden

    def between_tiles(self, x: Any) -> tuple[float, int, float]:
        """What the edges from tile to tile cost: the finite part, how many are forbidden, and what they cost at least,
        whatever the labels."""
        costs = []
        for box in self.tiles:
            tile = self.read(box, x, after=False, unary=False)
            costs.append(tile.between(tile.own))
        finite, forbidden, least = zip(*costs, strict=True)
        return math.fsum(finite), sum(forbidden), math.fsum(least)

    def energy(self, x: Any) -> float:
        """The energy of a labelling, any array that can be sliced; inf if a forbidden cost is in it."""
        x = x if hasattr(x, "shape") else np.asarray(x)
        if tuple(np.shape(x)) != self.shape:
            raise ValueError(f"x has shape {tuple(np.shape(x))}, but the model's is {self.shape}")
        finite, forbidden = self.energy_parts(x)
        return math.inf if forbidden else finite

    def checked(self, labels: np.ndarray, name: str = "x") -> np.ndarray:
        """Labels of some box, or an error if they are none."""
        if labels.dtype.kind not in "bui":
            raise TypeError(f"{name} must hold integer labels, got dtype {labels.dtype}")
        check_labels(labels, self.labels, name)
        return labels

    def new_labelling(self) -> Any:
        """Where a search may keep its labelling."""
        return label_store(self._store, self.shape, self.labels)

    def discard_labelling(self) -> None:
        """Remove the file of a search that has failed."""
        discard(self._store)

    def _checked_tile(self, tile: Any) -> tuple[int, ...]:
        if tile is None:
            return tuple(min(self._side, n) for n in self.shape)
        sides = [tile] * len(self.shape) if np.ndim(tile) == 0 else list(tile)
        if len(sides) != len(self.shape):
            raise ValueError(f"tile has {len(sides)} entries, but the grid has {len(self.shape)} axes")
        return tuple(min(as_count(side, "tile", min(n, LEAST)), n) for side, n in zip(sides, self.shape, strict=True))

    @functools.cached_property
    def _side(self) -> int:
        """How long the sides of a tile may be."""
        probe = GridMRF(self.costs(tuple(slice(0, min(n, _PROBE)) for n in self.shape)), self.pairwise)
        need = max(probe.search_bytes().values()) / probe.size
        # the costs as they are read, and with what is around them
        need += self.labels * (probe.unary.itemsize + probe.dtype.itemsize) + 4 * _LABELLINGS
        side = int((self._limit / need) ** (1 / len(self.shape)))
        if side < LEAST:
            least = math.ceil(need * LEAST ** len(self.shape))
            raise ValueError(f"memory_limit = {self._limit} bytes is too little: the smallest tile needs {least}")
        return side - side % _STEP if side > _STEP else side


def shown(box: Box) -> str:
    """A box as one would write it."""
    return "[" + ", ".join(f"{part.start}:{part.stop}" for part in box) + "]"


def _extent(unary: Any, shape: Any, labels: Any) -> tuple[tuple[int, ...], int]:
    """The grid's shape and the number of labels, or an error."""
    if callable(unary):
        if shape is None or labels is None:
            raise TypeError("with a function for the unary, shape= and labels= must be given")
        sites = tuple(as_count(n, "shape", 1) for n in np.atleast_1d(shape).tolist())
        number = as_count(labels, "labels", 1)
    else:
        if not hasattr(unary, "shape") or not hasattr(unary, "__getitem__"):
            raise TypeError(f"unary must be an array or a function of a box, got {type(unary).__name__}")
        whole = tuple(int(n) for n in unary.shape)
        sites, number = whole[:-1], whole[-1] if whole else 0
        if (shape is not None and tuple(np.atleast_1d(shape).tolist()) != sites) or (
            labels is not None and labels != number
        ):
            raise ValueError(f"unary has shape {whole}, which says shape and labels: leave these out")
        if 0 in whole:
            raise ValueError(f"unary has shape {whole}: there must be at least one site and one label")
    if len(sites) not in (2, 3):
        raise ValueError(f"the grid has shape {sites}, expected two or three axes, and labels along a last one")
    return sites, number


def _checked_weights(weights: Any, shape: tuple[int, ...]) -> list[Any] | None:
    if weights is None:
        return None
    shapes = lattice(shape, 1, False).edge_shapes
    wanted = f"one number or array per axis is needed, of shapes {', '.join(map(str, shapes))}"
    several = isinstance(weights, list | tuple) or (isinstance(weights, np.ndarray) and weights.ndim)
    if not several or len(weights) != len(shapes):
        raise TypeError(f"weights is {type(weights).__name__}, but {wanted}")
    weights = [weight if hasattr(weight, "shape") else np.asarray(weight) for weight in weights]
    for axis, (weight, edges) in enumerate(zip(weights, shapes, strict=True)):
        if tuple(weight.shape) not in ((), edges):
            raise ValueError(f"weights[{axis}] has shape {tuple(weight.shape)}, expected {edges} for sites of {shape}")
    return weights


def edges_of(axis: int, box: Box, around: Box) -> Box:
    """Where the edges of a box along an axis are among all of them, with those to the sites around it."""
    place = list(box)
    place[axis] = slice(around[axis].start, max(around[axis].stop - 1, around[axis].start))
    return tuple(place)
