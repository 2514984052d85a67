"""Min-marginals of the lines along one axis of a grid."""

from __future__ import annotations

import numpy as np

from treefield.backends.grid.costs import GridCosts
from treefield.backends.grid.lines import AxisLines, WorkSpace
from treefield.backends.grid.schedules import bands


class LineMarginals:
    """The lines along an axis, packed: `treefield.protocols.Marginals`. Memory: one unary."""

    def __init__(self, costs: GridCosts, axis: int) -> None:
        from treefield.kernels.simd.jit import as_compile_time

        plan = bands(costs.shape, axis % len(costs.shape), costs.n_labels)
        self._lines = AxisLines(costs, plan, WorkSpace(costs, [plan]))
        with as_compile_time():
            self._lines.draw(np.zeros(1, np.int32), plan.blocks[:0], 0.0, 1.0, 0)

    def draw(self, x: np.ndarray, closeness: float, temperature: float, seed: int) -> tuple[float, int]:
        """Draw labels, in place, where the two best min-marginals of a site are close.

        All lines see the labels from before the draw.
        """
        plan, flat = self._lines.plan, x.reshape(-1)
        self._lines.enter(flat, plan.blocks)
        return self._lines.draw(flat, np.flatnonzero(plan.active), closeness, temperature, seed)
