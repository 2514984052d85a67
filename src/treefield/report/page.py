"""Runs as one HTML page: pictures to compare, energy and bound against time, figures, tables, what it took."""

from __future__ import annotations

import base64
import dataclasses
import importlib.resources
import io
import math
import re

import numpy as np

from treefield.results import relative_gap, settled

POINTS = 2000  # of a run's curve at most: more than a screen has columns

_LONGEST, _LONGEST_MOMENT = 1200, 700  # pixels stored of a picture's longer side
_BOX, _SMALL_BOX = (640, 560), (400, 400)  # CSS pixels a picture is fitted into
_THINNEST = 40  # CSS pixels: one row of sites can still be seen and gripped
_UNIT = r"%|x|\u00d7|µs|ms|s|min|h|[kMG]?i?B"
_NUMBER = re.compile(rf"[-+\u2212±<>≤≥]?\s?\d[\d.,_\s]*(e[-+]?\d+)?({_UNIT})?|[-\u2013\u2014]?")  # or a dash for none


@dataclasses.dataclass
class Picture:
    """Something to look at: `pixels` are uint8, (M, N) for grey or (M, N, 3) for colour."""

    caption: str
    pixels: np.ndarray


@dataclasses.dataclass
class Drawing:
    """A figure: `svg` is the file's text; `files` are where it can also be had, relative to the page."""

    caption: str
    svg: str
    files: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Section:
    """One problem and its results; empty parts are left out of the page.

    Attributes
    ----------
    title : str
    before, after : Picture, optional
        Input and result, one above the other with a divider to drag.
    more : list of Picture
        Further pictures next to these, for instance the truth.
    runs : dict
        A name and a `MAPResult.trace` for each run.
    moments : list of Picture
        The labelling at several moments, or of several methods: a slider steps through them.
    facts : dict
        Energy, bound, gap, settings, ... as text, in this order.
    table : list of dict
        Rows with the same keys, for instance one per method.
    drawings : list of Drawing
        Figures, one below the other.
    files : list of str
        Other files, by their paths relative to the page.
    text : list of str
        Paragraphs, under the title.
    """

    title: str
    before: Picture | None = None
    after: Picture | None = None
    more: list[Picture] = dataclasses.field(default_factory=list)
    runs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    moments: list[Picture] = dataclasses.field(default_factory=list)
    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    table: list[dict[str, str]] = dataclasses.field(default_factory=list)
    drawings: list[Drawing] = dataclasses.field(default_factory=list)
    files: list[str] = dataclasses.field(default_factory=list)
    text: list[str] = dataclasses.field(default_factory=list)


def report(title: str, sections: list[Section], *, command: str = "", version: str) -> str:
    """The page as text, to be written as UTF-8. It needs nothing else: no network, no other file.

    Parameters
    ----------
    title : str
    sections : list of Section
        Several get a table of contents.
    command : str
        The command that makes this page again.
    version : str
        Of treefield.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> from treefield.report.page import Picture, Section, report
    >>> mrf = tf.GridMRF(np.random.default_rng(0).integers(0, 50, (16, 16, 4)), tf.Potts(10))
    >>> res = tf.minimize(mrf, rng=0)
    >>> seen = Picture("result", (85 * res.x).astype(np.uint8))
    >>> page = report("Noise", [Section("Four labels", after=seen, runs={"minimize": res.trace})], version="0.1.0")
    >>> page.splitlines()[0]
    '<!doctype html>'
    """
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('a report needs Jinja2: pip install "treefield[cli]"') from error
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    source = importlib.resources.files("treefield.report").joinpath("report.html.j2").read_text(encoding="utf-8")
    page = environment.from_string(source).render(
        title=title,
        sections=[_prepared(section) for section in sections],
        command=command,
        version=version,
        thinnest=_THINNEST,
    )
    # A file name that is not UTF-8 comes from the command line as lone surrogates, which cannot be written.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _prepared(section: Section) -> dict[str, object]:
    """The values of a section that the template shows."""
    pair = [_image(picture, _LONGEST, _BOX) for picture in (section.before, section.after) if picture is not None]
    return {
        "title": section.title,
        "text": section.text,
        "compare": pair if len(pair) == 2 else [],
        "single": pair if len(pair) == 1 else [],
        "more": [_image(picture, _LONGEST, _SMALL_BOX) for picture in section.more],
        "runs": [_curve(name, trace) for name, trace in section.runs.items()],
        "moments": [_image(picture, _LONGEST_MOMENT, _SMALL_BOX, labels=True) for picture in section.moments],
        "facts": section.facts,
        "columns": _columns(section.table),
        "rows": section.table,
        "drawings": [
            {"caption": drawing.caption, "uri": _uri("svg+xml", drawing.svg.encode()), "files": drawing.files}
            for drawing in section.drawings
        ],
        "files": section.files,
    }


