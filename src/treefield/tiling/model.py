"""Grids larger than memory: costs are read or computed tile by tile, labels are kept on disk."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from treefield.models.edge_weights import as_weight_list, check_weight_shape
from treefield.models.grid import GridMRF, as_lattice
from treefield.models.pairwise import EdgeTables, Pairwise, as_pairwise
from treefield.protocols import Limits, Start
from treefield.results import MAPResult
from treefield.solvers.minimize import LABELLINGS
from treefield.tiling.array_protocols import (
    BlockCosts,
    Box,
    BoxCosts,
    LabelStore,
    ReadableArray,
    as_readable,
    check_shape,
    dask_chunks,
)
from treefield.tiling.stores import discard, label_store
from treefield.tiling.tiles import Tile, expand, halo_of, tile_boxes
from treefield.validation import as_byte_count, as_callable, as_count, as_real_array, check_labels

AT_ONCE = 2  # tiles that are searched at once, at most: they share the memory
MIN_SIDE = 4  # sites along a side of a tile
_STEP = 64  # default sides are multiples of this
_PROBE = 64  # sites along a side of the box whose costs show how much memory a site needs
_DEFAULT_LIMIT = 10**9


class TiledMRF:
    """A grid model of any size, of which only one tile at a time is in memory.

    `minimize`, `t_icm` and `t_ils` search it tile by tile with the sites around the tile fixed, so the energy never
    rises. Later tiles overlap the borders of earlier ones. Otherwise the model is that of `GridMRF` with neighbours
    along the axes. `treefield.dask.minimize` searches tiles in parallel.

    Parameters
    ----------
    unary : array or function
        The costs (M, N, L) or (P, M, N, L), as any array with a shape and a dtype that can be sliced: a NumPy memmap, a
        Zarr, HDF5 or Dask array. Or a function that takes a box, a tuple with one slice per axis of the grid, and
        returns its costs, labels along the last axis. With `costs`, an image (M, N) or (P, M, N).
    pairwise : Potts, TruncatedLinear, TruncatedQuadratic, Table, (L, L) array or function of two labels
    costs : function, optional
        ``costs(block)`` returns the costs of a block of the image, labels along a new last axis. Only the image is then
        stored and sent to other machines.
    shape : sequence of int
        The grid's shape, if `unary` is a function.
    n_labels : int
        The number of labels, if `unary` is a function or with `costs`.
    weights : sequence, optional
        One number or array per axis, as in `GridMRF`; arrays need only be sliceable.
    tile : int or one per axis, optional
        The sides of a tile, in sites: at most that, at least 4. By default the chunks of a Dask array, otherwise the
        largest that `memory_limit` allows.
    memory_limit : int or str
        Bytes, or text such as "500 MB", for the search of two tiles at once. Python and its libraries need some 250 MB
        besides.
    store : path or array, optional
        Where a search writes its labelling: a new .npy file or .zarr folder, or an array of the grid's shape with
        integers that hold all labels. By default a new array in memory. The next search overwrites an array. If the
        disk has no room for the labels, uncompressed, the search raises an error before it starts; if the disk fills up
        later, a new file is removed, but an array that was given keeps the labels written so far.

    Attributes
    ----------
    shape, size, n_labels, pairwise, weights : as in `GridMRF`.
    tile : the greatest length of a tile along each axis.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> image = np.random.default_rng(0).normal(np.indices((90, 90))[0] > 45, 0.4)
    >>> def costs(block):
    ...     return (block[..., None] - [0, 1]) ** 2
    >>> mrf = tf.TiledMRF(image, tf.Potts(0.5), costs=costs, n_labels=2, tile=32)
    >>> mrf
    TiledMRF(shape=(90, 90), labels=2, pairwise=Potts(0.5), tiles of (32, 32))
    >>> res = tf.minimize(mrf, rng=0)
    >>> res.x.dtype, res.fun == mrf.energy(res.x), bool(res.gap < 0.05)
    (dtype('uint8'), True, True)
    """

    def __init__(
        self,
        unary: ReadableArray | BoxCosts,
        pairwise: Pairwise | ArrayLike | Callable[[int, int], float],
        *,
        costs: BlockCosts | None = None,
        shape: int | Sequence[int] | None = None,
        n_labels: int | None = None,
        weights: Sequence[ReadableArray | ArrayLike] | np.ndarray | None = None,
        tile: int | Sequence[int] | None = None,
        memory_limit: float | str = _DEFAULT_LIMIT,
        store: str | os.PathLike[str] | LabelStore | None = None,
    ) -> None:
        self.unary, self.block_costs, self.store = unary, costs, store
        self.shape, self.n_labels = _as_extent(unary, costs, shape, n_labels)
        self.pairwise: Pairwise = as_pairwise(pairwise, self.n_labels)
        if isinstance(self.pairwise, EdgeTables):
            raise TypeError("EdgeTables do not go with tiles: give one table, and weights for its edges")
        self.pairwise.table(self.n_labels)  # raises if the table is of another size
        self.weights = _as_unread_weights(weights, self.shape)
        self._limit = as_byte_count(memory_limit, "memory_limit")
        self.tile = self._as_tile(tile)

    def __repr__(self) -> str:
        weights = "" if self.weights is None else ", weighted"
        sites = f"shape={self.shape}, labels={self.n_labels}"
        return f"TiledMRF({sites}, pairwise={self.pairwise!r}{weights}, tiles of {self.tile})"

    @property
    def size(self) -> int:
        """The number of sites."""
        return math.prod(self.shape)

    @property
    def tiles(self) -> list[Box]:
        """The boxes of all tiles, as tuples of slices."""
        return [box for boxes in tile_boxes(self.shape, self.tile) for box in boxes]

    def costs(self, box: Box) -> np.ndarray:
        """The unary costs of a box."""
        if isinstance(self.unary, ReadableArray):
            return block_unary(self.unary[box], box, self.block_costs, self.n_labels)
        return block_unary(self.unary(box), box, None, self.n_labels)

    def read_tile(
        self, box: Box, x: ReadableArray | None = None, *, has_after: bool = True, has_unary: bool = True
    ) -> Tile:
        """A box with its costs.

        With a labelling `x` the labels around the box are fixed; without `has_after` only those before it. Without
        `has_unary` the tile has only the edges to the sites around it.
        """
        is_fixed = x is not None
        halo = [(low and is_fixed, high and is_fixed and has_after) for low, high in halo_of(box, self.shape)]
        around = expand(box, halo)
        weights = None
        if self.weights is not None:
            weights = [
                np.asarray(weight[edge_box(axis, box, around)] if weight.shape else weight)
                for axis, weight in enumerate(self.weights)
            ]
        fixed = None if x is None else self.as_labels(x[around])
        return Tile(self.costs(box) if has_unary else None, self.n_labels, self.pairwise, weights, halo, fixed)

    def energy_parts(self, x: ReadableArray) -> tuple[float, int]:
        """The finite part of a labelling's energy and its number of forbidden costs, summed tile by tile."""
        sums: list[float] = []
        forbidden = 0
        for box in self.tiles:
            tile = self.read_tile(box, x, has_after=False)  # an edge belongs to the later one of its two tiles
            finite, count = tile.energy_parts(tile.own)
            sums.append(finite)
            forbidden += count
        return math.fsum(sums), forbidden

    def between_tiles(self, x: ReadableArray) -> list[tuple[float, int, float]]:
        """The cost of the edges between each tile and those before it: its finite part, the number of forbidden costs,
        and a lower bound, which holds for any labelling."""
        tiles = (self.read_tile(box, x, has_after=False, has_unary=False) for box in self.tiles)
        return [tile.between(tile.own) for tile in tiles]

    def energy(self, x: ReadableArray | ArrayLike) -> float:
        """The energy of a labelling, any array that can be sliced; inf if it contains a forbidden cost."""
        labelling = as_readable(x)
        check_shape(labelling, "x", self.shape)
        finite, forbidden = self.energy_parts(labelling)
        return math.inf if forbidden else finite

    def as_labels(self, values: ArrayLike, name: str = "x") -> np.ndarray:
        """Labels of a box as an array, or an error."""
        labels = np.asarray(values)
        if labels.dtype.kind not in "bui":
            raise TypeError(f"{name} must hold integer labels, got dtype {labels.dtype}")
        check_labels(labels, self.n_labels, name)
        return labels

    def search_tiles(
        self,
        method: str,
        x0: Start,
        rng: np.random.Generator,
        limits: Limits,
        options: Mapping[str, object],
    ) -> MAPResult:
        """Search tile by tile with a method that `minimize` knows, within checked limits."""
        from treefield.tiling.search import search_by_tiles

        return search_by_tiles(method, self, x0, rng, limits, options)

    def new_labelling(self) -> LabelStore:
        """The store for the labelling of a search."""
        return label_store(self.store, self.shape, self.n_labels)

    def discard_labelling(self) -> None:
        """Remove the file of a search that has failed."""
        discard(self.store)

    def _as_tile(self, tile: int | Sequence[int] | None) -> tuple[int, ...]:
        if tile is None:
            chunks = dask_chunks(self.unary) if isinstance(self.unary, ReadableArray) else None
            sides = [self._side] * len(self.shape) if chunks is None else [max(MIN_SIDE, *parts) for parts in chunks]
        else:
            sides = list(tile) if isinstance(tile, Sequence | np.ndarray) else [tile] * len(self.shape)
            if len(sides) != len(self.shape):
                raise ValueError(f"tile has {len(sides)} entries, but the grid has {len(self.shape)} axes")
            sides = [as_count(side, "tile", min(n, MIN_SIDE)) for side, n in zip(sides, self.shape, strict=True)]
        return tuple(min(side, n) for side, n in zip(sides, self.shape, strict=False))

    @functools.cached_property
    def _side(self) -> int:
        """The longest side of a tile that the memory limit allows."""
        probe = GridMRF(self.costs(tuple(slice(0, min(n, _PROBE)) for n in self.shape)), self.pairwise)
        need = probe.backend.search_bytes()["auto", "auto"] / probe.size
        # the costs as they are read, and with those of the edges around them absorbed
        need += self.n_labels * (probe.unary.itemsize + probe.backend.dtype.itemsize) + 4 * LABELLINGS
        side = int((self._limit / (AT_ONCE * need)) ** (1 / len(self.shape)))
        if side < MIN_SIDE:
            least = math.ceil(AT_ONCE * need * MIN_SIDE ** len(self.shape))
            raise ValueError(f"memory_limit = {self._limit} bytes is too little: the smallest tile needs {least}")
        return side - side % _STEP if side > _STEP else side


