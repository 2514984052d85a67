"""The model of `denoise` and `inpaint`: labels are intensities, and neighbours have similar ones.

The model is built in grey levels, 255 from black to white, so that it is the same for every dtype. Defaults come from
the noise: the image of least energy is the most probable one if there is Gaussian noise of deviation sigma, a share of
the pixels are impulses, and neighbours differ by d with a probability proportional to exp(-d / 28), truncated.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps import keywords
from treefield.apps.clipping import clipping_limits
from treefield.apps.grey_levels import GreyScale, grey_scale
from treefield.apps.harmonic import harmonic_fill
from treefield.apps.image_arrays import stack_channels
from treefield.apps.level_model import Channel, DataCost, LevelModel, whole_box
from treefield.apps.noise import (
    GREY_LEVELS,
    MIN_OUTLIER_COST,
    SUPPORTING,
    Noise,
    central_box,
    estimate_noise,
    outlier_costs,
    support_costs,
)
from treefield.apps.problem import TOL, Problem, round_to_ten_bits
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts, TruncatedLinear, TruncatedQuadratic
from treefield.validation import as_choice, as_count, as_non_negative, as_positive, as_real_array, warn_caller

DATA = get_args(keywords.Data)
SMOOTHNESS = get_args(keywords.Smoothness)

# of the difference, in the cost
_POWERS = {"patches": 2, "squared": 2, "absolute": 1, "quadratic": 2, "linear": 1, "potts": 0}

# in grey levels
_TYPICAL_DIFFERENCE = {"patches": 35.0, "squared": 28.0, "absolute": 28.0}  # of neighbours
_CUTOFF = {"patches": 40.0, "squared": 100.0, "absolute": 100.0}
INPAINT_CUTOFF = 60.0
_MIN_SIGMA = 3.0  # of the model: less is texture
_MAX_SIGMA = 1e6
_LEVELS_PER_SIGMA = 4
_MAX_DIFFERENCE = 1e12
_TOL_BETWEEN_LEVELS = 5e-3
_MIN_ESTIMATED = 32  # pixels along each side of an image whose estimates can be relied on
_SECONDS_PER_COST = 1e-8  # of a pixel and level
_FAR_SIGMA, _FAR_WEIGHT, _FAR_TAU = (
    3.0,
    20.0,
    3.0,
)  # factors between a given value and the estimate at which a warning is due

NO_NOISE = "no noise found: the image is returned unchanged"


@dataclasses.dataclass(frozen=True)
class Costs:
    """The parameters of `denoise` and `inpaint` in the image's own units; None for a default that is computed."""

    data: str | None = None
    tau: float | None = None
    smoothness: str = "linear"
    weight: float | None = None
    cutoff: float | None = None
    sigma: float | None = None

    def __post_init__(self) -> None:
        if self.data is not None:
            as_choice(self.data, "data", DATA)
        as_choice(self.smoothness, "smoothness", SMOOTHNESS)
        for name in ("tau", "sigma", "cutoff"):
            if getattr(self, name) is not None:
                as_positive(getattr(self, name), name, infinite=name == "tau")
        if self.weight is not None:
            as_non_negative(self.weight, "weight")

    def in_grey_levels(self, scale: GreyScale, default: str, cutoff: float | None = None) -> LevelCosts:
        """The same costs in grey levels, divided by those of one grey level; `default` is the kind of data cost and
        `cutoff` the cutoff where none is given."""
        kind = self.data or default
        data, smoothness = _POWERS[kind], _POWERS[self.smoothness]
        cutoff = _CUTOFF[kind] if cutoff is None else cutoff
        sigma = None if self.sigma is None else scale.difference(self.sigma, "sigma")
        if sigma is not None and sigma > _MAX_SIGMA:
            raise ValueError(
                f"sigma must be at most {_MAX_SIGMA * scale.unit:g} for {scale.image} of this range, got {self.sigma:g}"
            )
        if self.cutoff is not None:
            cutoff = min(scale.difference(self.cutoff, "cutoff"), _MAX_DIFFERENCE)
        return LevelCosts(
            kind,
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


def restoration_problem(
    image: np.ndarray, model: LevelModel | None, noise: Noise, has_time: Callable[[], bool] = lambda: True
) -> Problem[GridMRF]:
    """The problem of removing the noise from an image with channels first, given its model if there is noise.

    `has_time` says whether there is time for more means of patches.
    """
    details: dict[str, object] = {"noise": noise}
    if model is None:
        details["message"] = NO_NOISE
        nothing = GridMRF(np.zeros((*(1 for _ in image.shape[1:]), 1), np.uint16), Potts(1))
        return Problem(nothing, lambda x: image.copy(), details=details, is_solved=True)
    box, (stacked, weights) = whole_box(image.shape[1:]), stack_channels(image)
    models = [model.prepared(channel, has_time) for channel in image]
    unary = np.concatenate([own.unary(channel, box) for own, channel in zip(models, image, strict=True)])
    mrf = GridMRF(unary.reshape(*stacked.shape, -1), model.pairwise, weights=weights)

    def output(x: np.ndarray) -> np.ndarray:
        labels = x.reshape(image.shape)
        channels = zip(models, image, labels, strict=True)
        return np.stack([own.restore(channel, label, box) for own, channel, label in channels])

    return Problem(mrf, output, details=details, tol=tolerance(model))


def restoration_model(
    channels: Sequence[Channel], low: np.generic, high: np.generic, levels: ArrayLike | None, costs: Costs
) -> tuple[LevelModel | None, Noise]:
    """The model of an image whose values go from `low` to `high`, and its noise, which is estimated in its centre.

    There is no model if there is no noise, and no parameter was given.
    """
    extremes = np.array([low, high], channels[0].dtype)
    scale = grey_scale(extremes)
    centre = central_box(channels[0].shape)
    sample = scale.to_levels(np.stack([channel[centre] for channel in channels]))
    noise = estimate_noise(sample)
    if noise.is_none and levels is None and costs == Costs():
        return None, noise
    is_plain = noise.has_impulses or costs.tau is not None
    level_costs = costs.in_grey_levels(scale, "squared" if is_plain else "patches")
    data = _data_cost(level_costs, noise)
    values = _default_levels(extremes, scale, data.sigma) if levels is None else intensity_levels(extremes, levels)
    pairwise = _pairwise(level_costs, data.nat, scale.to_levels(values))
    if min(channels[0].shape[-2:]) >= _MIN_ESTIMATED:
        _warn_if_far(costs, level_costs, noise, data, scale)
    is_patches, is_list = level_costs.data == "patches", levels is not None and np.ndim(levels) > 0
    model = LevelModel(
        values,
        scale,
        data,
        pairwise,
        similar=SUPPORTING + noise.sigma if noise.has_impulses and not is_patches else None,
        is_between=is_patches and not is_list,
        clipping=clipping_limits(sample, data.sigma, *scale.to_levels(extremes)),
    )
    return model, noise


def searching_seconds(pixels: int, model: LevelModel) -> float:
    """About how long the least work after the means of patches takes: building a model, a sweep, and restoring."""
    return _SECONDS_PER_COST * pixels * len(model.values)


def tolerance(model: LevelModel) -> float:
    """The default gap at which a search may end: means over levels change less than labels do."""
    return _TOL_BETWEEN_LEVELS if model.is_between else TOL


def fill_problem(image: np.ndarray, hole: np.ndarray, levels: ArrayLike, costs: Costs) -> Problem[GridMRF]:
    """The problem of filling the hole of an image with channels first, and removing the noise from the rest.

    There is no data cost in the hole.
    """
    values, scale = intensity_levels(image[:, ~hole], levels), grey_scale(image[:, ~hole])
    level_costs = costs.in_grey_levels(scale, "squared", INPAINT_CUTOFF)
    stacked, weights = stack_channels(image)
    noise = estimate_noise(np.where(hole, 0, scale.to_levels(image)), hole)
    data = _data_cost(_without_patches(level_costs), noise)
    if min(hole.shape[-2:]) >= _MIN_ESTIMATED:
        _warn_if_far(costs, level_costs, noise, data, scale)
    model = LevelModel(values, scale, data, _pairwise(level_costs, data.nat, scale.to_levels(values)))
    unary = np.stack([model.unary(channel, whole_box(hole.shape)) for channel in image])
    unary[:, hole] = 0
    mrf = GridMRF(unary.reshape(*stacked.shape, -1), model.pairwise, weights=weights)
    start = nearest_index(values, harmonic_fill(image, hole)).reshape(stacked.shape)
    return Problem(mrf, lambda x: values.astype(image.dtype)[x].reshape(image.shape), start)


def smoothness_cost(costs: LevelCosts, grey: np.ndarray) -> Potts | TruncatedLinear | TruncatedQuadratic:
    """The pairwise cost of levels at these grey levels where there is no data cost: a weight of 1 by default."""
    costs = _without_patches(costs)
    return _pairwise(dataclasses.replace(costs, weight=1.0) if costs.weight is None else costs, 1.0, grey)


def nearest_index(levels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The indices, int32, of the nearest of some ascending levels."""
    return np.searchsorted((levels[1:] + levels[:-1]) / 2, values).astype(np.int32)


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
    given = as_real_array(levels, "levels")
    if given.ndim != 1:
        raise ValueError(f"levels has shape {given.shape}, expected a number of levels, or a list of values")
    values = np.unique(given.astype(np.float64))
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


def _data_cost(costs: LevelCosts, noise: Noise) -> DataCost:
    sigma = max(noise.sigma, _MIN_SIGMA) if costs.sigma is None else costs.sigma
    nat = sigma / np.sqrt(2) if costs.data == "absolute" else 2 * sigma**2
    if costs.tau is not None:
        return DataCost(costs.data, np.full((GREY_LEVELS, 9), float(costs.tau)), nat, sigma)
    nats = outlier_costs(sigma, noise.impulses)[:, None] + support_costs(noise.impulses)
    return DataCost(costs.data, np.maximum(1.0, np.round(nat * nats)), nat, sigma)


def _without_patches(costs: LevelCosts) -> LevelCosts:
    """Raise for a data cost that needs the whole image in memory, and all of it known."""
    if costs.data == "patches":
        raise ValueError('data="patches" goes with denoise of an image in memory; expected "squared" or "absolute"')
    return costs


def _default_levels(extremes: np.ndarray, scale: GreyScale, sigma: float) -> np.ndarray:
    """The default levels: at most a quarter of sigma apart, and the same whatever part of the range an image uses."""
    steps = min(GREY_LEVELS - 1, max(1, math.ceil(_LEVELS_PER_SIGMA * (GREY_LEVELS - 1) / sigma)))
    low, high = scale.to_levels(extremes) * steps / (GREY_LEVELS - 1)
    grey = np.arange(math.floor(low), math.ceil(high) + 1) * (GREY_LEVELS - 1) / steps
    values = scale.black + scale.unit * grey
    return np.unique(np.round(values) if extremes.dtype.kind in "ui" else values)


def _warn_if_far(costs: Costs, level_costs: LevelCosts, noise: Noise, data: DataCost, scale: GreyScale) -> None:
    """Warn of parameters that are far from what the image suggests: they may be in other units."""
    if costs.tau is not None and level_costs.tau is not None:
        least = MIN_OUTLIER_COST * data.nat
        if level_costs.tau < least / _FAR_TAU:
            warn_caller(
                f"tau={costs.tau:g} is far below {costs.tau * (least / level_costs.tau):.3g}, what the noise of the "
                f"image costs in the units of {scale.image}: almost all observed values are ignored"
            )
        return
    if costs.sigma is not None and level_costs.sigma is not None:
        sigma, estimate = level_costs.sigma, max(noise.sigma, _MIN_SIGMA)
        if not estimate / _FAR_SIGMA <= sigma <= estimate * _FAR_SIGMA:
            warn_caller(
                f"sigma={costs.sigma:g} is far from the noise of the image, estimated as "
                f"{noise.sigma * scale.unit:.3g} in the units of {scale.image}"
            )
    if costs.weight and level_costs.weight is not None:
        weight = _default_weight(level_costs, data.nat)
        if not weight / _FAR_WEIGHT <= level_costs.weight <= weight * _FAR_WEIGHT:
            usual = costs.weight * (weight / level_costs.weight)
            warn_caller(
                f"weight={costs.weight:g} is far from {usual:.3g}, which the noise of the image suggests in the units "
                f"of {scale.image}"
            )


def _default_weight(costs: LevelCosts, nat: float) -> float:
    """The default weight of the pairwise cost. All kinds have the same maximum."""
    maximum = nat * costs.cutoff / _TYPICAL_DIFFERENCE[costs.data]
    return maximum / {"potts": 1.0, "linear": costs.cutoff, "quadratic": costs.cutoff * costs.cutoff}[costs.smoothness]


def _pairwise(costs: LevelCosts, nat: float, grey: np.ndarray) -> Potts | TruncatedLinear | TruncatedQuadratic:
    """The pairwise cost of levels at these grey levels."""
    weight = round_to_ten_bits(_default_weight(costs, nat)) if costs.weight is None else costs.weight
    values = None if np.array_equal(np.diff(grey), np.ones(len(grey) - 1)) else grey
    if costs.smoothness == "potts":
        return Potts(weight)
    if costs.smoothness == "linear":
        return TruncatedLinear(weight, costs.cutoff, values)
    return TruncatedQuadratic(weight, costs.cutoff * costs.cutoff, values)
