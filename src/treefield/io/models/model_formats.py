"""Models by the suffix of their files."""

from __future__ import annotations

import inspect
import os
import pathlib
from collections.abc import Callable
from typing import Any

from treefield.io.models.bqm import read_bqm, write_bqm
from treefield.io.models.cfn import read_cfn, write_cfn
from treefield.io.models.coo import read_coo, read_qubo, write_coo, write_qubo
from treefield.io.models.npz_models import load_model, save_model
from treefield.io.models.opengm import read_opengm, write_opengm
from treefield.io.models.rudy import read_rudy, write_rudy
from treefield.io.models.uai import read_uai, write_uai
from treefield.io.models.wcsp import read_wcsp, write_wcsp
from treefield.io.paths import as_input_path, as_path, as_text
from treefield.io.text import PACKED_SUFFIXES, format_suffix
from treefield.models.graph import GraphMRF
from treefield.models.grid import GridMRF

_TEXT: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    ".uai": (read_uai, write_uai),
    ".wcsp": (read_wcsp, write_wcsp),
    ".cfn": (read_cfn, write_cfn),
    ".mc": (read_rudy, write_rudy),
    ".rud": (read_rudy, write_rudy),
    ".rudy": (read_rudy, write_rudy),
    ".coo": (read_coo, write_coo),
    ".qubo": (read_qubo, write_qubo),
}
_BINARY: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    ".npz": (load_model, save_model),
    ".h5": (read_opengm, write_opengm),
    ".hdf5": (read_opengm, write_opengm),
    ".bqm": (read_bqm, write_bqm),
}
SUFFIXES = (*_BINARY, *_TEXT)
_HEAD = 2**16  # bytes that tell what a .txt file is


def read_model(path: str | os.PathLike[str], **options: object) -> GridMRF | GraphMRF:
    """The model of a file, in the format of its suffix.

    The suffixes are .npz, .uai, .wcsp, .cfn, .h5, .mc, .rud, .coo, .qubo and .bqm; text also packed, as .uai.gz or
    .uai.xz. A .txt file, or one without a suffix, is max-cut if its first line is two numbers, else COO.

    `options` are those of the format's own reader, such as ``values="log"`` for .uai.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.uai")
    ...     _ = path.write_text("MARKOV 1  2  1  1 0  2  -1 -2")
    ...     treefield.io.read_model(path, values="log").unaries
    [array([1., 2.])]
    """
    path = as_input_path(path)
    reader = _guessed(path) if path.suffix.lower() in ("", ".txt") else _chosen(path, 0)
    _check_options(path, reader, options)
    return reader(path, **options)


def write_model(
    path: str | os.PathLike[str], mrf: GridMRF | GraphMRF, *, force: bool = False, **options: object
) -> None:
    """Write a model to a file, in the format of its suffix, see `read_model`; `options` are those of the format.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import treefield as tf, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.wcsp.gz")
    ...     treefield.io.write_model(path, tf.GraphMRF([[0, 1], [2, 0]], [(0, 1)], tf.Potts(1)))
    ...     treefield.io.read_model(path).energy([0, 1])
    1.0
    """
    path = as_path(path)
    writer = _chosen(path, 1)
    _check_options(path, writer, options)
    writer(path, mrf, force=force, **options)


def _chosen(path: pathlib.Path, which: int) -> Callable[..., Any]:
    packed = path.suffix.lower() in PACKED_SUFFIXES
    found = (_TEXT if packed else {**_TEXT, **_BINARY}).get(format_suffix(path))
    if found is None:
        expected = ", ".join(_TEXT if packed else SUFFIXES)
        raise ValueError(f"{as_text(path)} is not a model by its suffix, expected one of {expected}")
    return found[which]


def _guessed(path: pathlib.Path) -> Callable[..., Any]:
    with path.open("rb") as file:
        lines = [line for line in file.read(_HEAD).split(b"\n") if line.strip() and not line.lstrip().startswith(b"#")]
    return read_rudy if lines and len(lines[0].split()) == 2 else read_coo


def _check_options(path: pathlib.Path, function: Callable[..., Any], options: dict[str, Any]) -> None:
    allowed = [name for name in inspect.signature(function).parameters if name not in ("path", "mrf", "force")]
    unknown = [name for name in options if name not in allowed]
    if unknown:
        has = f"has {', '.join(allowed)}" if allowed else "has none"
        raise ValueError(f"{as_text(path)} is of a format without the option {unknown[0]}; it {has}")
