"""Levels of intensity as labels: what each costs at each pixel, and the values that a labelling restores.

Costs are computed from the image where they are needed, box by box: they are the same whatever the box.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from treefield.apps.clipping import undo_clipping
from treefield.apps.grey_levels import GreyScale
from treefield.apps.noise import count_support, nearest_level
from treefield.apps.patch_means import BAND, BORDER, patch_means
from treefield.models.pairwise import Potts, TruncatedLinear, TruncatedQuadratic
from treefield.tiling.array_protocols import Box
from treefield.validation import all_integral, as_thread_count

_COARSE_NAT = 64.0  # costs, from which on rounding them to integers changes nothing
_CONFIDENCE = 0.7  # power of the number of pixels in a mean: 1 if similar patches were equal but for their noise
_SUPPORT_BORDER = 2  # pixels: neighbours, and the neighbours that support these
_PREPARED_ROWS = 4 * BAND  # of which the means are computed at once
_REACH = 6  # levels to each side of the label that count for a value between the levels


class Channel(Protocol):
    """A channel of an image, in memory or not."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __getitem__(self, box: Box, /) -> np.ndarray: ...


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


@dataclasses.dataclass(frozen=True)
class LevelModel:
    """The model of one image, for any box of it.

    Attributes
    ----------
    values : array
        The levels in the image's own units, ascending.
    scale : GreyScale
    data : DataCost
    pairwise : Potts, TruncatedLinear or TruncatedQuadratic
    similar : float or None
        The difference, in grey levels, within which a neighbour supports a pixel; None if support does not count.
    is_between : bool
        Whether restored values lie between the levels.
    clipping : (float, float) or None
        The grey levels at which the noise was clipped; None if it was not.
    """

    values: np.ndarray
    scale: GreyScale
    data: DataCost
    pairwise: Potts | TruncatedLinear | TruncatedQuadratic
    similar: float | None = None
    is_between: bool = False
    clipping: tuple[float, float] | None = None

    @functools.cached_property
    def _levels(self) -> np.ndarray:
        """The levels in grey levels."""
        return self.scale.to_levels(self.values)

    def prepared(self, channel: Channel, has_time: Callable[[], bool] = lambda: True) -> LevelModel:
        """The same model with the means of a whole channel in memory, 12 bytes a pixel; the model itself if it has
        none. Where no time is left for the means, pixels stand for themselves."""
        if self.data.kind != "patches":
            return self
        evidence = tuple(np.empty(channel.shape, np.float32) for _ in range(3))
        rows, step = channel.shape[-2], _PREPARED_ROWS
        for first in range(0, rows, step):
            box = (*whole_box(channel.shape[:-2]), slice(first, min(rows, first + step)), slice(0, channel.shape[-1]))
            look = self._evidence if has_time() else self._evidence_of_pixels
            for whole, part in zip(evidence, look(channel, box), strict=True):
                whole[box] = part
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return _PreparedModel(**fields, evidence=evidence)

    def unary(self, channel: Channel, box: Box) -> np.ndarray:
        """The cost of every level at every pixel of a box; in uint16 where that is exact enough."""
        if self.data.kind == "patches":
            return self._patch_costs(channel, box)
        support = None if self.similar is None else self._support(channel, box, self.similar)
        image = channel[box]
        if image.dtype.kind in "bu" and image.dtype.itemsize == 1:  # few values: look them up
            return self._costs_of_bytes[0 if support is None else support, image.astype(np.uint8)]
        unary = np.empty((*image.shape, len(self.values)), np.float32)
        for row in range(len(image)):
            observed = self.scale.to_levels(image[row])
            neighbours = 0 if support is None else support[row]
            unary[row] = self.data(np.abs(observed[..., None] - self._levels), nearest_level(observed), neighbours)
        return unary

    def restore(self, channel: Channel, x: Channel, box: Box) -> np.ndarray:
        """The restored values of a box, of the image's dtype, given the labels `x` of the whole channel."""
        if not self.is_between:
            return self.values.astype(channel.dtype)[x[box]]
        around = tuple(slice(max(0, part.start - 1), part.stop + 1) for part in box)
        missing = [(int(part.start == 0), int(part.stop == n)) for part, n in zip(box, channel.shape, strict=True)]
        labels = np.pad(x[around].astype(np.int32), missing, constant_values=-1)
        averages = self._level_averages(labels, *self._evidence(channel, box))
        return self.scale.from_levels(averages, self.values[0], self.values[-1], channel.dtype)

    def _level_averages(
        self, labels: np.ndarray, means: np.ndarray, confidence: np.ndarray, most: np.ndarray
    ) -> np.ndarray:
        """The mean of each pixel's levels, given the labels of its neighbours, in grey levels."""
        from treefield.kernels.images.level_costs import average_levels

        heat = 1 / self.data.nat
        table = heat * self.pairwise.weight * self.pairwise.table(len(self.values))
        if means.ndim == 2:
            labels = np.pad(labels[None], ((1, 1), (0, 0), (0, 0)), constant_values=-1)
        planes = [array.reshape(-1, *array.shape[-2:]) for array in (means, confidence, most)]
        averages = np.empty_like(planes[0])
        constants = table.astype(np.float32), self._levels.astype(np.float32), np.float32(heat)
        axis = 0 if len(averages) > 1 else 1

        def average(first: int) -> None:
            part, around = ((slice(None),) * axis + (slice(first, first + BAND + k),) for k in (0, 2))
            table, levels, heat = constants
            workspace = np.empty(2 * _REACH + 1, np.float32)
            inputs = [plane[part] for plane in planes]
            average_levels(labels[around], table, *inputs, levels, heat, workspace, averages[part])

        with ThreadPoolExecutor(as_thread_count(None), thread_name_prefix="treefield") as pool:
            list(pool.map(average, range(0, averages.shape[axis], BAND)))
        return averages.reshape(means.shape)

    def _patch_costs(self, channel: Channel, box: Box) -> np.ndarray:
        from treefield.kernels.images.level_costs import squared_costs

        means, confidence, most = self._evidence(channel, box)
        is_coarse = self.data.nat >= _COARSE_NAT and self.data.tau[:, 0].max() < 2**16 - 1
        costs = np.empty((means.size, len(self.values)), np.uint16 if is_coarse else np.float32)
        pixels = [array.reshape(-1) for array in (means, confidence, most)]
        squared_costs(*pixels, self._levels.astype(np.float32), np.float32(0.5 if is_coarse else 0), costs)
        return costs.reshape(*means.shape, -1)

    def _evidence(self, channel: Channel, box: Box) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mean of similar patches at each pixel of a box, its factor, and the greatest cost; all float32."""
        # sums along the columns begin anew in each band: bands must be those of the whole image
        start, stop = box[-2].start, box[-2].stop
        aligned = (*box[:-2], slice(start - start % BAND, min(channel.shape[-2], stop + -stop % BAND)), box[-1])
        image, mirrored = read_mirrored(channel, aligned, BORDER)
        padded = self.scale.to_levels(image).astype(np.float32)
        rows = slice(start % BAND, start % BAND + stop - start)
        means, counts = (array[..., rows, :] for array in patch_means(padded, self.data.sigma, mirrored))
        if self.clipping is not None:
            means = undo_clipping(means, self.data.sigma, *self.clipping)
        confidence = np.minimum(counts**_CONFIDENCE, max(self.data.sigma, 1.0) ** 2).astype(np.float32)
        observed = padded[..., BORDER:-BORDER, BORDER:-BORDER][..., rows, :]
        return np.ascontiguousarray(means), np.ascontiguousarray(confidence), self._greatest_costs(observed)

    def _evidence_of_pixels(self, channel: Channel, box: Box) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same from each pixel alone."""
        observed = self.scale.to_levels(channel[box]).astype(np.float32)
        return observed, np.ones_like(observed), self._greatest_costs(observed)

    def _greatest_costs(self, observed: np.ndarray) -> np.ndarray:
        return self.data.tau[:, 0].astype(np.float32)[nearest_level(observed)]

    def _support(self, channel: Channel, box: Box, similar: float) -> np.ndarray:
        """How many neighbours support each pixel of a box."""
        around = [
            slice(max(0, part.start - _SUPPORT_BORDER), min(n, part.stop + _SUPPORT_BORDER))
            for part, n in zip(box[-2:], channel.shape[-2:], strict=True)
        ]
        grey = self.scale.to_levels(channel[(*box[:-2], *around)])
        inside = [slice(p.start - a.start, p.stop - a.start) for p, a in zip(box[-2:], around, strict=True)]
        return count_support(grey, similar)[..., inside[0], inside[1]]

    @functools.cached_property
    def _costs_of_bytes(self) -> np.ndarray:
        """The costs of an 8-bit image: [number of supporting neighbours][value][level]."""
        observed = self.scale.to_levels(np.arange(256))
        difference, numbers = np.abs(observed[:, None] - self._levels), range(1 if self.similar is None else 9)
        table = np.stack([self.data(difference, nearest_level(observed), number) for number in numbers])
        fits_uint16 = all_integral(table) and table.max() < 2**16
        return table.astype(np.uint16 if fits_uint16 else np.float32)  # never uint8, which would compile kernels again


@dataclasses.dataclass(frozen=True)
class _PreparedModel(LevelModel):
    """The model of one channel, whose means are in memory."""

    evidence: tuple[np.ndarray, ...] = ()

    def _evidence(self, channel: Channel, box: Box) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        means, confidence, most = (np.ascontiguousarray(array[box]) for array in self.evidence)
        return means, confidence, most


def whole_box(shape: tuple[int, ...]) -> Box:
    """The box of all pixels."""
    return tuple(slice(0, n) for n in shape)


def read_mirrored(channel: Channel, box: Box, border: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """A box with a border in its last two axes, in which the image is mirrored beyond its own borders; and how many
    pixels are mirrored on each side."""
    around, sides = list(box), []
    for axis in (-2, -1):
        part, n = box[axis], channel.shape[axis]
        low, high = part.start - border, part.stop + border
        around[axis] = slice(max(0, low), min(n, high))
        sides.append((max(0, -low), max(0, high - n)))
    return np.pad(channel[tuple(around)], [(0, 0)] * (len(box) - 2) + sides, mode="symmetric"), sides
