"""The keywords of the applications, as types for the overloads that tell what `full_output` returns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from treefield.protocols import Callback, Seed, Start
from treefield.solvers.solver_keywords import SolverKeywords

Data = Literal["squared", "absolute"]
Smoothness = Literal["linear", "quadratic", "potts"]
MatchingCost = Literal["census", "birchfield-tomasi", "absolute", "squared"]
Occlusion = Literal["keep", "mark", "fill"]


class SearchKeywords(SolverKeywords, total=False):
    """All keywords of `minimize`."""

    x0: Start
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
