"""The model of `denoise` and `inpaint`: labels are intensities, and neighbours have similar ones.

The model is built in grey levels, 255 from black to white, so that it is the same for every dtype. Defaults come from
the noise: the image of least energy is the most probable one if there is Gaussian noise of deviation sigma, a share of
the pixels are impulses, and neighbours differ by d with a probability proportional to exp(-d / 28), truncated.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps import keywords
from treefield.apps.grey_levels import GreyScale, grey_scale
from treefield.apps.harmonic import harmonic_fill
from treefield.apps.image_arrays import stack_channels
from treefield.apps.level_means import level_means
from treefield.apps.noise import (
    GREY_LEVELS,
    SUPPORTING,
    Noise,
    central_box,
    count_support,
    estimate_noise,
    nearest_level,
    outlier_costs,
    support_costs,
)
from treefield.apps.patch_means import patch_means
from treefield.apps.problem import Problem, round_to_ten_bits
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts, TruncatedLinear, TruncatedQuadratic
from treefield.tiling.array_protocols import Box
from treefield.tiling.model import TiledMRF
from treefield.validation import all_integral, as_choice, as_count, as_non_negative, as_positive, as_real_array

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
_COARSE_NAT = 64.0
_CONFIDENCE = 0.7  # power of the number of pixels in a mean: 1 if similar patches were equal but for their noise
_MAX_DIFFERENCE = 1e12


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


def restoration_problem(image: np.ndarray, levels: ArrayLike | None, costs: Costs) -> Problem[GridMRF]:
    """The problem of removing the noise from an image with channels first."""
    scale = grey_scale(image)
    noise = estimate_noise(scale.to_levels(image))
    details: dict[str, object] = {"noise": noise}
    if noise.is_none and levels is None and costs == Costs():
        details["message"] = "no noise found: the image is returned unchanged"
        nothing = GridMRF(np.zeros((*(1 for _ in image.shape[1:]), 1), np.uint16), Potts(1))
        return Problem(nothing, lambda x: image.copy(), details=details)
    is_plain = noise.has_impulses or costs.tau is not None
    level_costs = costs.in_grey_levels(scale, "squared" if is_plain else "patches")
    data = _data_cost(level_costs, noise)
    values = intensity_levels(image, _default_levels(image, scale, data.sigma) if levels is None else levels)
    pairwise = _pairwise(level_costs, data.nat, scale.to_levels(values))
    stacked, weights = stack_channels(image)
    if level_costs.data != "patches":
        support = None
        if noise.has_impulses:
            support = count_support(scale.to_levels(image), SUPPORTING + noise.sigma).reshape(stacked.shape)
        mrf = GridMRF(_unary(stacked, values, scale, data, support), pairwise, weights=weights)
        return Problem(mrf, lambda x: values.astype(image.dtype)[x].reshape(image.shape), details=details)
    unary = patch_costs(scale.to_levels(image), scale.to_levels(values), data)
    mrf = GridMRF(unary.reshape(*stacked.shape, -1), pairwise, weights=weights)
    is_list = levels is not None and np.ndim(levels) > 0

    def output(x: np.ndarray) -> np.ndarray:
        labels = x.reshape(image.shape)
        if is_list:
            return values.astype(image.dtype)[labels]
        grey = scale.to_levels(values)
        means = [level_means(*one, grey, data.nat) for one in zip(unary, repeat(pairwise), labels, strict=False)]
        return scale.from_levels(np.stack(means), values[0], values[-1], image.dtype)

    return Problem(mrf, output, details=details)


def tiled_restoration_problems(
    channels: Sequence[Channel],
    low: np.generic,
    high: np.generic,
    levels: ArrayLike | None,
    costs: Costs,
    tiling: Tiling,
) -> Iterator[Problem[TiledMRF]]:
    """The same problem for each channel of an image larger than memory, as tiled models.

    The values of all channels go from `low` to `high`. The `output` of a problem takes the labels of any box.
    """
    shape, dtype = channels[0].shape, channels[0].dtype
    extremes = np.array([low, high], dtype)
    scale = grey_scale(extremes)
    level_costs = _without_patches(costs.in_grey_levels(scale, "squared"))
    sample = np.stack([channel[central_box(shape)] for channel in channels])
    data = _data_cost(level_costs, estimate_noise(scale.to_levels(sample)))
    values = intensity_levels(extremes, _default_levels(extremes, scale, data.sigma) if levels is None else levels)
    pairwise = _pairwise(level_costs, data.nat, scale.to_levels(values))
    for channel in channels:

        def unary(box: Box, channel: Channel = channel) -> np.ndarray:
            return _unary(channel[box], values, scale, data)

        mrf = TiledMRF(unary, pairwise, shape=shape, n_labels=len(values), **tiling._asdict())
        yield Problem(mrf, lambda x: values.astype(dtype)[x])


def fill_problem(image: np.ndarray, hole: np.ndarray, levels: ArrayLike, costs: Costs) -> Problem[GridMRF]:
    """The problem of filling the hole of an image with channels first, and removing the noise from the rest.

    There is no data cost in the hole.
    """
    values, scale = intensity_levels(image[:, ~hole], levels), grey_scale(image[:, ~hole])
    level_costs = costs.in_grey_levels(scale, "squared", INPAINT_CUTOFF)
    stacked, weights = stack_channels(image)
    noise = estimate_noise(np.where(hole, 0, scale.to_levels(image)), hole)
    data = _data_cost(_without_patches(level_costs), noise)
    unary = _unary(stacked, values, scale, data)
    unary[np.broadcast_to(hole, image.shape).reshape(stacked.shape)] = 0
    mrf = GridMRF(unary, _pairwise(level_costs, data.nat, scale.to_levels(values)), weights=weights)
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
    kind : "patches", "squared" or "absolute"
    tau : (256, 9) array
        The maximum for each observed grey level and number of neighbours that support it.
    nat : float
        The cost that corresponds to one nat of log probability.
    sigma : float
        The standard deviation of the noise, in grey levels.
    """

    kind: str
    tau: np.ndarray
    nat: float
    sigma: float

    def __call__(self, difference: np.ndarray, observed: np.ndarray, support: np.ndarray | int = 0) -> np.ndarray:
        """The costs of all levels, from their differences to the observed value, along the last axis; `support` is the
        number of neighbours that support it."""
        most = self.tau[observed, support][..., None]
        return np.minimum(difference if self.kind == "absolute" else difference * difference, most)


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


