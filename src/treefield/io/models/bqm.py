"""dimod's binary files of quadratic models, read and written without dimod, whose own reader trusts what files claim.

The file is "DIMODBQM", its version, the length of a JSON header and the header; then the offset, for each variable the
place of its first neighbour and its bias, and for each variable's neighbours, in turn, their number and the bias. Names
of the variables are in the header (version 1), or in a section "VARS" behind all (version 2).
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from treefield.io.files import explain_read_errors, write_atomically
from treefield.io.models.factors import as_writable_form
from treefield.io.paths import as_input_path, as_path
from treefield.io.text import read_unpacked
from treefield.models.graph import GraphMRF
from treefield.models.quadratic_form import VARTYPES, QuadraticForm
from treefield.validation import as_choice

_MAGIC = b"DIMODBQM"
_FLOATS, _INTEGERS = ("float32", "float64"), ("int16", "int32", "int64", "uint16", "uint32", "uint64")
_PER_BYTE = 8  # bytes of memory that a byte of a file may need while it becomes a model
_LONGEST_JSON = 2**28  # bytes
_BLOCK = 64  # headers are filled up to a multiple of this


def read_bqm(path: str | os.PathLike[str]) -> GraphMRF:
    """The model of a file that dimod's ``BinaryQuadraticModel.to_file`` made.

    Variables named 0, 1, 2, ... are the sites of these numbers, others are numbered in the file's order. Labels 0 and 1
    stand for -1 and 1, or for 0 and 1, whichever the variables of the file are. `write_bqm` has an example.
    """
    path = as_input_path(path)
    with explain_read_errors(path, "a dimod model"):
        return _read(_Data(read_unpacked(path, _PER_BYTE))).to_graph()


class _Data:
    """The bytes of a file, of which only as many are read as are asked for."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._rest = parts, b""

    def read(self, count: int) -> bytes:
        """The next bytes; fewer where the file ends."""
        parts, size = [self._rest], len(self._rest)
        while size < count and (part := next(self._parts, b"")):
            parts.append(part)
            size += len(part)
        data = b"".join(parts)
        self._rest = data[count:]
        return data[:count]