def block_unary(block: ArrayLike, box: Box, costs: BlockCosts | None, n_labels: int) -> np.ndarray:
    """The costs of a box, given them or, with a function `costs`, a block of an image; or an error."""
    unary = as_real_array(block if costs is None else costs(np.asarray(block)), "unary")
    expected = (*(part.stop - part.start for part in box), n_labels)
    if unary.shape != expected:
        source = "unary" if costs is None else "costs"
        raise ValueError(f"{source} gave shape {unary.shape} for the box {format_box(box)}, expected {expected}")
    return unary


def format_box(box: Box) -> str:
    """A box in the notation of slices, such as [0:3, 4:8]."""
    return "[" + ", ".join(f"{part.start}:{part.stop}" for part in box) + "]"


def _as_extent(
    unary: ReadableArray | BoxCosts, costs: BlockCosts | None, shape: int | Sequence[int] | None, n_labels: int | None
) -> tuple[tuple[int, ...], int]:
    """The grid's shape and the number of labels, or an error."""
    if costs is not None:
        as_callable(costs, "costs", "a block")
    if isinstance(unary, ReadableArray):
        sites, number = _array_extent(unary, costs is not None, n_labels)
        if shape is not None and tuple(np.atleast_1d(shape).tolist()) != sites:
            raise ValueError(f"shape is {shape}, but unary has shape {tuple(unary.shape)}: leave shape out")
    elif not callable(unary):
        raise TypeError(f"unary must be an array or a function of a box, got {type(unary).__name__}")
    elif costs is not None:
        raise TypeError("costs goes with an image: give the image itself, not a function of a box")
    elif shape is None or n_labels is None:
        raise TypeError("with a function for the unary, shape= and n_labels= must be given")
    else:
        sites = tuple(as_count(n, "shape", 1) for n in np.atleast_1d(shape).tolist())
        number = as_count(n_labels, "n_labels", 1)
    if len(sites) not in (2, 3):
        raise ValueError(f"the grid has shape {sites}, expected two or three axes, and labels along a last one")
    return sites, number


