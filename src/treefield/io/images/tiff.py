"""TIFF: images and volumes of any dtype, through tifffile."""

from __future__ import annotations

import contextlib
import logging
import math
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from treefield.io.files import import_optional
from treefield.io.images.orientation import upright
from treefield.io.limits import check_memory, check_unpacked
from treefield.tiling.stores import FileArray, new_npy

_MINISWHITE, _PALETTE, _CMYK = 0, 3, 5  # photometric interpretations
_TILE = 512  # pixels along a side
_CLASSIC = 2**31  # bytes that go into a file with 32-bit offsets, with room to spare
_BUFFER = 2**24  # bytes read at once


def read_tiff(path: pathlib.Path, labels: bool) -> tuple[np.ndarray, bool]:
    """Read the first image or stack of equal pages; returns its array and whether the last axis is channels.

    With `labels` the values are left unchanged: palette indices are not coloured, white-is-zero is not inverted.
    """
    with _opened(path) as (_, series):
        page = series.keyframe
        coloured = not labels and page.photometric == _PALETTE and page.colormap is not None
        copies = 2 + 3 * 2 * coloured
        _check_unpacked(path, series)
        check_memory(path, copies * math.prod(series.shape) * np.dtype(series.dtype).itemsize + _segment_bytes(series))
        array = np.asarray(series.asarray())
        axes = series.axes
        if array.shape != tuple(series.shape) or array.dtype != series.dtype:
            raise ValueError(f"its pages are {array.dtype} of shape {array.shape}, not what the header says")
        orientation = page.tags.valueof(274, 1)
        colours = page.colormap
    channels = "S" in axes
    if channels:
        array = np.moveaxis(array, axes.index("S"), -1)
    if coloured:
        array, channels = _coloured(array, colours), True
    elif page.photometric == _MINISWHITE and not labels and array.dtype.kind in "bu":
        array = ~array
    if axes in ("YX", "YXS", "SYX"):
        array = upright(array, orientation)
    return np.ascontiguousarray(array), channels


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[tuple[Any, Any]]:
    """A file and its first image or stack of equal pages, all of whose data is there."""
    tifffile = import_optional("tifffile", "tifffile", "reading TIFF")
    import_optional("imagecodecs", "imagecodecs", "reading TIFF")
    _check_chain(path)
    # OME metadata may name other files to be opened
    with _quiet(), tifffile.TiffFile(path, is_ome=False, _multifile=False) as file:
        if not file.pages or not file.series:
            raise ValueError("it has no pages")
        series = file.series[0]
        if series.keyframe.photometric == _CMYK:
            raise ValueError("CMYK TIFF is not supported; convert it to RGB")
        _check_segments(file, series)
        yield file, series


def open_tiff(path: pathlib.Path, unpacked: pathlib.Path) -> FileArray:
    """Open the first image or stack of equal pages as an array that is read when it is sliced.

    It is read from the file itself if that is not packed, else from the file `unpacked`, which is created.
    """
    with _opened(path) as (file, series):
        page, shape = series.keyframe, tuple(series.shape)
        if page.photometric == _PALETTE:
            raise ValueError("it has a palette, which is not read part by part; save it as grey or RGB")
        if page.tags.valueof(274, 1) != 1 and series.axes in ("YX", "YXS"):
            raise ValueError("it is to be turned or mirrored (EXIF orientation); save it upright")
        if "S" in series.axes and not series.axes.endswith("S"):
            raise ValueError(
                "its channels are stored one after the other; save them pixel by pixel (planarconfig=contig)"
            )
        inverted = page.photometric == _MINISWHITE and np.dtype(series.dtype).kind in "bu"
        if series.dataoffset is not None and not inverted:
            return FileArray(path, shape, np.dtype(series.dtype).newbyteorder(file.byteorder), series.dataoffset)
        _check_unpacked(path, series)
        check_memory(path, 4 * _segment_bytes(series))
        array = new_npy(unpacked, shape, np.dtype(series.dtype).newbyteorder("="))
        number = len(series.pages)
        for k, one in enumerate(series.pages):
            at = np.unravel_index(k, shape[: len(shape) - len(page.shape)]) if number > 1 else ()
            for data, index, extent in one.segments(maxworkers=1, buffersize=_BUFFER):
                if data is None:
                    raise ValueError("it has parts without data")
                _, layer, row, column, _ = index
                rows, columns = min(extent[1], page.imagelength - row), min(extent[2], page.imagewidth - column)
                layers = min(extent[0], page.imagedepth - layer)
                box = [slice(layer, layer + layers), slice(row, row + rows), slice(column, column + columns)]
                box = box if page.imagedepth > 1 else box[1:]
                sides = [side.stop - side.start for side in box]
                part = data[:layers, :rows, :columns].reshape(*sides, *shape[len(at) + len(box) :])
                array[(*at, *box)] = ~part if inverted else part
        return array


def write_tiles(path: pathlib.Path, array: Any, channels: bool) -> None:
    """Write an image or volume that need only be sliceable, in tiles, with lossless compression."""
    tifffile = import_optional("tifffile", "tifffile", "writing TIFF")
    import_optional("imagecodecs", "imagecodecs", "writing TIFF")
    size = math.prod(array.shape) * np.dtype(array.dtype).itemsize
    options = _layout(array.shape, channels) | {"tile": (_TILE, _TILE), "bigtiff": size > _CLASSIC}
    given = {"shape": array.shape, "dtype": array.dtype, "compression": "zlib"}
    tifffile.imwrite(path, _tiles(array, channels), **given, **options)


