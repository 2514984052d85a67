"""The model behind `denoise` and `inpaint`: labels are intensity levels, and neighbours are alike.

Costs are in steps of grey, 255 from black to white, so that they mean the same for every dtype. What is not given comes
from the noise: with Gaussian noise of deviation sigma, a share of pixels that are something else altogether, and
neighbours that differ by d with a probability falling like exp(-d / 28), up to a cutoff, the most probable image is the
one of least energy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from treefield.apps.harmonic import harmonic_fill
from treefield.apps.noise import STEPS, estimate_noise, middle_of, nearest_step, outlier_costs
from treefield.apps.pictures import Scale, grey_scale, stack_channels
from treefield.apps.problem import Problem, short
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts, TruncatedLinear, TruncatedQuadratic
from treefield.models.tiled import TiledMRF
from treefield.validation import as_choice, as_count, as_non_negative, as_positive, as_real_array

DATA = ("squared", "absolute")
SMOOTHNESS = ("linear", "quadratic", "potts")

_STEP = 28.0  # steps of grey by which neighbours differ, typically
_CUTOFF = 100.0  # steps of grey
_LARGEST_SIGMA = 1e6  # steps of grey
_FARTHEST = 1e12  # steps of grey


@dataclasses.dataclass(frozen=True)
class Costs:
    """What `denoise` and `inpaint` may be told of the model; None for what comes from the noise."""

    data: str = "squared"
    tau: float | None = None
    smoothness: str = "linear"
    weight: float | None = None
    cutoff: float = _CUTOFF
    sigma: float | None = None

    def __post_init__(self) -> None:
        as_choice(self.data, "data", DATA)
        as_choice(self.smoothness, "smoothness", SMOOTHNESS)
        for name in ("tau", "sigma"):
            if getattr(self, name) is not None:
                as_positive(getattr(self, name), name, infinite=name == "tau")
        if self.sigma is not None and self.sigma > _LARGEST_SIGMA:
            raise ValueError(f"sigma must be at most {_LARGEST_SIGMA:g} steps of grey, got {self.sigma:g}")
        if self.weight is not None:
            as_non_negative(self.weight, "weight")
        as_positive(self.cutoff, "cutoff")


def restoring(image: np.ndarray, levels: Any, costs: Costs) -> Problem:
    """The problem of taking the noise from an image with channels first."""
    values, scale = intensity_levels(image, levels), grey_scale(image)
    stacked, weights = stack_channels(image)
    cost = _data_cost(costs, scale.grey(image), None)
    unary = _unary(stacked, values, scale, cost)
    mrf = GridMRF(unary, _smoothness(costs, cost.nats, scale.grey(values)), weights=weights)
    return Problem(mrf, lambda x: values.astype(image.dtype)[x].reshape(image.shape))


def restoring_tiles(
    channels: list[Any], low: Any, high: Any, levels: Any, costs: Costs, **tiling: Any
) -> Iterator[Problem]:
    """The same problem, one for each channel of an image that need only be sliceable, of values from `low` to `high`,
    as tiled models; their `output` is for the labels of any box."""
    shape, dtype = channels[0].shape, channels[0].dtype
    extremes = np.array([low, high], dtype)
    values, scale = intensity_levels(extremes, levels), grey_scale(extremes)
    middle = np.stack([channel[middle_of(shape)] for channel in channels])
    cost = _data_cost(costs, scale.grey(middle), None)
    smooth = _smoothness(costs, cost.nats, scale.grey(values))
    for channel in channels:

        def unary(box: Any, channel: Any = channel) -> np.ndarray:
            return _unary(channel[box], values, scale, cost)

        mrf = TiledMRF(unary, smooth, shape=shape, labels=len(values), **tiling)
        yield Problem(mrf, lambda x: values.astype(dtype)[x])


def filling(image: np.ndarray, hole: np.ndarray, keep: bool, levels: Any, costs: Costs) -> Problem:
    """The problem of filling the hole of an image with channels first, where there is no data cost; with `keep` all
    other pixels stay as they are."""
    if hole.all():
        raise ValueError("mask covers the whole image: there is nothing to fill it from")
    values, scale = intensity_levels(image[:, ~hole], levels), grey_scale(image[:, ~hole])
    stacked, weights = stack_channels(image)
    holes = np.broadcast_to(hole, image.shape).reshape(stacked.shape)
    cost = _data_cost(costs, np.where(hole, 0, scale.grey(image)), hole)
    smooth = _smoothness(costs, cost.nats, scale.grey(values))
    if keep:
        dearest = 2 * stacked.ndim * smooth.weight * float(smooth.costs(len(values)).max()) + 1
        cost = DataCost("kept", np.full(STEPS, dearest), 1.0)
        weights = [weight * touched(holes, axis) for axis, weight in enumerate(weights or [1] * stacked.ndim)]
    unary = _unary(stacked, values, scale, cost)
    unary[holes] = 0

    def output(x: np.ndarray) -> np.ndarray:
        restored = values.astype(image.dtype)[x].reshape(image.shape)
        return np.where(hole, restored, image) if keep else restored

    smoothest = np.searchsorted((values[1:] + values[:-1]) / 2, harmonic_fill(image, hole).reshape(stacked.shape))
    return Problem(GridMRF(unary, smooth, weights=weights), output, smoothest.astype(np.int32))


def touched(sites: np.ndarray, axis: int) -> np.ndarray:
    """Which edges along an axis have an end among these sites."""
    before, after = np.delete(sites, -1, axis), np.delete(sites, 0, axis)
    return (before | after).astype(np.uint8)


def intensity_levels(image: np.ndarray, levels: Any) -> np.ndarray:
    """The values that a restored pixel may have, ascending: as given, or so many over the image's range, which for
    integers are all there are if that is enough."""
    if isinstance(levels, list | tuple) or np.ndim(levels):
        values = np.unique(as_real_array(levels, "levels").astype(np.float64))
        if not values.size or not np.isfinite(values).all():
            raise ValueError("levels must be a number of levels, or a list of finite values")
        if image.dtype.kind in "bui":
            with np.errstate(invalid="ignore"):
                kept = values.astype(image.dtype)
            if not np.array_equal(kept, values):
                raise ValueError(f"levels holds values that an image of {image.dtype} cannot have")
        farthest = max(-values[0], values[-1])
        if farthest > _FARTHEST * max(grey_scale(image).unit, float(np.abs(image).max())):
            raise ValueError(f"levels holds values up to {farthest:g}, much more than the image: scale them")
        return values
    number = as_count(levels, "levels", 1)
    low, high = image.min(), image.max()
    if image.dtype.kind in "bui" and int(high) - int(low) < number:
        return np.arange(int(low), int(high) + 1, dtype=np.float64)
    values = np.linspace(float(low), float(high), number)
    return np.unique(np.round(values) if image.dtype.kind in "ui" else values)


@dataclasses.dataclass(frozen=True)
class DataCost:
    """A cost of differing from what was seen, of at most `tau`, one number for each of 256 steps of grey that was seen;
    `nats` is how much of it one nat of log probability is."""

    kind: str
    tau: np.ndarray
    nats: float

    def __call__(self, difference: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Of all levels, by their distance along the last axis from what was `seen`."""
        most = self.tau[seen][..., None]
        if self.kind == "kept":
            return np.where(difference == difference.min(axis=-1, keepdims=True), 0.0, most)
        return np.minimum(difference * difference if self.kind == "squared" else difference, most)