def label_count(image: np.ndarray, levels: ArrayLike | None, costs: Costs) -> int:
    """The number of labels of `restoration_problem`, without its work."""
    scale = grey_scale(image)
    data = _data_cost(costs.in_grey_levels(scale, "squared"), estimate_noise(scale.to_levels(image)))
    return len(intensity_levels(image, _default_levels(image, scale, data.sigma) if levels is None else levels))


def _default_levels(image: np.ndarray, scale: GreyScale, sigma: float) -> int:
    """The default number of levels: a quarter of sigma apart."""
    span = float(np.ptp(scale.to_levels(np.array([image.min(), image.max()]))))
    return min(GREY_LEVELS, max(2, math.ceil(_LEVELS_PER_SIGMA * span / sigma) + 1))


def patch_costs(grey: np.ndarray, levels: np.ndarray, cost: DataCost) -> np.ndarray:
    """The cost of every level at every pixel (..., label), from the means of pixels with similar patches.

    In uint16, half the memory of float32, where rounding to integers is far less than a nat.
    """
    means, counts = patch_means(grey, cost.sigma)
    confidence = np.minimum(counts**_CONFIDENCE, max(cost.sigma, 1.0) ** 2)
    is_coarse = cost.nat >= _COARSE_NAT and cost.tau[:, 0].max() < 2**16
    costs = np.empty((*grey.shape, len(levels)), np.uint16 if is_coarse else np.float32)
    for row in np.ndindex(grey.shape[:-1]):
        difference = np.sqrt(confidence[row])[:, None] * np.abs(means[row][:, None] - levels)
        values = cost(difference, nearest_level(grey[row]))
        costs[row] = np.round(values) if is_coarse else values
    return costs


def _pairwise(costs: LevelCosts, nat: float, grey: np.ndarray) -> Potts | TruncatedLinear | TruncatedQuadratic:
    """The pairwise cost of levels at these grey levels. By default all kinds have the same maximum."""
    maximum = nat * costs.cutoff / _TYPICAL_DIFFERENCE[costs.data]
    square = costs.cutoff * costs.cutoff
    defaults = {"potts": maximum, "linear": maximum / costs.cutoff, "quadratic": maximum / square}
    weight = round_to_ten_bits(defaults[costs.smoothness]) if costs.weight is None else costs.weight
    values = None if np.array_equal(np.diff(grey), np.ones(len(grey) - 1)) else grey
    if costs.smoothness == "potts":
        return Potts(weight)
    if costs.smoothness == "linear":
        return TruncatedLinear(weight, costs.cutoff, values)
    return TruncatedQuadratic(weight, square, values)


def _unary(
    image: np.ndarray, values: np.ndarray, scale: GreyScale, cost: DataCost, support: np.ndarray | None = None
) -> np.ndarray:
    """The cost of every level at every pixel; of an integer dtype if all costs of an 8-bit image are integers.

    `support` is the number of neighbours that support it of each pixel; without it no outlier is supported.
    """
    levels = scale.to_levels(values)
    if image.dtype.kind in "bu" and image.dtype.itemsize == 1:  # few values: look them up
        observed = scale.to_levels(np.arange(256))
        difference, numbers = np.abs(observed[:, None] - levels), range(1 if support is None else 9)
        table = np.stack([cost(difference, nearest_level(observed), number) for number in numbers])
        fits_uint16 = all_integral(table) and table.max() < 2**16
        dtype = np.uint16 if fits_uint16 else np.float32  # never uint8, which would compile the kernels again
        return table.astype(dtype)[0 if support is None else support, image.astype(np.uint8)]
    unary = np.empty((*image.shape, len(values)), np.float32)
    for row in range(len(image)):
        observed = scale.to_levels(image[row])
        neighbours = 0 if support is None else support[row]
        unary[row] = cost(np.abs(observed[..., None] - levels), nearest_level(observed), neighbours)
    return unary
