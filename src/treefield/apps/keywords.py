"""The keywords of the applications, as types for the overloads that tell what `full_output` returns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from treefield.protocols import Callback, Seed, StartOrResult
from treefield.solvers.solver_keywords import SolverKeywords

Data = Literal["patches", "squared", "absolute"]
Smoothness = Literal["linear", "quadratic", "potts"]
MatchingCost = Literal["census", "birchfield-tomasi", "absolute", "squared"]
Occlusion = Literal["keep", "mark", "fill"]
ChannelAxis = int | Literal["auto"] | None  # "auto": none, but an image that looks like colours is an error


class SearchKeywords(SolverKeywords, total=False):
    """All keywords of `minimize`."""

    x0: StartOrResult
    method: str
    callback: Callback | None
    rng: Seed
    progress: bool
    checkpoint: str | os.PathLike[str] | None
    keep_messages: bool


class RestorationKeywords(SearchKeywords, total=False):
    """Keywords that `denoise`, `inpaint` and `denoise_tiled` share."""

    data: Data | None
    tau: float | None
    smoothness: Smoothness
    weight: float | None
    cutoff: float | None
    sigma: float | None
    channel_axis: ChannelAxis


class DenoiseKeywords(RestorationKeywords, total=False):
    """Keywords of `denoise`."""

    levels: ArrayLike | None


class InpaintKeywords(RestorationKeywords, total=False):
    """Keywords of `inpaint`."""

    levels: ArrayLike
    denoise: bool


class TilingKeywords(DenoiseKeywords, total=False):
    """Keywords of `denoise_tiled`."""

    tile: int | Sequence[int] | None
    scratch: str | os.PathLike[str] | None


class SegmentKeywords(SearchKeywords, total=False):
    """Keywords of `segment`."""

    weight: float
    contrast: float
    spacing: Sequence[float] | np.ndarray | None
    connectivity: Literal[1, 2]
    probabilities: ArrayLike | None
    channel_axis: ChannelAxis


class IsingKeywords(SearchKeywords, total=False):
    """Keywords of `ising`."""

    periodic: bool | Sequence[bool]


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
