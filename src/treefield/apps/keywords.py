"""The keywords of the applications, as types for the overloads that tell what `full_output` returns."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from treefield.protocols import Callback, Seed

Data = Literal["squared", "absolute"]
Smoothness = Literal["linear", "quadratic", "potts"]
MatchingCost = Literal["census", "birchfield-tomasi", "absolute", "squared"]
Occlusion = Literal["keep", "mark", "fill"]


class SolverKeywords(TypedDict, total=False):
    """Keywords of `minimize` and of the solvers that its `method` names: limits and settings of a search."""

    time_limit: float | None
    tol: float | None
    maxiter: int | None
    patience: int | None
    memory_limit: float | str | None
    threads: int | None
    # of single solvers
    accept: Callable[..., float | None] | None
    arithmetic: str
    axis: int
    bands: int | None
    beta: float | None
    crossover: str
    damping: float
    decoding: str
    inner_iter: int | None
    jump: Callable[..., np.ndarray] | None
    local_search: str | Callable[..., object]
    max_backtracks: int | None
    memory: str
    mutation: Callable[..., np.ndarray] | None
    nu: float
    order: str
    population: int
    restarts: int
    schedule: str
    temperatures: tuple[float, float] | None
    trees: object
    workers: int | None


class SearchKeywords(SolverKeywords, total=False):
    """All keywords of `minimize`."""

    x0: ArrayLike | None
    method: str
    callback: Callback | None
    rng: Seed
    progress: bool
    checkpoint: str | os.PathLike[str] | None


class RestorationKeywords(SearchKeywords, total=False):
    """Keywords of `denoise`; those of `inpaint` and `denoise_tiled` are derived from them."""

    levels: ArrayLike
    data: Data
    tau: float | None
    smoothness: Smoothness
    weight: float | None
    cutoff: float | None
    sigma: float | None
    channel_axis: int | None


class InpaintKeywords(RestorationKeywords, total=False):
    """Keywords of `inpaint`."""

    denoise: bool


class TilingKeywords(RestorationKeywords, total=False):
    """Keywords of `denoise_tiled`."""

    tile: int | Sequence[int] | None
    scratch: str | os.PathLike[str] | None


class SegmentKeywords(SearchKeywords, total=False):
    """Keywords of `segment`."""

    weight: float
    contrast: float
    spacing: Sequence[float] | np.ndarray | None
    channel_axis: int | None


class StereoKeywords(SearchKeywords, total=False):
    """Keywords of `stereo`."""

    num_disparities: int | None
    min_disparity: int
    cost: MatchingCost
    cost_volume: ArrayLike | None
    smoothness: Smoothness
    weight: float | None
    cutoff: float
    contrast: float | None
    contrast_factor: float
    mask: ArrayLike | None
    subpixel: bool
    occlusion: Occlusion
    channel_axis: int | None
