"""Ground states of Ising models on grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps.keywords import IsingKeywords
from treefield.apps.problem import Problem, check_options
from treefield.models.edge_weights import as_weights
from treefield.models.grid import GridMRF, as_periodic, edge_shape
from treefield.models.quadratic_form import linear_unary, product_table
from treefield.protocols import Callback, Seed
from treefield.results import MAPResult
from treefield.solvers.loop import Timer
from treefield.validation import as_real_array

Couplings = float | np.ndarray | Sequence[ArrayLike]


@overload
def ising(
    fields: ArrayLike,
    couplings: Couplings,
    *,
    full_output: Literal[False] = False,
    **keywords: Unpack[IsingKeywords],
) -> np.ndarray: ...
@overload
def ising(
    fields: ArrayLike, couplings: Couplings, *, full_output: Literal[True], **keywords: Unpack[IsingKeywords]
) -> tuple[np.ndarray, MAPResult]: ...
@overload
def ising(
    fields: ArrayLike, couplings: Couplings, *, full_output: bool, **keywords: Unpack[IsingKeywords]
) -> np.ndarray | tuple[np.ndarray, MAPResult]: ...
def ising(
    fields: ArrayLike,
    couplings: Couplings,
    *,
    periodic: bool | Sequence[bool] = False,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    full_output: bool = False,
    **options: object,
) -> np.ndarray | tuple[np.ndarray, MAPResult]:
    """Find spins of low energy: the sum of h_i s_i over the sites and of J_ij s_i s_j over neighbours.

    The signs are those of dimod and D-Wave's samplers: with a negative coupling neighbours tend to agree, with a
    negative field a spin tends to be +1.

    Parameters
    ----------
    fields : (N,), (M, N) or (P, M, N) array
        The field h at every site.
    couplings : number or sequence
        J: one number for all edges, or one number or array per axis. For (M, N) sites the shapes are (M-1, N) and
        (M, N-1).
    periodic : bool, or one bool per axis
        Whether the last spin along an axis is a neighbour of the first. Arrays of couplings then have as many entries
        along that axis as there are spins, the last one for the last and the first. At least 3 spins are needed.
    time_limit, tol, callback, rng
        As in `minimize`, whose other keywords are accepted as well; the default of `tol` is 1e-3. Spin glasses have no
        tight bound: without a limit the search ends when it has not improved for long.
    full_output : bool
        Return the result of `minimize` as well.

    Returns
    -------
    spins : int8 array of -1 and +1
    res : MAPResult
        Only with `full_output`. Its labels are 0 for -1 and 1 for +1; `mrf` is the model.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> tf.ising(np.array([[-1.0, 0.2], [0.2, 0.2]]), couplings=-1, rng=0)
    array([[1, 1],
           [1, 1]], dtype=int8)
    >>> tf.ising(np.array([-0.1, 0, 0, 0]), couplings=1, periodic=True, rng=0)  # a ring
    array([ 1, -1,  1, -1], dtype=int8)
    """
    check_options(ising, options)
    problem = ising_problem(fields, couplings, periodic)
    return problem.solve(full_output, time_limit=time_limit, tol=tol, callback=callback, rng=rng, **options)


def ising_problem(fields: ArrayLike, couplings: Couplings, periodic: bool | Sequence[bool] = False) -> Problem[GridMRF]:
    """The problem that `ising` solves."""
    timer = Timer()
    h = as_real_array(fields, "fields")
    shape = h.shape
    if h.ndim not in (1, 2, 3) or h.size == 0:
        raise ValueError(f"fields has shape {shape}, expected (N,), (M, N) or (P, M, N) with at least one site")
    if not np.isfinite(h).all():
        raise ValueError("fields holds NaN or infinity; every field must be a number")
    rings = as_periodic(periodic, shape)
    weights = _as_couplings(couplings, shape, rings)
    if h.ndim == 1:  # a chain is a grid of one row
        rings = (False, *rings)
        h, weights = h[None], [np.array(0), weights[0][None] if weights[0].ndim else weights[0]]
    if h.dtype.kind != "f":
        h = h.astype(np.float64)
    mrf = GridMRF(linear_unary(h, "SPIN"), product_table("SPIN"), weights=weights, periodic=rings)
    return Problem(mrf, lambda x: (2 * x - 1).astype(np.int8).reshape(shape), preparation=timer.seconds())


def _as_couplings(couplings: Couplings, shape: tuple[int, ...], periodic: tuple[bool, ...]) -> list[np.ndarray]:
    """The couplings along each axis: an array of one entry per edge, or a single number."""
    if isinstance(couplings, list | tuple) or (isinstance(couplings, np.ndarray) and couplings.ndim):
        per_axis: list[ArrayLike] = list(couplings)
    else:
        per_axis = [cast(float, couplings)] * len(shape)
    if len(per_axis) != len(shape):
        raise ValueError(
            f"couplings has {len(per_axis)} entries, expected one for each of the {len(shape)} axes of fields"
        )
    sites = f" for sites of shape {shape}"
    return [
        as_weights(coupling, f"couplings[{axis}]", shape if periodic[axis] else edge_shape(shape, axis), sites)
        for axis, coupling in enumerate(per_axis)
    ]
