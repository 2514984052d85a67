"""PGM, PPM, PNM and PFM, in NumPy.

Pillow cuts 16-bit PPM to 8 bits, stretches values to the full range (labels 0 to 3 would become 0 to 255) and has no
colour PFM; the formats are simple enough to do it right.
"""

from __future__ import annotations

import math
import os
import pathlib
import re
import sys
from typing import Any

import numpy as np

from treefield.io.limits import check_memory
from treefield.io.text import BLOCK, align_blocks, end_of_last_word, parse_numbers

_SPACE = rb"(?:\s|#[^\n\r]*[\n\r])+"
_NETPBM = re.compile(rb"P([1-6])" + _SPACE + rb"(\d{1,9})" + _SPACE + rb"(\d{1,9})")
_MAXVAL = re.compile(_SPACE + rb"(\d{1,9})")
_PFM = re.compile(rb"P([Ff])\s+(\d{1,9})\s+(\d{1,9})\s+([-+0-9.eE]{1,40})\s")
_HEADER = 65536  # bytes, comments included


def read_netpbm(path: pathlib.Path) -> np.ndarray:
    """A PBM (bool, True is white), PGM or PPM file, text or binary; the values as they are, in uint8 or uint16."""
    with path.open("rb") as file:
        start = file.read(_HEADER)
        match = _NETPBM.match(start)
        if match is None:
            raise ValueError(f"its start {start[:8]!r} is no header of PGM or PPM, such as 'P5 640 480 255'")
        kind, width, height = (int(group) for group in match.groups())
        end, most = match.end(), 1
        if kind not in (1, 4):
            maxval = _MAXVAL.match(start, end)
            if maxval is None:
                raise ValueError("its header has no greatest value")
            end, most = maxval.end(), int(maxval[1])
        if not 0 < most < 65536:
            raise ValueError(f"its header has the greatest value {most}, expected 1 to 65535")
        shape = (height, width, 3) if kind in (3, 6) else (height, width)
        dtype = np.dtype(np.uint8 if most < 256 else ">u2")
        file.seek(end)
        left = os.fstat(file.fileno()).st_size - end - 1
        if kind == 4:
            return _bitmap(path, file, shape, left)
        size = math.prod(shape) * dtype.itemsize
        if kind < 4:  # every value is at least a digit
            _check(path, math.prod(shape), left + 1, 8 * math.prod(shape))
            array = _text(file, kind, math.prod(shape))
        else:
            _check(path, size, left, 2 * size)
            file.read(1)
            array = np.frombuffer(file.read(size), dtype)
        if array.size and array.max() > most:
            raise ValueError(f"it holds the value {array.max()}, but its header says at most {most}")
        if kind == 1:
            return array.reshape(shape) == 0
        return array.astype(dtype.newbyteorder("=")).reshape(shape)


def read_pfm(path: pathlib.Path) -> np.ndarray:
    """A PFM file, grey or colour, in float32; its rows go from the bottom up."""
    with path.open("rb") as file:
        start = file.read(_HEADER)
        match = _PFM.match(start)
        if match is None:
            raise ValueError(f"its start {start[:8]!r} is no header of PFM, such as 'Pf 640 480 -1.0'")
        scale = float(match[4])
        if scale == 0 or not math.isfinite(scale):
            raise ValueError(f"its header has the scale {scale}, expected a number such as -1.0")
        shape = (int(match[3]), int(match[2])) + ((3,) if match[1] == b"F" else ())
        size = 4 * math.prod(shape)
        _check(path, size, os.fstat(file.fileno()).st_size - match.end(), 2 * size)
        file.seek(match.end())
        array = np.frombuffer(file.read(size), "<f4" if scale < 0 else ">f4")
    return array.astype(np.float32).reshape(shape)[::-1].copy()


def encode_netpbm(array: np.ndarray) -> list[Any]:
    """Header and data of a binary PGM or PPM file."""
    most = 65535 if array.dtype == np.uint16 else 255
    header = f"P{6 if array.ndim == 3 else 5}\n{array.shape[1]} {array.shape[0]}\n{most}\n"
    return [header.encode(), np.ascontiguousarray(array, ">u2" if most > 255 else np.uint8)]


def encode_pfm(array: np.ndarray) -> list[Any]:
    """Header and data of a PFM file."""
    scale = "-1.0" if sys.byteorder == "little" else "1.0"
    header = f"P{'F' if array.ndim == 3 else 'f'}\n{array.shape[1]} {array.shape[0]}\n{scale}\n"
    return [header.encode(), np.ascontiguousarray(array[::-1], np.float32)]


def _bitmap(path: pathlib.Path, file: Any, shape: tuple[int, ...], left: int) -> np.ndarray:
    row = (shape[1] + 7) // 8
    _check(path, shape[0] * row, left, 9 * shape[0] * row)
    file.read(1)
    packed = np.frombuffer(file.read(shape[0] * row), np.uint8).reshape(shape[0], row)
    return np.unpackbits(packed, axis=1, count=shape[1]) == 0


def _text(file: Any, kind: int, count: int) -> np.ndarray:
    """The values of a text; whatever follows them is not read."""
    parts: list[np.ndarray] = []
    left = count
    for block in align_blocks(iter(lambda: file.read(BLOCK), b""), _after_digit if kind == 1 else _after_value):
        words = re.sub(rb"#[^\n\r]*", b"", block).split()
        # in a bitmap the digits need no spaces between them
        text = b"".join(words)[:left] if kind == 1 else b" ".join(words[:left])
        values = np.frombuffer(text, np.uint8) - ord("0") if kind == 1 else parse_numbers(text)
        digits = not text or text.replace(b" ", b"").isdigit()
        if not digits or values is None or values.max(initial=0) > 65535:
            raise ValueError("it holds something other than numbers up to 65535")
        parts.append(values.astype(np.uint16))
        left -= len(values)
        if left == 0:
            return np.concatenate(parts)
    raise ValueError(f"it ends after {count - left} of {count} values")


def _after_digit(data: bytes) -> int:
    """The place where a comment begins that does not end, or the end."""
    line = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    comment = data.find(b"#", line)
    return len(data) if comment < 0 else comment


def _after_value(data: bytes) -> int:
    """The place behind the last value or comment that is complete."""
    end = _after_digit(data)
    return end_of_last_word(data) if end == len(data) else end


def _check(path: pathlib.Path, needed: int, left: int, size: int) -> None:
    if needed > left:
        raise ValueError(f"it is too short: its header promises {needed} bytes, {max(left, 0)} are there")
    check_memory(path, size)
