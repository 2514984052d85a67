"""The geometry of a grid: which sites are neighbours, and arrays with one entry for each edge."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np


def directions(dimensions: int, connectivity: int) -> list[tuple[int, ...]]:
    """The steps from a site to half of its neighbours; the same steps backwards lead to the other half.

    The steps along the axes come first, in their order; then, with connectivity 2, those along two axes at once, and in
    3-D along three.

    Each kind goes by its axes, the first axes first, and forwards before backwards: (1, 1), (1, -1) in 2-D; (1, 1, 0),
    (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1), (1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1) in 3-D. The
    first step that is not 0 is forwards, so that edges go from the lower site in raster order to the higher.
    """
    forwards = [step for step in itertools.product((1, 0, -1), repeat=dimensions) if step > (0,) * dimensions]
    kinds = sorted(forwards, key=lambda step: (sum(map(abs, step)), [-abs(s) for s in step], [-s for s in step]))
    return kinds[:dimensions] if connectivity == 1 else kinds


@dataclass(frozen=True)
class Lattice:
    """The edges of a grid, direction by direction.

    Those of one direction are an array with one entry fewer than sites along every axis that the direction steps along,
    as many as sites if that axis is periodic: entry k is for k and k + 1, the last one for the last site and the first.
    """

    shape: tuple[int, ...]
    steps: list[tuple[int, ...]]
    periodic: tuple[bool, ...]

    @property
    def connectivity(self) -> int:
        """1 for neighbours along the axes, 2 with the diagonal ones."""
        return 1 if len(self.steps) == len(self.shape) else 2

    @property
    def has_axis_edges_only(self) -> bool:
        """Whether neighbours are those along the axes, and no axis is periodic."""
        return len(self.steps) == len(self.shape) and not any(self.periodic)

    @property
    def edge_shapes(self) -> list[tuple[int, ...]]:
        """The shape of the edges of each direction."""
        axes = list(zip(self.shape, self.periodic, strict=True))
        return [
            tuple(n - (s != 0 and not ring) for s, (n, ring) in zip(step, axes, strict=True)) for step in self.steps
        ]

    def ends(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The flat indices of the first and of the second site of every edge of a direction."""
        places = [np.arange(n) for n in self.edge_shapes[number]]
        axes = list(zip(places, self.steps[number], self.shape, strict=True))
        first = np.ix_(*((k + (step < 0)) % n for k, step, n in axes))
        second = np.ix_(*((k + (step > 0)) % n for k, step, n in axes))
        return np.ravel_multi_index(first, self.shape), np.ravel_multi_index(second, self.shape)

    @property
    def unit_name(self) -> str:
        """The word for the thing that has one array of edges: an axis or a direction."""
        return "axis" if self.connectivity == 1 else f"direction, {', '.join(map(str, self.steps))}"

    @property
    def neighbours_text(self) -> str:
        """Which neighbours a site has, in words."""
        rings = [str(axis) for axis, ring in enumerate(self.periodic) if ring]
        words = f", periodic along {' and '.join(rings)}" if rings else ""
        return f"{2 * len(self.steps)} neighbours{words}"

    def mask_weights(self, weights: list[np.ndarray], mask: np.ndarray) -> list[np.ndarray]:
        """The float64 weight of every edge, 0 where one of its sites does not exist."""
        exists = mask.reshape(-1)
        masked = []
        for number, weight in enumerate(weights):
            first, second = self.ends(number)
            masked.append(np.where(exists[first] & exists[second], np.asarray(weight, np.float64), 0.0))
        return masked
