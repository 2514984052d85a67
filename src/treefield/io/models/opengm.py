"""OpenGM's HDF5 files.

A group holds `header` (2, 0, number of sites, number of factors, number of kinds of functions, then id and number of
each kind, then how values are stored), `numbers-of-states`, `factors` (for each: function, kind, arity, sites) and for
each kind `function-id-N` with `indices` and `values`. Tables have the first site's label running fastest.
"""

from __future__ import annotations

import io
import math
import os
import pathlib
from typing import Any

import numpy as np

from treefield.io.files import MissingPackageError, explain_read_errors, write_atomically
from treefield.io.limits import MAX_DEFLATE_RATIO, check_memory, check_unpacked
from treefield.io.models.factors import Factors, as_writable_graph
from treefield.io.paths import as_input_path, as_path, as_text
from treefield.models.graph import GraphMRF

_EXPLICIT = 16000
_PAIRWISE = {16002: 1, 16003: 2, 16004: 1, 16005: 2, 16006: 2}  # how many values each has
_OTHERS = {
    16001: "sparse functions",
    16007: "Potts functions of several sites",
    16008: "constant functions",
    16011: "generalised Potts functions",
}


def read_opengm(path: str | os.PathLike[str], group: str | None = None) -> GraphMRF:
    """The model of an OpenGM file; needs the extra ``formats``. Values are costs.

    Explicit functions are read, and those of two sites that OpenGM calls Potts, absolute and squared difference,
    truncated or not; others are refused by name. Factors of three and more sites become auxiliary sites, see
    `read_uai`.

    Parameters
    ----------
    path : path of the file
    group : str, optional
        The group of the model, where the file has several. `write_opengm` has an example.
    """
    path = as_input_path(path)
    h5py = _h5py("reading", path)
    with explain_read_errors(path, "an OpenGM model"), h5py.File(path, "r") as file:
        return _read(path, _Arrays(path, h5py, _group(h5py, file, group))).graph()


def _group(h5py: Any, file: Any, name: str | None) -> Any:
    names = [key for key in file if isinstance(file.get(key, getlink=True), h5py.HardLink)]
    found = [key for key in names if isinstance(file[key], h5py.Group) and "header" in file[key]]
    if name is not None and name not in found:
        raise ValueError(f"it has no model {name!r}, but {', '.join(found[:5]) or 'none'}")
    if len(found) != 1 and name is None:
        raise ValueError(f"it holds {len(found)} models{': give group=' if found else ''}{', '.join(found[:5])}")
    return file[name if name is not None else found[0]]


class _Arrays:
    """The arrays of a group, read if they are really there."""

    def __init__(self, path: pathlib.Path, h5py: Any, group: Any) -> None:
        self._path, self._h5py, self._group = path, h5py, group
        self.size = self._nbytes = 0

    def __call__(self, name: str, kinds: str) -> np.ndarray:
        group = self._group
        for part in name.split("/"):
            if part not in group or not isinstance(group.get(part, getlink=True), self._h5py.HardLink):
                raise ValueError(f"it has no {name}")
            group = group[part]
        if not isinstance(group, self._h5py.Dataset) or group.ndim != 1 or group.dtype.kind not in kinds:
            raise ValueError(f"its {name} is no list of numbers")
        if group.is_virtual or group.external:
            raise ValueError(f"its {name} is stored in other files, which are not read")
        nbytes = group.size * group.dtype.itemsize
        stored = min(group.id.get_storage_size(), self._path.stat().st_size)
        if nbytes > stored * (1 if group.chunks is None else MAX_DEFLATE_RATIO):
            raise ValueError(f"its {name} claims {group.size} numbers, but the file is too short for that")
        self._nbytes += nbytes
        check_unpacked(self._path, self._nbytes)
        check_memory(self._path, 4 * self._nbytes)
        self.size += group.size
        return group[()]


