"""A jump that asks the messages where the labelling is undecided."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefield.trees import schedules
from treefield.trees.lines import AxisLines, WorkSpace
from treefield.validation import as_axis, as_generator, as_labelling, as_real_scalar, check_has_lines, check_model

_DIMENSIONS = 3  # at most, of a grid
_TEMPERATURE = 2.0  # times the mean gap: jumps that far won most on Ising fields and stereo pairs alike
_CLOSENESS = 4.0  # likewise


class MessageJump:
    """Draw labels anew where the lines along one axis are undecided.

    The min-marginal of a label at a site is the least energy of the site's line with that label there, given the
    current labels of the lines beside it; two messages per site give it for all labels. Where the two best of a site
    are close, its label is drawn with probabilities proportional to exp(-min-marginal / temperature); elsewhere it is
    kept. So the jump goes to labels that cost little, at sites where they cost little.

    Parameters
    ----------
    temperature : float, optional
        The higher, the further the jump goes. The default is twice the model's mean gap, that between the two best
        min-marginals of a site where the lines beside have the labels of the least unary cost.
    closeness : float, optional
        Sites whose two best min-marginals differ by more keep their label; 0 leaves ties only. The default is four
        times the mean gap.
    axis : int
        The axis of the grid along which the lines run: -1 for rows, -2 for columns.

    Notes
    -----
    The costs of the last model seen are kept, packed: memory for one unary. All random numbers come from one number of
    `rng`, so that the same state gives the same jump.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> noisy = np.random.default_rng(0).normal([[0.0] * 8 + [1.0] * 8] * 16, 0.4)
    >>> mrf = tf.GridMRF(np.stack([noisy**2, (noisy - 1) ** 2], axis=-1), tf.Potts(0.5))
    >>> x = tf.t_icm(mrf, rng=0).x
    >>> y = tf.moves.MessageJump(temperature=0.5, closeness=1.5)(x, mrf, np.random.default_rng(0))
    >>> bool((x != y).any()), bool((x != y).mean() < 0.2)
    (True, True)
    """

    def __init__(self, temperature: float | None = None, closeness: float | None = None, axis: int = -1) -> None:
        self.temperature = None if temperature is None else as_real_scalar(temperature, "temperature")
        if self.temperature is not None and self.temperature <= 0:
            raise ValueError(f"temperature must be positive, got {self.temperature:g}")
        self.closeness = None if closeness is None else as_real_scalar(closeness, "closeness")
        if self.closeness is not None and self.closeness < 0:
            raise ValueError(f"closeness must be at least 0, got {self.closeness:g}")
        self.axis = as_axis(axis, _DIMENSIONS)
        self._lines: AxisLines | None = None
        self._gap = 1.0

    def __repr__(self) -> str:
        return f"MessageJump(temperature={self.temperature}, closeness={self.closeness}, axis={self.axis})"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_lines": None}  # packed lines are neither copied nor pickled, but created again

    def work(self, mrf: Any) -> float:
        """What a jump takes, in sites x labels."""
        return 3.0 * mrf.size * mrf.labels

    def __call__(self, x: Any, mrf: Any, rng: Any) -> np.ndarray:
        """Return a changed copy of `x`."""
        check_model(mrf)
        check_has_lines(mrf, "MessageJump solves the lines of a grid", "use BallJump")
        y = as_labelling(x, mrf)
        seed = int(as_generator(rng).integers(2**63))
        if self._lines is None or self._lines.mrf is not mrf:
            self._prepare(mrf)
        temperature = _TEMPERATURE * self._gap if self.temperature is None else self.temperature
        closeness = _CLOSENESS * self._gap if self.closeness is None else self.closeness
        self._draw(y, closeness, temperature, seed)
        return y

    def _prepare(self, mrf: Any) -> None:
        """Pack the lines of a model, and measure its mean gap: a scale that depends on the model alone, so that a
        search that is resumed jumps as one that never stopped."""
        from treefield.kernels.jit import as_compile_time

        plan = schedules.bands(mrf.shape, as_axis(self.axis, len(mrf.shape)) % len(mrf.shape), mrf.labels)
        self._lines = AxisLines(mrf, plan, WorkSpace(mrf, [plan]))
        with as_compile_time():
            self._lines.draw(np.zeros(1, np.int32), plan.blocks[:0], 0.0, 1.0, 0)
        gaps, sites = self._draw(mrf.unary.argmin(axis=-1).astype(np.int32), 0.0, 1.0, 0)
        self._gap = gaps / sites if gaps > 0 else 1.0  # where all labels are alike any scale will do

    def _draw(self, x: np.ndarray, closeness: float, temperature: float, seed: int) -> tuple[float, int]:
        """Draw labels in place: the lines see those that were there before."""
        assert self._lines is not None
        plan, flat = self._lines.plan, x.reshape(-1)
        self._lines.enter(flat, plan.blocks)
        return self._lines.draw(flat, np.flatnonzero(plan.active), closeness, temperature, seed)
