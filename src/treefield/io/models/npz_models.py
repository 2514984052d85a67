"""Models as files that anyone with NumPy can make and read.

An .npz file of plain arrays:

- `unary`: (M, N, L) or (P, M, N, L), the cost of each label at each site;
- optionally `weights_0`, `weights_1` (and `weights_2`): the edge weights of each axis, a number or an array each;
- optionally `connectivity`, `periodic` and `mask`, as in `GridMRF`; with connectivity 2 there are weights and tables
  for every direction, up to `weights_3` in 2-D and `weights_12` in 3-D;
- one of
  - `potts`: the weight,
  - `linear` or `quadratic`: weight and cutoff, and optionally also `values`, the position of each label,
  - `table`: V, (L, L),
  - `tables_0`, `tables_1` (and `tables_2`): a table for every edge of each axis, edges + (L, L);
- optionally `format`: the text "treefield model 1", which `save_model` writes.

So `np.savez("model.npz", unary=costs, potts=20.0)` makes a model. `npz_graphs` describes the files of graphs,
which have an array `edges`.
"""

from __future__ import annotations

import os
import pathlib
import re
from typing import Any

import numpy as np

from treefield.io.files import explain_read_errors, write_atomically
from treefield.io.models.npz_graphs import GRAPH_ONLY, graph_arrays, graph_in
from treefield.io.numpy_files import read_npz, write_npz
from treefield.io.paths import as_input_path, as_path, as_text
from treefield.models.graph import GraphMRF
from treefield.models.grid import GridMRF
from treefield.models.pairwise import EdgeTables, Pairwise, Potts, Table, TruncatedLinear, TruncatedQuadratic

_FORMAT = "treefield model 1"
_TRUNCATED = {"linear": TruncatedLinear, "quadratic": TruncatedQuadratic}
_KNOWN = re.compile(
    r"format|unary|weights_\d\d?|connectivity|periodic|mask|potts|linear|quadratic|values|table|tables_\d\d?"
)


def save_model(path: str | os.PathLike[str], mrf: GridMRF | GraphMRF, *, force: bool = False) -> None:
    """Write a model to an .npz file, from which `load_model` makes one of equal energies.

    `force` replaces a file that is there. `treefield.io.models.npz_models` describes the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, treefield as tf, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.npz")
    ...     treefield.io.save_model(path, tf.GridMRF(np.zeros((2, 3, 4)), tf.Potts(5)))
    ...     treefield.io.load_model(path)
    GridMRF(shape=(2, 3), labels=4, dtype=float64, pairwise=Potts(5))
    """
    path = as_path(path)
    if not isinstance(mrf, GridMRF | GraphMRF):
        raise TypeError(f"mrf must be a GridMRF or a GraphMRF, got {type(mrf).__name__}; only these are saved")
    check_model_path(path)
    if isinstance(mrf, GraphMRF):
        arrays = {"format": np.array(_FORMAT), **graph_arrays(mrf, _pairwise_arrays)}
    else:
        arrays = {"format": np.array(_FORMAT), "unary": mrf.unary, **_pairwise_arrays(mrf.pairwise)}
        for axis, weight in enumerate(mrf.weights or []):
            arrays[f"weights_{axis}"] = np.asarray(weight)
        if not mrf.backend.lattice.has_axis_edges_only:
            arrays |= {"connectivity": np.array(mrf.connectivity), "periodic": np.array(mrf.periodic)}
        if mrf.mask is not None:
            arrays["mask"] = mrf.mask
    with write_atomically(path, force=force) as temporary:
        write_npz(temporary, arrays)


def check_model_path(path: pathlib.Path) -> None:
    """Refuse a name that models do not have."""
    if path.suffix.lower() != ".npz":
        raise ValueError(f"{as_text(path)} has the suffix {path.suffix or 'of no kind'}, expected .npz for a model")


def load_model(path: str | os.PathLike[str]) -> GridMRF | GraphMRF:
    """The model of an .npz file that `save_model` or a user's `np.savez` wrote.

    `treefield.io.models.npz_models` lists the arrays.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.npz")
    ...     np.savez(path, unary=np.zeros((2, 3, 4)), linear=[1.5, 2])
    ...     treefield.io.load_model(path)
    GridMRF(shape=(2, 3), labels=4, dtype=float64, pairwise=TruncatedLinear(1.5, 2))
    """
    path = as_input_path(path)
    with explain_read_errors(path, "a model that can be read"):
        arrays = read_npz(path, _as_model_names)
        if "format" in arrays and str(arrays["format"]) != _FORMAT:
            raise ValueError(f"its format is {str(arrays['format'])[:40]!r}, expected {_FORMAT!r}")
        if "edges" in arrays:
            return graph_in(arrays, None if "tables" in arrays else _pairwise_in(arrays))
        weights = _by_axis(arrays, "weights")
        lattice: dict[str, Any] = {name: arrays[name] for name in ("periodic", "mask") if name in arrays}
        if "connectivity" in arrays:
            lattice["connectivity"] = _as_integer(arrays["connectivity"], "connectivity")
        return GridMRF(arrays["unary"], _pairwise_in(arrays), weights=weights or None, **lattice)