def _read(path: pathlib.Path, arrays: _Arrays) -> Factors:
    header = _integers(arrays("header", "ui"))
    if len(header) < 5 or header[:2].tolist() != [2, 0]:
        raise ValueError(f"its header begins with {header[:2].tolist()}, expected version 2, 0")
    kinds = int(header[4])
    if len(header) not in (5 + 2 * kinds, 6 + 2 * kinds):
        raise ValueError(f"its header has {len(header)} numbers for {kinds} kinds of functions")
    states = _integers(arrays("numbers-of-states", "ui"))
    if len(states) != header[2] or (len(states) and not 1 <= states.min() <= states.max() < 2**31):
        raise ValueError(f"its header tells {header[2]} sites, but numbers-of-states is of {len(states)}, from 1 on")
    listed_kinds = header[5 : 5 + 2 * kinds].reshape(-1, 2).tolist()
    if len({kind for kind, _ in listed_kinds}) < kinds:
        raise ValueError("its header lists a kind of functions twice")
    functions = [_functions(arrays, kind, count) for kind, count in listed_kinds]
    listed = _integers(arrays("factors", "ui")).tolist() if header[3] else []
    if 3 * header[3] > len(listed):
        raise ValueError(f"its header tells {header[3]} factors, but factors has {len(listed)} numbers")
    factors = Factors(path, states, arrays.size)
    at = 0
    for index in range(int(header[3])):
        if at + 3 > len(listed) or at + 3 + listed[at + 2] > len(listed):
            raise ValueError(f"its factors end in factor {index}")
        number, kind, arity = listed[at : at + 3]
        scope = factors.as_scope(listed[at + 3 : at + 3 + arity], str(index))
        at += 3 + arity
        if kind >= kinds or number >= len(functions[kind]):
            raise ValueError(f"factor {index} has function {number} of kind {kind}, which is not there")
        table = functions[kind][number]
        if table.shape != factors.shape(scope):
            raise ValueError(
                f"factor {index} has a function of shape {table.shape}, but the labels of its sites are "
                f"{factors.shape(scope)}"
            )
        factors.add(scope, table)
    if at != len(listed):
        raise ValueError(f"its factors have {len(listed) - at} numbers too many")
    return factors


def _functions(arrays: _Arrays, kind: int, count: int) -> list[np.ndarray]:
    """The tables of one kind of functions."""
    if count == 0:
        return []
    if kind != _EXPLICIT and kind not in _PAIRWISE:
        raise ValueError(
            f"it holds {_OTHERS.get(kind, 'functions')} (id {kind}), which are not read; make them explicit"
        )
    indices = _integers(arrays(f"function-id-{kind}/indices", "ui"))
    values = arrays(f"function-id-{kind}/values", "fui").astype(np.float64)
    if (np.isnan(values) | (values == -math.inf)).any():
        raise ValueError(f"the values of its functions {kind} are no costs: one is NaN or -inf")
    if count > len(indices):
        raise ValueError(f"it tells {count} functions of id {kind}, but has {len(indices)} indices of them")
    if kind == _EXPLICIT:
        return _explicit(indices.tolist(), values, count)
    width = _PAIRWISE[kind]
    if len(indices) != 2 * count or len(values) != width * count:
        raise ValueError(f"its {count} functions of id {kind} have {len(indices)} indices and {len(values)} values")
    if indices.max() > 2**15:
        raise ValueError(f"a function of id {kind} is for {indices.max()} labels, expected up to {2**15}")
    rows = zip(indices.reshape(-1, 2).tolist(), values.reshape(-1, width).tolist(), strict=True)
    made: dict[Any, np.ndarray] = {}
    tables = []
    for shape, costs in rows:
        key = (*shape, *costs)
        if key not in made:
            arrays.size -= shape[0] * shape[1]
            if arrays.size < -(2**24):
                raise ValueError(f"its functions of id {kind} are too large")
            made[key] = _pairwise(kind, shape, costs)
        tables.append(made[key])
    return tables


