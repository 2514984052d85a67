"""The model of `denoise` and `inpaint`: labels are intensities, and neighbours have similar ones.

The model is built in grey levels, 255 from black to white, so that it is the same for every dtype. Defaults come from
the noise: the image of least energy is the most probable one if there is Gaussian noise of deviation sigma, a share of
the pixels are impulses, and neighbours differ by d with a probability proportional to exp(-d / 28), truncated.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps import keywords
from treefield.apps.grey_levels import GreyScale, grey_scale
from treefield.apps.harmonic import harmonic_fill
from treefield.apps.image_arrays import stack_channels
from treefield.apps.noise import GREY_LEVELS, central_box, estimate_noise, nearest_level, outlier_costs
from treefield.apps.problem import Problem, round_to_ten_bits
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts, TruncatedLinear, TruncatedQuadratic
from treefield.tiling.array_protocols import Box
from treefield.tiling.model import TiledMRF
from treefield.validation import all_integral, as_choice, as_count, as_non_negative, as_positive, as_real_array

DATA = get_args(keywords.Data)
SMOOTHNESS = get_args(keywords.Smoothness)

_POWERS = {"squared": 2, "absolute": 1, "quadratic": 2, "linear": 1, "potts": 0}  # of the difference, in the cost

# in grey levels
_TYPICAL_DIFFERENCE = 28.0  # of neighbours
_DENOISE_CUTOFF = 100.0
_INPAINT_CUTOFF = 60.0
_MAX_SIGMA = 1e6
_MAX_DIFFERENCE = 1e12


@dataclasses.dataclass(frozen=True)
class Costs:
    """The parameters of `denoise` and `inpaint` in the image's own units; None for a default that is computed."""

    data: str = "squared"
    tau: float | None = None
    smoothness: str = "linear"
    weight: float | None = None
    cutoff: float | None = None
    sigma: float | None = None

    def __post_init__(self) -> None:
        as_choice(self.data, "data", DATA)
        as_choice(self.smoothness, "smoothness", SMOOTHNESS)
        for name in ("tau", "sigma", "cutoff"):
            if getattr(self, name) is not None:
                as_positive(getattr(self, name), name, infinite=name == "tau")
        if self.weight is not None:
            as_non_negative(self.weight, "weight")

    def in_grey_levels(self, scale: GreyScale, cutoff: float) -> LevelCosts:
        """The same costs in grey levels, divided by those of one grey level; `cutoff` is the default."""
        data, smoothness = _POWERS[self.data], _POWERS[self.smoothness]
        sigma = None if self.sigma is None else scale.difference(self.sigma, "sigma")
        if sigma is not None and sigma > _MAX_SIGMA:
            raise ValueError(
                f"sigma must be at most {_MAX_SIGMA * scale.unit:g} for {scale.image} of this range, got {self.sigma:g}"
            )
        if self.cutoff is not None:
            cutoff = min(scale.difference(self.cutoff, "cutoff"), _MAX_DIFFERENCE)
        return LevelCosts(
            self.data,
            None if self.tau is None else scale.times_unit(self.tau, -data),
            self.smoothness,
            None if self.weight is None else scale.times_unit(self.weight, smoothness - data),
            cutoff,
            sigma,
        )


@dataclasses.dataclass(frozen=True)
class LevelCosts:
    """The costs of a restoration model in grey levels; None for what comes from the noise."""

    data: str
    tau: float | None
    smoothness: str
    weight: float | None
    cutoff: float
    sigma: float | None


