"""Jumps that give whole boxes of sites one label."""

from __future__ import annotations

import math

import numpy as np

from treefield.moves.common import as_size_range
from treefield.protocols import Model
from treefield.validation import as_choice, as_flat_input, as_positive


class BoxJump:
    """Give each of many random boxes one label.

    Label maps are piecewise constant, so this is the move that most often leads downhill after a sweep.

    Parameters
    ----------
    label : "best", "neighbour", "random" or "scramble"
        The new labels of a box: the constant label that costs least there, the label of a site in or next to the box,
        any label, or a random label for every one of its sites (for frustrated models such as spin glasses).
    size : (least, most)
        The sides of a box are drawn log-uniformly between these.
    density : float
        The area of all boxes together, in grids; they may overlap.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.tile([0, 3, 1, 2], (6, 6, 1)), tf.Potts(1))
    >>> x = np.full((6, 6), 3, np.int32)
    >>> np.unique(tf.moves.BoxJump("best", size=(2, 4))(x, mrf, np.random.default_rng(0)))
    array([0, 3], dtype=int32)
    """

    def __init__(self, label: str = "best", size: tuple[int, int] = (3, 24), density: float = 0.5) -> None:
        self.label = as_choice(label, "label", ("best", "neighbour", "random", "scramble"))
        self.size = as_size_range(size, "size", "side of a box")
        self.density = as_positive(density, "density")

    def __repr__(self) -> str:
        return f"BoxJump({self.label!r}, size={self.size}, density={self.density})"

    def __call__(self, x: np.ndarray, mrf: Model, rng: np.random.Generator) -> np.ndarray:
        """Return a changed copy of `x`."""
        boxes = mrf.backend.boxes
        if boxes is None:
            raise TypeError(f"BoxJump is for grids, got a {type(mrf).__name__}; use BallJump")
        as_flat_input(x, mrf.backend)
        y = x.copy()
        low, high = self._draw(boxes.shape, rng)
        if self.label == "scramble":
            boxes.scramble(y, low, high, rng.integers(2**63, dtype=np.uint64))
        elif self.label == "best":
            boxes.fill_best(y, low, high)
        elif self.label == "random":
            boxes.fill(y, low, high, rng.integers(mrf.n_labels, size=len(low), dtype=np.int32))
        else:
            near = np.minimum(np.maximum(rng.integers(low - 1, high + 1), 0), boxes.shape - 1)
            boxes.fill(y, low, high, x.reshape(boxes.shape)[tuple(near.T)])
        return y

    def work(self, mrf: Model) -> float:
        """The work of a jump, in sites x labels."""
        return self.density * mrf.size * (2 * mrf.n_labels + 4 if self.label == "best" else 1)

    def _draw(self, shape: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The corners of the boxes, [box][axis]. Boxes may reach over the border, so that it is met as often as the
        rest."""
        least, most = self.size
        mean = least if least == most else (most - least) / math.log(most / least)
        area = np.minimum(mean, shape).prod()
        boxes = max(1, round(self.density * math.prod(shape) / area))
        side = np.exp(rng.uniform(math.log(least), math.log(most + 1), (boxes, 3))).astype(np.int64)
        low = rng.integers(1 - side, shape)
        return np.maximum(low, 0), np.minimum(low + side, shape)
