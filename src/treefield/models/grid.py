"""Grid models: every site of a 2-D or 3-D grid is joined to its neighbours, along each axis or all around."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from treefield.backends.grid.backend import GridBackend
from treefield.backends.grid.lattice import Lattice, directions
from treefield.backends.grid.lattice_backend import LatticeBackend
from treefield.models.edge_weights import as_grid_weights
from treefield.models.pairwise import Pairwise, as_pairwise
from treefield.validation import as_labelling, as_real_array, smallest_dtype, warn_direct_caller

if TYPE_CHECKING:
    from treefield.models.graph import GraphMRF

# Shapes (C, H, W) that are probably C classes of an image, as a network has them, and not W labels.
_MAX_CLASSES = 64
_MIN_SIDE = 64  # pixels: smaller grids are no images
_MANY_LABELS = 256
_MAX_ASPECT = 2  # the height of an image relative to its width; a strip of a stereo pair has fewer disparities

_SHORTEST_RING = 3  # sites: with fewer, two sites would be joined twice, or one to itself


class GridMRF:
    """A Markov random field on a grid.

    Each label of each site has a cost, and so has each pair of labels of neighbouring sites.

    Parameters
    ----------
    unary : (M, N, L) or (P, M, N, L) array
        The cost of each label at each site, labels along the last axis. Any real or integer dtype; uint8, uint16,
        float32 and float64 are kept (and not copied if contiguous), others become the smallest of these that holds
        every value exactly. +inf forbids a label. Of a masked array, sites at which all labels are masked are no sites,
        as with `mask`.
    pairwise : (L, L) array, Potts, TruncatedLinear, TruncatedQuadratic, Table, EdgeTables or function
        The cost of two neighbouring labels, [label of the first site, label of the second]. A function of two labels is
        tabulated. The edge goes from the lower to the higher index.
    weights : sequence, optional
        One factor or array of factors per direction, of any sign: for (M, N) sites the shapes are (M-1, N) and
        (M, N-1), with connectivity 2 twice (M-1, N-1) more. An edge of weight 0 is no edge.
    connectivity : 1 or 2
        1 joins a site to its neighbours along the axes, 4 in 2-D and 6 in 3-D; 2 to all that touch it, 8 or 26. The
        directions are those along the axes, then the diagonals, down to the right, (1, 1), and down to the left,
        (1, -1). In 3-D they are (1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1), (1, 1, 1),
        (1, 1, -1), (1, -1, 1), (1, -1, -1). An edge's first site is the one from which such a step leads to the other.
    periodic : bool, or one bool per axis
        Whether the last site along an axis is joined to the first, by an edge from the last to the first. Arrays of
        weights then have as many entries along that axis as there are sites: entry k is for k and k + 1, the last for
        the last and the first. At least 3 sites are needed.
    mask : bool array of the grid's shape, optional
        True where there is a site. Elsewhere costs do not matter, there are no edges, and labels are 0 in results.

    Attributes
    ----------
    shape : the grid's shape.
    n_labels : the number of labels L.
    unary, pairwise, weights : as given, checked; the unary 0 where there is no site.
    mask : as given, None if every site exists.
    periodic : one bool per axis.
    connectivity : 1 or 2.
    backend : what answers the questions of solvers and moves, a `treefield.protocols.Backend`.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.array([[[0, 3], [2, 1]]]), tf.Potts(5))
    >>> mrf
    GridMRF(shape=(1, 2), labels=2, dtype=uint8, pairwise=Potts(5))
    >>> mrf.energy(np.array([[0, 0]])), mrf.energy(np.array([[0, 1]]))
    (2.0, 6.0)

    Eight neighbours, diagonal ones less close, on a disc:

    >>> i, j = np.indices((9, 9)) - 4
    >>> weights = (1, 1, 0.75, 0.75)
    >>> disc = tf.GridMRF(np.zeros((9, 9, 3)), tf.Potts(2), weights=weights, connectivity=2, mask=i**2 + j**2 <= 16)
    >>> disc
    GridMRF(shape=(9, 9), labels=3, dtype=float64, pairwise=Potts(2), weighted, 8 neighbours, 49 of 81 sites)
    >>> disc.energy(i > 0)
    35.0
    """

    def __init__(
        self,
        unary: ArrayLike,
        pairwise: Pairwise | ArrayLike | Callable[[int, int], float],
        *,
        weights: Sequence[ArrayLike] | np.ndarray | None = None,
        connectivity: int = 1,
        periodic: bool | Sequence[bool] = False,
        mask: ArrayLike | None = None,
    ) -> None:
        if isinstance(unary, np.ma.MaskedArray):
            unary, mask = split_masked(unary, mask)
        costs, self.mask = as_unary(unary, mask)
        if has_labels_first(costs.shape):
            warn_direct_caller(
                f"unary of shape {costs.shape} has {costs.shape[-1]} labels, along its last axis; if labels are its "
                "first axis, give np.moveaxis(unary, 0, -1)"
            )
        self.shape: tuple[int, ...] = costs.shape[:-1]
        self.n_labels: int = costs.shape[-1]
        self.pairwise: Pairwise = as_pairwise(pairwise, self.n_labels)
        lattice = as_lattice(self.shape, connectivity, periodic)
        self.periodic = lattice.periodic
        self.connectivity = lattice.connectivity
        self.weights = as_grid_weights(weights, lattice)
        kind = GridBackend if lattice.has_axis_edges_only else LatticeBackend
        self.backend: GridBackend | LatticeBackend = kind(costs, self.pairwise, lattice, self.weights, self.mask)

    def __repr__(self) -> str:
        weights = "" if self.weights is None else ", weighted"
        lattice = self.backend.lattice
        neighbours = "" if lattice.has_axis_edges_only else f", {lattice.neighbours_text}"
        mask = "" if self.mask is None else f", {np.count_nonzero(self.mask)} of {self.size} sites"
        sites = f"shape={self.shape}, labels={self.n_labels}, dtype={self.unary.dtype}"
        return f"GridMRF({sites}, pairwise={self.pairwise!r}{weights}{neighbours}{mask})"

    @property
    def unary(self) -> np.ndarray:
        """The cost of each label at each site."""
        return self.backend.unary

    @property
    def size(self) -> int:
        """The number of sites."""
        return math.prod(self.shape)

    def energy(self, x: ArrayLike) -> float:
        """The energy of a labelling, summed in float64; inf if it contains a forbidden cost.

        Examples
        --------
        >>> import numpy as np, treefield as tf
        >>> tf.GridMRF(np.zeros((2, 2, 3)), tf.TruncatedLinear(1.5, cutoff=2)).energy([[0, 1], [2, 2]])
        6.0
        """
        finite, forbidden = self.backend.energy_parts(as_labelling(x, self.backend, copy=False))
        return math.inf if forbidden else finite

    def with_unary(self, unary: ArrayLike) -> GridMRF:
        """The same model with other unary costs of the same shape."""
        return GridMRF(
            unary,
            self.pairwise,
            weights=self.weights,
            connectivity=self.connectivity,
            periodic=self.periodic,
            mask=self.mask,
        )

    def to_graph(self) -> GraphMRF:
        """The same model as a graph: site (i, j) of an (M, N) grid is number i * N + j, and energies are the same.

        Examples
        --------
        >>> import numpy as np, treefield as tf
        >>> mrf = tf.GridMRF(np.zeros((2, 3, 4)), tf.Potts(1))
        >>> mrf.to_graph()
        GraphMRF(sites=6, edges=7, labels=4, pairwise=Potts(1))
        """
        from treefield.models.graph import GraphMRF

        edges, weights, tables = self.backend.graph_edges()
        pairwise = self.pairwise if tables is None else tables
        return GraphMRF(self.unary.reshape(-1, self.n_labels), edges, pairwise, weights=weights)


def as_lattice(shape: tuple[int, ...], connectivity: int, periodic: bool | Sequence[bool]) -> Lattice:
    """The lattice of a grid, or an error."""
    if isinstance(connectivity, bool) or not isinstance(connectivity, numbers.Integral) or connectivity not in (1, 2):
        raise ValueError(
            "connectivity must be 1 (neighbours along the axes) or 2 (all that touch, diagonally too), "
            f"got {connectivity!r}"
        )
    steps = directions(len(shape), int(connectivity))
    return Lattice(shape, steps, as_periodic(periodic, shape))


def as_periodic(periodic: bool | Sequence[bool], shape: tuple[int, ...]) -> tuple[bool, ...]:
    """Whether each axis of a grid is periodic, or an error."""
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


def as_unary(unary: ArrayLike, mask: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The unary in the dtype that is kept, 0 where there is no site, and the mask; or an error."""
    array = as_real_array(unary, "unary")
    if array.ndim not in (3, 4):
        hint = "; a chain of N sites is a (1, N, L) grid" if array.ndim == 2 else ""
        raise ValueError(f"unary has shape {array.shape}, expected (M, N, labels) or (P, M, N, labels){hint}")
    if array.size == 0:
        raise ValueError(f"unary has shape {array.shape}: there must be at least one site and one label")
    exists = _as_mask(mask, array.shape[:-1])
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