def _pairwise_arrays(pairwise: Pairwise) -> dict[str, np.ndarray]:
    kind = type(pairwise)
    if kind is Potts:
        return {"potts": np.array(pairwise.weight)}
    if isinstance(pairwise, TruncatedLinear | TruncatedQuadratic) and kind in _TRUNCATED.values():
        name = "linear" if kind is TruncatedLinear else "quadratic"
        arrays = {name: np.array([pairwise.weight, pairwise.cutoff])}
        return arrays if pairwise.values is None else {**arrays, "values": pairwise.values}
    if isinstance(pairwise, Table) and kind is Table:
        return {"table": pairwise.V}
    if isinstance(pairwise, EdgeTables) and kind is EdgeTables:
        return {f"tables_{axis}": table for axis, table in enumerate(pairwise.tables)}
    raise TypeError(f"a pairwise cost of the class {kind.__name__} cannot be saved; use Table(V), which can")


def _pairwise_in(arrays: dict[str, np.ndarray]) -> Pairwise:
    if "potts" in arrays:
        return Potts(_as_number(arrays["potts"], "potts"))
    for name, kind in _TRUNCATED.items():
        if name in arrays:
            if arrays[name].shape != (2,):
                raise ValueError(f"{name} has shape {arrays[name].shape}, expected two numbers, weight and cutoff")
            weight, cutoff = (_as_number(value, name) for value in arrays[name])
            return kind(weight, cutoff, arrays.get("values"))
    return Table(arrays["table"]) if "table" in arrays else EdgeTables(_by_axis(arrays, "tables"))


def _as_model_names(names: list[str]) -> list[str]:
    """Those names, if they make a model; so that a foreign file is refused before it is unpacked."""
    if "unary" not in names:
        raise ValueError(f"it has no array unary, but {', '.join(sorted(names)[:8]) or 'no arrays'}")
    graph = "edges" in names
    of_grids = re.compile(r"(weights|tables)_\d+|connectivity|periodic|mask")
    unknown = sorted(
        name
        for name in names
        if not (_KNOWN.fullmatch(name) and not (graph and of_grids.fullmatch(name)))
        and not (graph and name in GRAPH_ONLY)
    )
    if unknown:
        raise ValueError(f"it holds {', '.join(unknown[:8])}, which no model has")
    kinds = sorted({name.partition("_")[0] for name in names} & {"potts", "linear", "quadratic", "table", "tables"})
    if len(kinds) != 1:
        came = " and ".join(kinds) or "none"
        raise ValueError(f"it needs one of potts, linear, quadratic, table and tables_0.., but has {came}")
    if "values" in names and kinds[0] not in _TRUNCATED:
        raise ValueError(f"it holds values, which linear and quadratic costs have, but {kinds[0]} has not")
    return names


def _by_axis(arrays: dict[str, np.ndarray], prefix: str) -> list[np.ndarray]:
    """The arrays prefix_0, prefix_1, ... in order, or an error if one is left out."""
    found = sorted((name for name in arrays if name.startswith(f"{prefix}_")), key=lambda name: (len(name), name))
    expected = [f"{prefix}_{axis}" for axis in range(len(found))]
    if found != expected:
        raise ValueError(f"it holds {', '.join(found)}, expected one for each axis: {', '.join(expected)}")
    return [arrays[name] for name in found]


def _as_integer(value: Any, name: str) -> int:
    if np.ndim(value) or np.asarray(value).dtype.kind not in "ui":
        raise ValueError(f"{name} has shape {np.shape(value)} and dtype {np.asarray(value).dtype}, expected an integer")
    return int(value)


def _as_number(value: Any, name: str) -> float:
    if np.ndim(value) or np.asarray(value).dtype.kind not in "uif":
        raise ValueError(f"{name} has shape {np.shape(value)} and dtype {np.asarray(value).dtype}, expected a number")
    return float(value)
