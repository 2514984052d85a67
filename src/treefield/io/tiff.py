"""TIFF: images and volumes of any dtype, through tifffile."""

from __future__ import annotations

import contextlib
import logging
import math
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from treefield.io.files import check_memory, package
from treefield.io.orientation import upright

_MINISWHITE, _PALETTE, _CMYK = 0, 3, 5  # photometric interpretations


def read_tiff(path: pathlib.Path, labels: bool) -> tuple[np.ndarray, bool]:
    """The first image or stack of equal pages, and whether its last axis is channels. With `labels` the values are left
    as they are: palette indices are not coloured, white-is-zero is not turned round."""
    tifffile = package("tifffile", "tifffile", "reading TIFF")
    package("imagecodecs", "imagecodecs", "reading TIFF")
    _check_chain(path)
    # OME metadata may name other files to be opened
    with _quiet(), tifffile.TiffFile(path, is_ome=False, _multifile=False) as file:
        if not file.pages or not file.series:
            raise ValueError("it has no pages")
        series = file.series[0]
        page = series.keyframe
        coloured = not labels and page.photometric == _PALETTE and page.colormap is not None
        if page.photometric == _CMYK:
            raise ValueError("CMYK TIFF is not supported; convert it to RGB")
        copies = 2 + 3 * 2 * coloured
        check_memory(path, copies * math.prod(series.shape) * np.dtype(series.dtype).itemsize)
        _check_segments(file, series)
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


def write_tiff(path: pathlib.Path, array: np.ndarray, channels: bool) -> None:
    """Write an image or volume, with lossless compression."""
    tifffile = package("tifffile", "tifffile", "writing TIFF")
    package("imagecodecs", "imagecodecs", "writing TIFF")
    options: dict[str, Any] = {"photometric": "minisblack"}
    if channels:
        options = {"photometric": "rgb" if array.shape[-1] > 2 else "minisblack", "planarconfig": "contig"}
        if array.shape[-1] in (2, 4):
            options["extrasamples"] = ["unassalpha"]
    tifffile.imwrite(path, array, compression="zlib", **options)


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