def _read(data: _Data) -> QuadraticForm:
    start = data.read(14)
    if start[:8] != _MAGIC or len(start) < 14:
        raise ValueError("it does not begin with DIMODBQM and a header")
    version, length = start[8], struct.unpack("<I", start[10:14])[0]
    if version not in (1, 2):
        raise ValueError(f"its version is {version}, expected 1 or 2")
    header = _json(data, length, dict, "header")
    as_choice(header.get("vartype"), "vartype", VARTYPES)
    for name, allowed in {"dtype": _FLOATS, "itype": _INTEGERS, "ntype": _INTEGERS}.items():
        as_choice(header.get(name), name, allowed)
    shape = header.get("shape")
    if not (isinstance(shape, list) and len(shape) == 2 and all(type(n) is int and n >= 0 for n in shape)):
        raise ValueError(f"its shape is {str(shape)[:40]}, expected the numbers of variables and of interactions")
    size, edges = shape
    real = np.dtype(header["dtype"]).newbyteorder("<")
    linear = np.dtype([("place", np.dtype(header["ntype"]).newbyteorder("<")), ("bias", real)])
    quadratic = np.dtype([("site", np.dtype(header["itype"]).newbyteorder("<")), ("bias", real)])
    ends = np.cumsum([real.itemsize, size * linear.itemsize, 2 * edges * quadratic.itemsize], dtype=object).tolist()
    body = data.read(ends[2])
    if size < 1 or len(body) < ends[2]:
        raise ValueError(
            f"it tells {size} variables and {edges} interactions, which are {ends[2]} bytes, but has {len(body)}"
        )
    offset = float(np.frombuffer(body, real, 1)[0])
    biases = np.frombuffer(body, linear, size, ends[0])
    neighbours = np.frombuffer(body, quadratic, 2 * edges, ends[1])
    places = np.append(biases["place"].astype(np.int64), 2 * edges)
    others = neighbours["site"].astype(np.int64)
    if places[0] != 0 or (np.diff(places) < 0).any() or (edges and not 0 <= others.min() <= others.max() < size):
        raise ValueError("its neighbours are not in order")
    own = np.repeat(np.arange(size), np.diff(places))
    once = others < own
    if once.sum() != edges:
        raise ValueError(f"it tells {edges} interactions, but lists {once.sum()}")
    site = _sites(header.get("variables"), data, version, size)
    pairs = np.sort(np.stack([site[others[once]], site[own[once]]], axis=1), axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    fields = np.empty(size)
    fields[site] = biases["bias"]
    weights = neighbours["bias"][once].astype(np.float64)
    return QuadraticForm(header["vartype"], fields, pairs[order], weights[order], offset)


def _sites(variables: Any, data: _Data, version: int, size: int) -> np.ndarray:
    """The site of each variable: its name, if the names are 0, 1, 2, ... in any order."""
    names = variables
    if version == 2 and variables:
        start = data.read(8)
        if start[:4] != b"VARS" or len(start) < 8:
            raise ValueError("it has no names of its variables")
        names = _json(data, struct.unpack("<I", start[4:8])[0], list, "list of variables")
    if not names:
        return np.arange(size)
    if not isinstance(names, list) or len(names) != size:
        raise ValueError(f"it names {len(names) if isinstance(names, list) else 'no'} variables, but has {size}")
    if all(type(name) is int for name in names) and sorted(names) == list(range(size)):
        return np.array(names, np.int64)
    return np.arange(size)


def _json(data: _Data, length: int, kind: type, what: str) -> Any:
    if length > _LONGEST_JSON:
        raise ValueError(f"its {what} claims {length} bytes, expected up to {_LONGEST_JSON}")
    try:
        value = json.loads(data.read(length).decode("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"its {what} is damaged") from None
    if not isinstance(value, kind):
        raise ValueError(f"its {what} is damaged")
    return value


def write_bqm(path: str | os.PathLike[str], mrf: GraphMRF, *, vartype: str = "SPIN", force: bool = False) -> None:
    """Write a model of two labels as a file for dimod's ``BinaryQuadraticModel.from_file``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield as tf, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.bqm")
    ...     treefield.io.write_bqm(path, tf.GraphMRF([[0, 1], [0, 3]], [(0, 1)], tf.Potts(4)))
    ...     treefield.io.read_bqm(path).energy([0, 1])
    7.0
    """
    as_choice(vartype, "vartype", VARTYPES)
    path = as_path(path)
    model = as_writable_form(mrf, vartype, path)
    header = {
        "dtype": "float64",
        "itype": "int32",
        "ntype": "int32",
        "shape": [mrf.size, len(model.edges)],
        "type": "BinaryQuadraticModel",
        "variables": False,
        "vartype": vartype,
    }
    text = json.dumps(header).encode() + b"\n"
    text += b" " * (-(len(text) + 14) % _BLOCK)
    own = np.concatenate([model.edges[:, 0], model.edges[:, 1]])
    other = np.concatenate([model.edges[:, 1], model.edges[:, 0]])
    order = np.lexsort((other, own))
    neighbours = np.empty(len(own), [("site", "<i4"), ("bias", "<f8")])
    neighbours["site"], neighbours["bias"] = other[order], np.tile(model.quadratic, 2)[order]
    linear = np.empty(mrf.size, [("place", "<i4"), ("bias", "<f8")])
    linear["place"], linear["bias"] = np.searchsorted(own[order], np.arange(mrf.size)), model.linear
    parts = [_MAGIC, b"\2\0", struct.pack("<I", len(text)), text, struct.pack("<d", model.offset)]
    with write_atomically(path, force=force) as temporary:
        temporary.write_bytes(b"".join([*parts, linear.tobytes(), neighbours.tobytes()]))
