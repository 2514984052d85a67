"""Restore an image channel after channel, each tile by tile, within time and memory limits."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, cast

import numpy as np

from treefield.apps.level_model import Channel, LevelModel
from treefield.apps.problem import Problem, name_limit
from treefield.apps.restoration import NO_NOISE, searching_seconds, tolerance
from treefield.results import TRACE, MAPResult, Status, amend_result, make_result
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.loop import Timer, as_limits
from treefield.tiling.array_protocols import Box, LabelStore
from treefield.tiling.model import TiledMRF
from treefield.tiling.tiles import tile_boxes

_BLOCK_SIDES = {2: 1024, 3: 128}  # pixels, of the blocks that are read and written at once, by dimensions
_PROBE = 512  # pixels along the last two axes of the box that shows how long restoring takes
_METHOD = "auto"


class Tiling(NamedTuple):
    """Parameters of `TiledMRF`."""

    tile: int | Sequence[int] | None
    memory_limit: int


class Labels(Protocol):
    """Where the labels of a channel are kept until its restored values are written."""

    @property
    def store(self) -> str | os.PathLike[str] | LabelStore:
        """The parameter of `TiledMRF`."""

    def read(self) -> Channel:
        """The labels, for a block."""

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """A context in which the restored values are written; the labels are discarded at its end."""


def restore_planes(
    planes: Sequence[Channel],
    model: LevelModel,
    tiling: Tiling,
    labels: Callable[[int], Labels],
    write: Callable[[int, Box, np.ndarray], None],
    search: dict[str, object],
    timer: Timer,
    *,
    is_prepared: bool = False,
) -> tuple[list[MAPResult], list[TiledMRF]]:
    """Restore channel after channel; after an interrupt copy the remaining ones.

    Parameters
    ----------
    labels : function
        Takes the number of a channel; returns where its labels are kept.
    write : function
        Takes the number of a channel, a box and its restored values.
    search : dict
        Keywords of `minimize`. The channels share `time_limit`, which includes writing.
    timer : Timer
        Seconds since the call.
    is_prepared : bool
        Keep the means of patches of a whole channel in memory.

    Returns
    -------
    results, models : those of the channels that were searched
    """
    limit = as_limits(None, cast(float | None, search.get("time_limit")), None, progress=False)["time_limit"]
    results: list[MAPResult] = []
    models: list[TiledMRF] = []
    with Interrupts() as interrupts:
        for number, plane in enumerate(planes):
            if results and results[-1].status == Status.INTERRUPTED:
                for box in blocks(plane.shape):
                    write(number, box, plane[box])
                continue
            kept, start = labels(number), timer.seconds()
            share = None if limit is None else max(0.0, (limit - start) / (len(planes) - number))
            own = model
            if is_prepared:
                end = math.inf if share is None else start + share - searching_seconds(math.prod(plane.shape), model)
                own = model.prepared(plane, functools.partial(_has_time, timer, end, interrupts))
            mrf = tiled_model(plane, own, tiling, kept.store)
            problem = Problem(mrf, lambda x: x, tol=tolerance(model))
            if limit is not None:
                problem.preparation = restoring_seconds(own, plane) + timer.seconds() - start
            res = problem.minimize(**search | {"time_limit": share})
            with kept.writing():
                for box in blocks(plane.shape):
                    write(number, box, own.restore(plane, kept.read(), box))
            if interrupts.pending and res.status != Status.INTERRUPTED:
                res = amend_result(res, status=Status.INTERRUPTED, message=f"{interrupts.pending} after the search")
            results.append(res if limit is None else name_limit(res, share, limit))
            models.append(mrf)
    return results, models


def _has_time(timer: Timer, end: float, interrupts: Interrupts) -> bool:
    return not interrupts.pending and timer.seconds() < end


def tiled_model(
    plane: Channel, model: LevelModel, tiling: Tiling, store: str | os.PathLike[str] | LabelStore | None
) -> TiledMRF:
    """The model of a channel, its costs computed from the image where they are needed."""
    return TiledMRF(
        lambda box: model.unary(plane, box),
        model.pairwise,
        shape=plane.shape,
        n_labels=len(model.values),
        store=store,
        **tiling._asdict(),
    )


def restoring_seconds(model: LevelModel, plane: Channel) -> float:
    """Seconds that it takes to compute all restored values of a channel, judged by those of a small box."""
    box = tuple(slice(0, min(n, _PROBE if axis >= len(plane.shape) - 2 else 1)) for axis, n in enumerate(plane.shape))
    timer = Timer()
    values = model.restore(plane, np.broadcast_to(np.int32(0), plane.shape), box)
    return timer.seconds() * math.prod(plane.shape) / values.size


def combine_results(results: list[MAPResult], x: np.ndarray, **details: object) -> MAPResult:
    """The result of all channels together, with the answer `x`."""
    last = max(results, key=lambda res: res.status)
    fun, bound = (float(sum(res[name] for res in results)) for name in ("fun", "lower_bound"))
    trace = results[0].trace
    if len(results) > 1:
        seconds = sum(res.trace["seconds"][-1] for res in results)
        trace = np.array([(sum(res.nit for res in results), seconds, fun, fun, bound)], TRACE)
    combined = make_result(
        x=x,
        fun=fun,
        nit=sum(res.nit for res in results),
        status=last.status,
        message=last.message,
        method=last.method,
        lower_bound=bound,
        trace=trace,
    )
    return amend_result(combined, **details)


def unchanged_result(x: np.ndarray, **details: object) -> MAPResult:
    """The result for an image without noise, which is returned unchanged."""
    trace = np.zeros(1, TRACE)
    res = make_result(
        x=x, fun=0.0, nit=0, status=Status.CONVERGED, message=NO_NOISE, method=_METHOD, lower_bound=0.0, trace=trace
    )
    return amend_result(res, **details)


def blocks(shape: tuple[int, ...]) -> Iterator[Box]:
    """Divide an image of this shape into the blocks that are read and written at once."""
    side = _BLOCK_SIDES[len(shape)]
    for colour_class in tile_boxes(shape, tuple(min(side, n) for n in shape)):
        yield from colour_class