def _data_cost(costs: Costs, grey: np.ndarray, hole: np.ndarray | None) -> DataCost:
    if costs.sigma is None or costs.tau is None:
        sigma, impulses = estimate_noise(grey, hole)
    if costs.sigma is not None:
        sigma = costs.sigma
    nats = 2 * sigma**2 if costs.data == "squared" else sigma / np.sqrt(2)
    if costs.tau is not None:
        return DataCost(costs.data, np.full(STEPS, float(costs.tau)), nats)
    return DataCost(costs.data, np.maximum(1.0, np.round(nats * outlier_costs(sigma, impulses))), nats)


def _smoothness(costs: Costs, nats: float, grey: np.ndarray) -> Any:
    """The pairwise cost of levels at these steps of grey; all kinds cost the same from the cutoff on."""
    most = nats * costs.cutoff / _STEP
    values = None if np.array_equal(np.diff(grey), np.ones(len(grey) - 1)) else grey
    if costs.smoothness == "potts":
        return Potts(_first(costs.weight, most))
    if costs.smoothness == "linear":
        return TruncatedLinear(_first(costs.weight, most / costs.cutoff), costs.cutoff, values)
    square = costs.cutoff * costs.cutoff  # inf, which does not truncate, where ** would overflow
    return TruncatedQuadratic(_first(costs.weight, most / square), square, values)


def _first(given: float | None, default: float) -> float:
    return short(default) if given is None else given


def _unary(image: np.ndarray, values: np.ndarray, scale: Scale, cost: DataCost) -> np.ndarray:
    """The cost of every level at every pixel: of whole numbers where all are."""
    levels = scale.grey(values)
    if image.dtype.kind in "bu" and image.dtype.itemsize == 1:  # few values: look them up
        seen = scale.grey(np.arange(256))
        table = cost(np.abs(seen[:, None] - levels), nearest_step(seen))
        whole = np.array_equal(table, np.round(table)) and table.max() < 2**16
        dtype = np.uint16 if whole else np.float32  # no uint8: what is compiled for one image serves the others
        return table.astype(dtype)[image.astype(np.uint8)]
    unary = np.empty((*image.shape, len(values)), np.float32)
    for row, costs in zip(image, unary, strict=True):
        seen = scale.grey(row)
        costs[:] = cost(np.abs(seen[..., None] - levels), nearest_step(seen))
    return unary