def has_labels_first(shape: tuple[int, ...]) -> bool:
    """Whether costs of this shape are probably (labels, M, N): few rows, and labels as many as an image has columns.

    One row is a chain. Rows of a stereo pair have fewer disparities than half of their columns.
    """
    if len(shape) != 3:
        return False
    first, middle, last = shape
    is_image = max(4 * first, _MIN_SIDE) <= middle < _MAX_ASPECT * last
    return 2 <= first < _MAX_CLASSES and is_image and last > _MANY_LABELS


def split_masked(unary: np.ma.MaskedArray, mask: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The costs of a masked array, and the sites that it has: those where not every label is masked; or an error."""
    absent = np.ma.getmaskarray(unary)
    if not absent.any():
        return unary.data, None if mask is None else np.asarray(mask)
    if mask is not None:
        raise ValueError("unary is a masked array and mask is given as well: give one of them")
    missing = np.asarray(absent.all(axis=-1))
    if (absent.any(axis=-1) != missing).any():
        count = int((absent.any(axis=-1) & ~missing).sum())
        raise ValueError(
            f"unary has {count} sites at which some labels are masked and some are not; forbid a label by a cost of "
            "+inf, as in unary.filled(np.inf)"
        )
    return unary.data, np.logical_not(missing)


def _as_mask(mask: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """A read-only copy of a mask, None if every site exists; or an error."""
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


def edge_shape(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape of the edges along one axis of a grid."""
    return tuple(n - (a == axis) for a, n in enumerate(shape))