def _columns(table: list[dict[str, str]]) -> list[tuple[str, bool]]:
    """Each column's name, and whether it holds numbers."""
    names = dict.fromkeys(name for row in table for name in row)
    return [(name, all(_NUMBER.fullmatch(str(row.get(name, "")).strip()) for row in table)) for name in names]


def _image(picture: Picture, longest: int, box: tuple[int, int], labels: bool = False) -> dict[str, object]:
    """A picture as a data URI, with the size at which to show it."""
    pixels = np.asarray(picture.pixels)
    if pixels.dtype != np.uint8 or not pixels.size or (pixels.shape[2:] != (3,) and pixels.ndim != 2):
        raise ValueError(
            f"the picture {picture.caption!r} is {pixels.dtype} of shape {pixels.shape}; "
            "give uint8 of shape (M, N) or (M, N, 3)"
        )
    height, width = pixels.shape[:2]
    shown, enlarged = _fitted(width, height, box)
    return {
        "caption": picture.caption,
        "uri": _png(pixels, longest, labels),
        "width": shown[0],
        "height": shown[1],
        "pixelated": enlarged,
    }


def _fitted(width: int, height: int, box: tuple[int, int]) -> tuple[tuple[int, int], bool]:
    """The size that fills the box, and whether each pixel becomes a square of whole pixels."""
    ratio = min(box[0] / width, box[1] / height)
    if ratio >= 2:
        ratio = math.floor(ratio)
    thin = min(width, height) * ratio < _THINNEST  # stretched, so that its few rows or columns can be seen
    return (max(_THINNEST, round(width * ratio)), max(_THINNEST, round(height * ratio))), ratio >= 2 or thin


def _png(pixels: np.ndarray, longest: int, labels: bool) -> str:
    """A PNG data URI of a picture or of every k-th site of it; a label map has no colours in between."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('a report needs Pillow: pip install "treefield[cli]"') from error
    height, width = pixels.shape[:2]
    ratio = max(height, width) / longest
    if labels and ratio > 1:
        pixels = pixels[:: math.ceil(ratio), :: math.ceil(ratio)]
    image = Image.fromarray(np.ascontiguousarray(pixels))
    if not labels and ratio > 1:
        size = max(1, round(width / ratio)), max(1, round(height / ratio))
        image = image.resize(size, Image.Resampling.LANCZOS)
    file = io.BytesIO()
    image.save(file, "PNG")
    return _uri("png", file.getvalue())


def _uri(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _curve(name: str, trace: np.ndarray) -> dict[str, object]:
    """A run for the page's script: columns of numbers, null for what is not finite, and the ranges worth seeing."""
    rows = trace[thinned(trace)]
    gaps = [relative_gap(float(best), float(bound)) for best, bound in zip(rows["best"], rows["bound"], strict=True)]
    return {
        "name": name,
        "whole": _span([_finite(trace["best"]), _finite(trace["bound"])]),
        "detail": _span([settled(trace["best"]), settled(trace["bound"])]),
        "iteration": rows["iteration"].tolist(),
        "gap": _numbers(gaps),
        **{column: _numbers(rows[column].tolist()) for column in ("seconds", "energy", "best", "bound")},
    }


def thinned(trace: np.ndarray, points: int = POINTS) -> np.ndarray:
    """Indices of at most `points` rows that draw the same curve.

    They are the first and the last, the largest steps of best energy and bound, and rows spread evenly over a linear
    and a logarithmic axis.
    """
    n = len(trace)
    if n <= points:
        return np.arange(n)
    share = points // 4
    spread = np.linspace(0, n - 1, share), np.geomspace(1, n - 1, share)
    keep = [np.rint(axis).astype(np.intp) for axis in spread]
    for column in ("best", "bound"):
        values = np.where(np.isnan(trace[column]), -np.inf, trace[column])
        with np.errstate(invalid="ignore"):
            step = np.nan_to_num(np.abs(np.diff(values)))  # inf - inf, no step, is nan
        keep.append(1 + np.argpartition(step, -share)[-share:])
    return np.unique(np.concatenate(keep))


def _finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


def _span(columns: list[np.ndarray]) -> list[float] | None:
    """The least and greatest value, if there is any."""
    values = np.concatenate(columns)
    return [float(values.min()), float(values.max())] if len(values) else None


def _numbers(values: list[float]) -> list[float | None]:
    """JSON knows neither nan nor inf."""
    return [value if math.isfinite(value) else None for value in values]