def _tiles(array: Any, channels: bool) -> Iterator[np.ndarray]:
    """The tiles of a file, in its order, those at the borders filled up."""
    rows, columns = array.shape[-3:-1] if channels else array.shape[-2:]
    pages = array.shape[: len(array.shape) - 2 - channels]
    tile = (_TILE, _TILE, *array.shape[len(pages) + 2 :])
    for page in np.ndindex(*pages):
        for row in range(0, rows, _TILE):
            for column in range(0, columns, _TILE):
                part = array[(*page, slice(row, min(rows, row + _TILE)), slice(column, min(columns, column + _TILE)))]
                if part.shape != tile:
                    full = np.zeros(tile, part.dtype)
                    full[: part.shape[0], : part.shape[1]] = part
                    part = full
                yield part


def write_tiff(path: pathlib.Path, array: np.ndarray, channels: bool) -> None:
    """Write an image or volume, with lossless compression."""
    tifffile = import_optional("tifffile", "tifffile", "writing TIFF")
    import_optional("imagecodecs", "imagecodecs", "writing TIFF")
    tifffile.imwrite(path, array, compression="zlib", **_layout(array.shape, channels))


def _layout(shape: tuple[int, ...], channels: bool) -> dict[str, Any]:
    """The layout of the channels, from the tags of a file."""
    if not channels:
        return {"photometric": "minisblack"}
    options: dict[str, Any] = {"photometric": "rgb" if shape[-1] > 2 else "minisblack", "planarconfig": "contig"}
    return options | ({"extrasamples": ["unassalpha"]} if shape[-1] in (2, 4) else {})


def _check_chain(path: pathlib.Path) -> None:
    """Refuse pages that form a ring, in which tifffile would go round for ever."""
    with path.open("rb") as file:
        start = file.read(16)
        order: Any = {b"II": "little", b"MM": "big"}.get(start[:2], "")
        magic = int.from_bytes(start[2:4], order) if order else 0
        if magic not in (42, 43):
            raise ValueError(f"it starts with {start[:8]!r}, so it is not TIFF, whatever its name says")
        # bytes of a page's number of tags, of a tag, and of an offset: TIFF, or BigTIFF
        counts, tag, offsets = (2, 12, 4) if magic == 42 else (8, 20, 8)
        page, seen = int.from_bytes(start[offsets : 2 * offsets], order), set()
        while page:
            if page in seen:
                raise ValueError("it is damaged: its pages form a ring")
            seen.add(page)
            file.seek(page)
            file.seek(page + counts + tag * int.from_bytes(file.read(counts), order))
            page = int.from_bytes(file.read(offsets), order)


def _check_segments(file: Any, series: Any) -> None:
    """Refuse a file without all its data: tifffile would fill in zeros."""
    size = file.filehandle.size
    if series.dataoffset is not None:  # one block, perhaps of more pages than are listed
        if series.dataoffset + math.prod(series.shape) * np.dtype(series.dtype).itemsize > size:
            raise ValueError("it is truncated")
        return
    for page in series.pages:
        if page is None or not page.dataoffsets or min(*page.databytecounts, *page.dataoffsets) <= 0:
            raise ValueError("it has parts without data")
        if max(map(sum, zip(page.dataoffsets, page.databytecounts, strict=True))) > size:
            raise ValueError("it is truncated")
        if len(page.dataoffsets) < _segments(page.keyframe):
            raise ValueError("it has fewer strips or tiles than it needs")


def _check_unpacked(path: pathlib.Path, series: Any) -> None:
    """Raise if the image, or a strip or tile of it, exceeds the limit."""
    size = math.prod(series.shape) * np.dtype(series.dtype).itemsize
    check_unpacked(path, max(_segment_bytes(series), size))


def _segment_bytes(series: Any) -> int:
    """The unpacked bytes of a strip or tile."""
    return math.prod(series.keyframe.chunks) * np.dtype(series.dtype).itemsize


def _segments(page: Any) -> int:
    """How many strips or tiles a page must have."""
    if page.is_tiled:
        count = math.ceil(page.imagelength / page.tilelength) * math.ceil(page.imagewidth / page.tilewidth)
        count *= math.ceil(page.imagedepth / page.tiledepth)
    else:
        count = math.ceil(page.imagelength / max(page.rowsperstrip, 1)) * page.imagedepth
    return int(count) * (page.samplesperpixel if page.planarconfig == 2 else 1)


def _coloured(indices: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """RGB of palette indices; TIFF stores 16-bit colours, which are 8-bit ones times 257 as a rule."""
    if indices.max(initial=0) >= colours.shape[1]:
        raise ValueError(f"it holds the palette index {indices.max()}, but the palette has {colours.shape[1]} colours")
    return (colours.T >> 8).astype(np.uint8)[indices]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """tifffile logs what it makes of damaged files; our errors say it."""
    log = logging.getLogger("tifffile")
    before = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = before