class Channel(Protocol):
    """A channel of an image larger than memory."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __getitem__(self, box: Box, /) -> np.ndarray: ...


class Tiling(NamedTuple):
    """Parameters of `TiledMRF`."""

    tile: int | Sequence[int] | None
    memory_limit: int
    store: pathlib.Path | None = None


def restoration_problem(image: np.ndarray, levels: ArrayLike, costs: Costs) -> Problem[GridMRF]:
    """The problem of removing the noise from an image with channels first."""
    values, scale = intensity_levels(image, levels), grey_scale(image)
    level_costs = costs.in_grey_levels(scale, _DENOISE_CUTOFF)
    stacked, weights = stack_channels(image)
    data = _data_cost(level_costs, scale.to_levels(image), None)
    unary = _unary(stacked, values, scale, data)
    mrf = GridMRF(unary, _pairwise(level_costs, data.nat, scale.to_levels(values)), weights=weights)
    return Problem(mrf, lambda x: values.astype(image.dtype)[x].reshape(image.shape))


def tiled_restoration_problems(
    channels: Sequence[Channel], low: np.generic, high: np.generic, levels: ArrayLike, costs: Costs, tiling: Tiling
) -> Iterator[Problem[TiledMRF]]:
    """The same problem for each channel of an image larger than memory, as tiled models.

    The values of all channels go from `low` to `high`. The `output` of a problem takes the labels of any box.
    """
    shape, dtype = channels[0].shape, channels[0].dtype
    extremes = np.array([low, high], dtype)
    values, scale = intensity_levels(extremes, levels), grey_scale(extremes)
    level_costs = costs.in_grey_levels(scale, _DENOISE_CUTOFF)
    sample = np.stack([channel[central_box(shape)] for channel in channels])
    data = _data_cost(level_costs, scale.to_levels(sample), None)
    pairwise = _pairwise(level_costs, data.nat, scale.to_levels(values))
    for channel in channels:

        def unary(box: Box, channel: Channel = channel) -> np.ndarray:
            return _unary(channel[box], values, scale, data)

        mrf = TiledMRF(unary, pairwise, shape=shape, n_labels=len(values), **tiling._asdict())
        yield Problem(mrf, lambda x: values.astype(dtype)[x])


def fill_problem(
    image: np.ndarray, hole: np.ndarray, keep_known: bool, levels: ArrayLike, costs: Costs
) -> Problem[GridMRF]:
    """The problem of filling the hole of an image with channels first.

    There is no data cost in the hole. With `keep_known` all pixels outside of it keep their values.
    """
    if hole.all():
        raise ValueError("mask covers the whole image: there is nothing to fill it from")
    values, scale = intensity_levels(image[:, ~hole], levels), grey_scale(image[:, ~hole])
    level_costs = costs.in_grey_levels(scale, _INPAINT_CUTOFF)
    stacked, weights = stack_channels(image)
    holes = np.broadcast_to(hole, image.shape).reshape(stacked.shape)
    data = _data_cost(level_costs, np.where(hole, 0, scale.to_levels(image)), hole)
    pairwise = _pairwise(level_costs, data.nat, scale.to_levels(values))
    if keep_known:
        prohibitive = 2 * stacked.ndim * pairwise.weight * float(pairwise.costs(len(values)).max()) + 1
        data = DataCost("nearest", np.full(GREY_LEVELS, prohibitive), 1.0)
        weights = [weight * edges_touching(holes, axis) for axis, weight in enumerate(weights or [1] * stacked.ndim)]
    unary = _unary(stacked, values, scale, data)
    unary[holes] = 0

    def output(x: np.ndarray) -> np.ndarray:
        restored = values.astype(image.dtype)[x].reshape(image.shape)
        return np.where(hole, restored, image) if keep_known else restored

    start = np.searchsorted((values[1:] + values[:-1]) / 2, harmonic_fill(image, hole).reshape(stacked.shape))
    return Problem(GridMRF(unary, pairwise, weights=weights), output, start.astype(np.int32))


def edges_touching(sites: np.ndarray, axis: int) -> np.ndarray:
    """1 for the edges along an axis that have an end in a mask of sites, 0 for the others."""
    first, second = np.delete(sites, -1, axis), np.delete(sites, 0, axis)
    return (first | second).astype(np.uint8)


def intensity_levels(image: np.ndarray, levels: ArrayLike) -> np.ndarray:
    """The values that a restored pixel may have, ascending.

    `levels` is a list of them, or their number: that many over the image's range, or all integers in it if these are
    fewer.
    """
    if isinstance(levels, list | tuple) or np.ndim(levels):
        return _as_levels(levels, image)
    count = as_count(levels, "levels", 1)
    low, high = image.min(), image.max()
    if image.dtype.kind in "bui" and int(high) - int(low) < count:
        return np.arange(int(low), int(high) + 1, dtype=np.float64)
    values = np.linspace(float(low), float(high), count)
    return np.unique(np.round(values) if image.dtype.kind in "ui" else values)


def _as_levels(levels: ArrayLike, image: np.ndarray) -> np.ndarray:
    """`levels` as ascending values that an image of this dtype can hold, or an error."""
    values = np.unique(as_real_array(levels, "levels").astype(np.float64))
    if not values.size or not np.isfinite(values).all():
        raise ValueError("levels must be a number of levels, or a list of finite values")
    if image.dtype.kind in "bui":
        with np.errstate(invalid="ignore"):
            kept = values.astype(image.dtype)
        if not np.array_equal(kept, values):
            raise ValueError(f"levels holds values that an image of {image.dtype} cannot have")
    farthest = max(-values[0], values[-1])
    if farthest > _MAX_DIFFERENCE * max(grey_scale(image).unit, float(np.abs(image).max())):
        raise ValueError(f"levels holds values up to {farthest:g}, much more than the image: scale them")
    return values


@dataclasses.dataclass(frozen=True)
class DataCost:
    """The cost of differing from the observed value, truncated at a maximum that depends on that value.

    Attributes
    ----------
    kind : "squared", "absolute" or "nearest"
        With "nearest" the level nearest to the observed value costs nothing, all others the maximum.
    tau : (256,) array
        The maximum for each observed grey level.
    nat : float
        The cost that corresponds to one nat of log probability.
    """

    kind: str
    tau: np.ndarray
    nat: float

    def __call__(self, difference: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """The costs of all levels, from their differences to the observed value, along the last axis."""
        most = self.tau[observed][..., None]
        if self.kind == "nearest":
            return np.where(difference == difference.min(axis=-1, keepdims=True), 0.0, most)
        return np.minimum(difference * difference if self.kind == "squared" else difference, most)


def _data_cost(costs: LevelCosts, grey: np.ndarray, hole: np.ndarray | None) -> DataCost:
    if costs.sigma is None or costs.tau is None:
        sigma, impulses = estimate_noise(grey, hole)
    if costs.sigma is not None:
        sigma = costs.sigma
    nat = 2 * sigma**2 if costs.data == "squared" else sigma / np.sqrt(2)
    if costs.tau is not None:
        return DataCost(costs.data, np.full(GREY_LEVELS, float(costs.tau)), nat)
    return DataCost(costs.data, np.maximum(1.0, np.round(nat * outlier_costs(sigma, impulses))), nat)


def _pairwise(costs: LevelCosts, nat: float, grey: np.ndarray) -> Potts | TruncatedLinear | TruncatedQuadratic:
    """The pairwise cost of levels at these grey levels. By default all kinds have the same maximum."""
    maximum = nat * costs.cutoff / _TYPICAL_DIFFERENCE
    square = costs.cutoff * costs.cutoff
    defaults = {"potts": maximum, "linear": maximum / costs.cutoff, "quadratic": maximum / square}
    weight = round_to_ten_bits(defaults[costs.smoothness]) if costs.weight is None else costs.weight
    values = None if np.array_equal(np.diff(grey), np.ones(len(grey) - 1)) else grey
    if costs.smoothness == "potts":
        return Potts(weight)
    if costs.smoothness == "linear":
        return TruncatedLinear(weight, costs.cutoff, values)
    return TruncatedQuadratic(weight, square, values)


def _unary(image: np.ndarray, values: np.ndarray, scale: GreyScale, cost: DataCost) -> np.ndarray:
    """The cost of every level at every pixel; of an integer dtype if all costs of an 8-bit image are integers."""
    levels = scale.to_levels(values)
    if image.dtype.kind in "bu" and image.dtype.itemsize == 1:  # few values: look them up
        observed = scale.to_levels(np.arange(256))
        table = cost(np.abs(observed[:, None] - levels), nearest_level(observed))
        fits_uint16 = all_integral(table) and table.max() < 2**16
        dtype = np.uint16 if fits_uint16 else np.float32  # never uint8, which would compile the kernels again
        return table.astype(dtype)[image.astype(np.uint8)]
    unary = np.empty((*image.shape, len(values)), np.float32)
    for row, costs in zip(image, unary, strict=True):
        observed = scale.to_levels(row)
        costs[:] = cost(np.abs(observed[..., None] - levels), nearest_level(observed))
    return unary