def _explicit(indices: list[int], values: np.ndarray, count: int) -> list[np.ndarray]:
    tables, at, used = [], 0, 0
    for index in range(count):
        if at >= len(indices) or at + 1 + indices[at] > len(indices):
            raise ValueError(f"its indices end in explicit function {index}")
        shape = indices[at + 1 : at + 1 + indices[at]]
        at += 1 + len(shape)
        size = math.prod(shape)
        if used + size > len(values):
            raise ValueError(f"its values end in explicit function {index}, which has {size}")
        tables.append(values[used : used + size].reshape(shape, order="F"))
        used += size
    if at != len(indices) or used != len(values):
        raise ValueError(
            f"its explicit functions have {len(values) - used} values and {len(indices) - at} indices more"
        )
    return tables


def _pairwise(kind: int, shape: list[int], values: list[float]) -> np.ndarray:
    """The table of two sites that a formula gives."""
    step = np.subtract.outer(np.arange(shape[0]), np.arange(shape[1])).astype(np.float64)
    if kind == 16006:
        return np.where(step == 0, *values)
    step = np.abs(step) if kind in (16002, 16003) else step**2
    if kind in (16003, 16005):
        return np.minimum(step, values[0]) * values[1]
    return step * values[0]


def _integers(array: np.ndarray) -> np.ndarray:
    if array.size and (int(array.max()) >= 2**62 or int(array.min()) < 0):
        raise ValueError("it holds a number that is no count")
    return array.astype(np.int64)


def write_opengm(path: str | os.PathLike[str], mrf: GraphMRF, *, force: bool = False) -> None:
    """Write a model as an OpenGM file of explicit functions, in a group ``gm``; needs the extra ``formats``.

    Equal tables are written once.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield as tf, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.h5")
    ...     treefield.io.write_opengm(path, tf.GraphMRF([[0, 1], [0, 3]], [(0, 1)], tf.Potts(4)))
    ...     treefield.io.read_opengm(path).energy([0, 1])
    7.0
    """
    path = as_path(path)
    mrf = as_writable_graph(mrf, path)
    h5py = _h5py("writing", path)
    scopes = [(site,) for site in range(mrf.size)] + [tuple(edge) for edge in mrf.edges.tolist()]
    tables = mrf.unaries + [mrf.edge_costs(edge) for edge in range(len(mrf.edges))]
    if mrf.offset:
        scopes, tables = [*scopes, ()], [*tables, np.array(mrf.offset)]
    numbers: dict[Any, int] = {}
    indices, values, factors = [], [], []
    for scope, costs in zip(scopes, tables, strict=True):
        table = costs + 0.0  # no -0.0, which would be another table
        key = (table.shape, table.tobytes())
        if key not in numbers:
            numbers[key] = len(numbers)
            indices.append([table.ndim, *table.shape])
            values.append(table.ravel(order="F"))
        factors.append([numbers[key], 0, len(scope), *scope])
    header = [2, 0, mrf.size, len(factors), 1, _EXPLICIT, len(numbers), 1]
    arrays = {
        "header": header,
        "numbers-of-states": mrf.label_counts,
        "factors": np.concatenate(factors),
        f"function-id-{_EXPLICIT}/indices": np.concatenate(indices),
    }
    with write_atomically(path, force=force) as temporary:
        packed = io.BytesIO()  # on a full disk HDF5 crashes when it closes a file
        with h5py.File(packed, "w") as file:
            for name, array in arrays.items():
                file.create_dataset(f"gm/{name}", data=np.asarray(array, np.uint64))
            file.create_dataset(f"gm/function-id-{_EXPLICIT}/values", data=np.concatenate(values))
            file["gm"].visititems(lambda _, item: _mark(h5py, item))
        temporary.write_bytes(packed.getbuffer())


def _mark(h5py: Any, item: Any) -> None:
    """OpenGM looks for this: the order of axes, which means nothing for lists."""
    if isinstance(item, h5py.Dataset):
        item.attrs["reverse-shape"] = np.array([1], np.uint8)


def _h5py(doing: str, path: str | os.PathLike[str]) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingPackageError(f'{doing} {as_text(path)} needs h5py: pip install "treefield[formats]"') from error
    return h5py
