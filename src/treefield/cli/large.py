"""denoise of an image larger than memory: read, searched and written tile by tile."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from treefield.apps.pictures import has_channels
from treefield.apps.restoration import Costs
from treefield.apps.tiled import blocks, denoise_tiled
from treefield.cli.options import Shared
from treefield.cli.outcome import as_json, exit_if_interrupted, format_summary
from treefield.cli.streams import say
from treefield.io import write_image
from treefield.io.files import checked_output, in_units, resident_memory, shown
from treefield.io.images import checked_format, holds_alpha
from treefield.io.large import LARGE, check_new_image, draft, kept_if_not_written, new_image, open_image
from treefield.solvers.tiles import METHODS
from treefield.validation import as_byte_count, as_choice

_COMPILING = 150_000_000  # bytes that compiled kernels, and compiling them, come to need
_SHARE = 0.8  # of what is left is for the search of a tile: it may need more than is foreseen


def denoise_large(
    image: pathlib.Path, out: pathlib.Path, levels: int, costs: Costs, memory_limit: str, shared: Shared
) -> dict[str, Any]:
    """Denoise a file in little memory, and tell; returns the figures, as `run` does."""
    limit = as_byte_count(memory_limit, "--memory-limit")
    as_choice(shared.method, "--method with --memory-limit", METHODS)
    for name, path in (("--report", shared.report), ("--save-model", shared.save_model)):
        if path is not None:
            raise ValueError(f"{name} needs the whole image in memory: it does not go with --memory-limit")
    is_large = out.suffix.lower() in LARGE
    (check_new_image if is_large else checked_output)(out, force=shared.force)
    options: dict[str, Any] = shared.search() | dataclasses.asdict(costs) | {"levels": levels}
    options["progress"] = not shared.quiet and sys.stderr.isatty()
    with open_image(image, out.parent) as found:
        colours = _colours(tuple(found.shape))
        axis = None if colours is None else -1
        with _written(out, found, colours is not None, shared.force) as target:
            if colours is not None and colours < found.shape[-1]:  # transparency is copied
                for box in blocks(tuple(found.shape[:-1])):
                    target[(*box, colours)] = found[(*box, colours)]
            _, res = denoise_tiled(
                _First(found, colours),
                _First(target, colours),
                channel_axis=axis,
                memory_limit=_for_tiles(limit),
                scratch=out.parent,
                full_output=True,
                **options,
            )
    figures = {"output": str(out), "title": "denoise", **as_json(res)}
    if shared.json:
        say(json.dumps(figures))
    elif not shared.quiet:
        say(format_summary(res, wrote=shown(out)))
    exit_if_interrupted(res)
    return figures | {"note": ""}


def _for_tiles(limit: int) -> int:
    """The bytes that the search of a tile may use, out of `limit` bytes for the whole process."""
    left = limit - resident_memory() - _COMPILING
    if left < _COMPILING:
        least = in_units(limit - left + _COMPILING)
        raise ValueError(
            f"--memory-limit {in_units(limit)} is too little: Python and its libraries need most of it; "
            f"give {least} or more"
        )
    return int(_SHARE * left)


def _colours(shape: tuple[int, ...]) -> int | None:
    """How many channels are colours; None if there are no channels."""
    if not has_channels(shape):
        return None
    return shape[-1] - (shape[-1] in (2, 4))


@contextlib.contextmanager
def _written(out: pathlib.Path, image: Any, channels: bool, force: bool) -> Iterator[Any]:
    """An array on disk that is the image of a file in the end; formats that are written whole are packed in memory."""
    shape, dtype = tuple(image.shape), np.dtype(image.dtype).newbyteorder("=")
    if out.suffix.lower() in LARGE:
        with new_image(out, shape, dtype, channels=channels, force=force) as target:
            yield target
        return
    if channels and shape[-1] in (2, 4) and not holds_alpha(out):
        raise ValueError(f"{shown(out)} has no room for the image's alpha channel; .tif has")
    checked_format(out, np.broadcast_to(np.zeros((), dtype), shape))
    with draft(out, shape, dtype) as target:
        yield target
        with kept_if_not_written(target, out):
            write_image(out, target.array(), force=force)


class _First:
    """The first channels of an array, or all of it."""

    def __init__(self, array: Any, channels: int | None) -> None:
        self._array, self.dtype = array, array.dtype
        self.shape = tuple(array.shape) if channels is None else (*array.shape[:-1], channels)

    def __getitem__(self, box: Any) -> np.ndarray:
        return self._array[box]

    def __setitem__(self, box: Any, values: Any) -> None:
        self._array[box] = values
