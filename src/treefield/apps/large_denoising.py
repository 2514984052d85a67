"""Denoise an image that is in memory with a model that is not."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Literal, overload

import numpy as np

from treefield.apps.level_model import LevelModel
from treefield.apps.noise import Noise
from treefield.apps.tiled_restoration import Tiling, combine_results, restore_planes
from treefield.results import MAPResult
from treefield.solvers.loop import Timer
from treefield.tiling.array_protocols import Box
from treefield.validation import label_dtype

TILE_BYTES = 5 * 10**8  # for the search of tiles, at most: larger ones are no better, and take longer to interrupt
BYTES_PER_LABEL = 20  # of each site: its costs, packed for both axes, and messages


def search_bytes(pixels: int, model: LevelModel) -> int:
    """The bytes that the search of a whole image may need."""
    return pixels * len(model.values) * BYTES_PER_LABEL


@dataclasses.dataclass
class LargeDenoising:
    """The problem of `denoise` for an image whose costs do not fit into the memory limit: it is solved by tiles.

    Attributes
    ----------
    image : array with channels first
    model : LevelModel
    noise : Noise
    output : function
        Takes the restored image with channels first; returns it as the image was given.
    timer : Timer
        Seconds since the call.
    memory_limit : int
    """

    image: np.ndarray
    model: LevelModel
    noise: Noise
    output: Callable[[np.ndarray], np.ndarray]
    timer: Timer
    memory_limit: int

    def example_output(self) -> np.ndarray:
        """An array of the shape, dtype and greatest value of any answer."""
        return self.output(self.image)

    @overload
    def solve(self, full_output: Literal[False], **options: object) -> np.ndarray: ...
    @overload
    def solve(self, full_output: Literal[True], **options: object) -> tuple[np.ndarray, MAPResult]: ...
    @overload
    def solve(self, full_output: bool, **options: object) -> np.ndarray | tuple[np.ndarray, MAPResult]: ...
    def solve(self, full_output: bool, **options: object) -> np.ndarray | tuple[np.ndarray, MAPResult]:
        """The restored image, with `full_output` also the result of the search."""
        restored = np.empty_like(self.image)
        labels = np.zeros(self.image.shape, label_dtype(len(self.model.values)))

        def write(number: int, box: Box, values: np.ndarray) -> None:
            restored[number][box] = values

        results, models = restore_planes(
            list(self.image),
            self.model,
            Tiling(None, self.memory_limit),
            lambda number: _LabelArray(labels[number]),
            write,
            options,
            self.timer,
            is_prepared=True,
        )
        answer = self.output(restored)
        if not full_output:
            return answer
        stacked = labels.reshape(-1, *labels.shape[2:])
        return answer, combine_results(results, stacked, mrf=models, noise=self.noise)


class _LabelArray:
    """Labels in memory."""

    def __init__(self, array: np.ndarray) -> None:
        self.store = array

    def read(self) -> np.ndarray:
        """The array itself."""
        return self.store

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Nothing is done at the end."""
        return contextlib.nullcontext()
