"""Ground states of Ising models on grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treefield.apps.problem import Problem
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Table, edge_shape
from treefield.results import MAPResult
from treefield.validation import as_real_array


def ising(
    fields: Any,
    couplings: Any,
    *,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callable[[MAPResult], Any] | None = None,
    rng: Any = None,
    full_output: bool = False,
    **options: Any,
) -> Any:
    """Find spins of low energy: the sum of h_i s_i over the sites and of J_ij s_i s_j over neighbours.

    The signs are those of dimod and D-Wave's samplers: a negative coupling makes neighbours alike, a negative field
    makes a spin +1.

    Parameters
    ----------
    fields : (N,), (M, N) or (P, M, N) array
        The field h at every site.
    couplings : number or sequence
        J: one number for all, or one number or array per axis: for (M, N) sites the shapes are (M-1, N) and (M, N-1).
    time_limit, tol, callback, rng
        As in `minimize`, whose other keywords may be given, too; the default of `tol` is 1e-3. Spin glasses have no
        tight bound: without a limit the search ends when it has long gained nothing.
    full_output : bool
        Whether to return the result of `minimize`, too.

    Returns
    -------
    spins : int8 array of -1 and +1
    res : MAPResult
        With `full_output`. Its labels are 0 for -1 and 1 for +1; `mrf` is the model.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> tf.ising(np.array([[-1.0, 0.2], [0.2, 0.2]]), couplings=-1, rng=0)
    array([[1, 1],
           [1, 1]], dtype=int8)
    """
    problem = ising_problem(fields, couplings)
    return problem.solve(full_output, time_limit=time_limit, tol=tol, callback=callback, rng=rng, **options)


def ising_problem(fields: Any, couplings: Any) -> Problem:
    """The problem that `ising` solves."""
    h = as_real_array(fields, "fields")
    shape = h.shape
    if h.ndim not in (1, 2, 3) or h.size == 0:
        raise ValueError(f"fields has shape {shape}, expected (N,), (M, N) or (P, M, N) with at least one site")
    if not np.isfinite(h).all():
        raise ValueError("fields holds NaN or infinity; every field must be a number")
    per_axis = list(couplings) if isinstance(couplings, list | tuple) or np.ndim(couplings) else [couplings] * h.ndim
    if len(per_axis) != h.ndim:
        raise ValueError(f"couplings has {len(per_axis)} entries, expected one for each of the {h.ndim} axes of fields")
    per_axis = [_checked_coupling(coupling, shape, axis) for axis, coupling in enumerate(per_axis)]
    if h.ndim == 1:  # a chain is a grid of one row
        h, per_axis = h[None], [0, per_axis[0][None] if per_axis[0].ndim else per_axis[0]]
    if h.dtype.kind != "f":
        h = h.astype(np.float64)
    mrf = GridMRF(np.stack([-h, h], axis=-1), Table([[1, -1], [-1, 1]]), weights=per_axis)
    return Problem(mrf, lambda x: (2 * x - 1).astype(np.int8).reshape(shape))


def _checked_coupling(coupling: Any, shape: tuple[int, ...], axis: int) -> np.ndarray:
    array = as_real_array(coupling, f"couplings[{axis}]")
    if array.ndim and array.shape != edge_shape(shape, axis):
        expected = f"expected a number or {edge_shape(shape, axis)} for sites of shape {shape}"
        raise ValueError(f"couplings[{axis}] has shape {array.shape}, {expected}")
    if not np.isfinite(array).all():
        raise ValueError(f"couplings[{axis}] holds NaN or infinity; couplings must be finite (0 for no edge)")
    return array