def _array_extent(array: ReadableArray, is_image: bool, n_labels: int | None) -> tuple[tuple[int, ...], int]:
    """The shape of the sites and the number of labels of an array of costs, or of an image."""
    if any(math.isnan(n) for n in array.shape):
        raise ValueError("unary has chunks of unknown size; call its compute_chunk_sizes() first")
    if np.dtype(array.dtype).kind not in "buif":
        raise TypeError(f"unary must hold real numbers, got dtype {array.dtype}")
    shape = tuple(int(n) for n in array.shape)
    if 0 in shape:
        raise ValueError(f"unary has shape {shape}: there must be at least one site and one label")
    if is_image:
        if n_labels is None:
            raise TypeError("with costs, n_labels= must be given: the number of labels")
        return shape, as_count(n_labels, "n_labels", 1)
    number = shape[-1] if shape else 0
    if n_labels is not None and n_labels != number:
        raise ValueError(f"n_labels is {n_labels}, but unary has shape {shape}: leave n_labels out")
    return shape[:-1], number


def _as_unread_weights(
    weights: Sequence[ReadableArray | ArrayLike] | np.ndarray | None, shape: tuple[int, ...]
) -> list[ReadableArray] | None:
    """The weights along each axis, of which only the shapes are checked, or an error."""
    if weights is None:
        return None
    lattice = as_lattice(shape, 1, False)
    arrays = [as_readable(weight) for weight in as_weight_list(weights, lattice)]
    for axis, (array, edges) in enumerate(zip(arrays, lattice.edge_shapes, strict=True)):
        check_weight_shape(tuple(array.shape), f"weights[{axis}]", edges, f" for sites of shape {shape}")
    return arrays


def edge_box(axis: int, box: Box, around: Box) -> Box:
    """The box, in the array of edges along an axis, of a box's edges, those to the sites in `around` included."""
    edges = list(box)
    edges[axis] = slice(around[axis].start, max(around[axis].stop - 1, around[axis].start))
    return tuple(edges)
