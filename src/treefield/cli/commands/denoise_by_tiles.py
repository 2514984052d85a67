"""denoise --memory-limit: an image larger than memory, read, searched and written tile by tile."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps.denoise_tiled import denoise_tiled
from treefield.apps.image_arrays import has_channels
from treefield.apps.keywords import TilingKeywords
from treefield.apps.restoration import Costs
from treefield.apps.tiled_restoration import blocks
from treefield.cli.options import Shared
from treefield.cli.reporting import Summary, exit_if_interrupted, format_summary, search_figures
from treefield.cli.streams import say
from treefield.io import write_image
from treefield.io.images.image_formats import as_writable_image, has_alpha
from treefield.io.images.large_images import (
    LARGE_SUFFIXES,
    as_new_image_path,
    keep_on_failure,
    new_image,
    open_image,
    scratch_array,
)
from treefield.io.limits import format_bytes, resident_memory
from treefield.io.paths import as_output_path, as_text
from treefield.tiling.array_protocols import Index, ReadableArray, WritableArray
from treefield.tiling.search import METHODS
from treefield.validation import as_byte_count, as_choice

_COMPILER = 150_000_000  # bytes of compiled kernels and of the compiler
_SHARE = 0.8  # of the remaining bytes that the search of a tile may use: its need is an estimate


def denoise_by_tiles(
    image: pathlib.Path, out: pathlib.Path, levels: int | None, costs: Costs, memory_limit: str, shared: Shared
) -> Summary:
    """Denoise a file within a memory limit, and print the summary; returns the same figures as `run_task`."""
    limit = as_byte_count(memory_limit, "--memory-limit")
    as_choice(shared.method, "--method with --memory-limit", METHODS)
    for name, path in (("--report", shared.report), ("--save-model", shared.save_model)):
        if path is not None:
            raise ValueError(f"{name} needs the whole image in memory: it cannot be used with --memory-limit")
    is_large = out.suffix.lower() in LARGE_SUFFIXES
    (as_new_image_path if is_large else as_output_path)(out, force=shared.force)
    options: TilingKeywords = {**shared.search_options(), "levels": levels, "scratch": out.parent}
    options.update(cast(TilingKeywords, dataclasses.asdict(costs)))
    options["progress"] = not shared.quiet and sys.stderr.isatty()
    with open_image(image, out.parent) as source:
        colours = _colour_channels(tuple(source.shape))
        axis = None if colours is None else -1
        with _create_output(out, source, colours is not None, shared.force) as target:
            if colours is not None and colours < source.shape[-1]:  # transparency is copied
                for box in blocks(tuple(source.shape[:-1])):
                    target[(*box, colours)] = np.asarray(source[(*box, colours)])
            options |= {"channel_axis": axis, "memory_limit": _tile_bytes(limit)}
            _, res = denoise_tiled(
                _SourceChannels(source, colours),
                _TargetChannels(target, colours),
                full_output=True,
                **options,
            )
    if shared.json:
        say(json.dumps({"output": str(out), "title": "denoise", **search_figures(res)}))
    elif not shared.quiet:
        say(format_summary(res, wrote=as_text(out)))
    exit_if_interrupted(res)
    return {"output": str(out), "title": "denoise", "note": "", **search_figures(res)}


def _tile_bytes(limit: int) -> int:
    """The bytes that the search of a tile may use, out of `limit` bytes for the whole process."""
    left = limit - resident_memory() - _COMPILER
    if left < _COMPILER:
        least = format_bytes(limit - left + _COMPILER)
        raise ValueError(
            f"--memory-limit {format_bytes(limit)} is too little: Python and its libraries need most of it; "
            f"give {least} or more"
        )
    return int(_SHARE * left)


def _colour_channels(shape: tuple[int, ...]) -> int | None:
    """The number of colour channels, without alpha; None if there is no channel axis."""
    if not has_channels(shape):
        return None
    return shape[-1] - (shape[-1] in (2, 4))


@contextlib.contextmanager
def _create_output(out: pathlib.Path, image: ReadableArray, channels: bool, force: bool) -> Iterator[WritableArray]:
    """An array on disk that becomes the image file; formats that are written whole are packed in memory."""
    shape, dtype = tuple(image.shape), np.dtype(image.dtype).newbyteorder("=")
    if out.suffix.lower() in LARGE_SUFFIXES:
        with new_image(out, shape, dtype, channels=channels, force=force) as target:
            yield target
        return
    if channels and shape[-1] in (2, 4) and not has_alpha(out):
        raise ValueError(f"{as_text(out)} has no room for the image's alpha channel; .tif has")
    as_writable_image(out, np.broadcast_to(np.zeros((), dtype), shape))
    with scratch_array(out, shape, dtype) as target:
        yield target
        with keep_on_failure(target, out):
            write_image(out, target.array(), force=force)


class _SourceChannels:
    """The first channels of an array to read, or all of it."""

    def __init__(self, array: ReadableArray, channels: int | None) -> None:
        self._array, self.dtype = array, array.dtype
        self.shape = _shape_of_channels(array.shape, channels)

    def __getitem__(self, box: Index, /) -> ArrayLike:
        return self._array[box]


class _TargetChannels:
    """The first channels of an array to write, or all of it."""

    def __init__(self, array: WritableArray, channels: int | None) -> None:
        self._array, self.dtype = array, array.dtype
        self.shape = _shape_of_channels(array.shape, channels)

    def __setitem__(self, box: Index, values: np.ndarray, /) -> None:
        self._array[box] = values


def _shape_of_channels(shape: tuple[int, ...], channels: int | None) -> tuple[int, ...]:
    return tuple(shape) if channels is None else (*shape[:-1], channels)
