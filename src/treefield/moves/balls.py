"""Jumps that change whole balls of a graph's sites."""

from __future__ import annotations

import math

import numpy as np

from treefield.moves.common import as_size_range
from treefield.protocols import Model
from treefield.validation import as_choice, as_flat_input, as_positive


class BallJump:
    """Change the labels of many random balls of a graph: a centre and the sites nearest to it.

    On a grid `BoxJump` does the same with boxes.

    Parameters
    ----------
    label : "scramble", "best", "neighbour" or "random"
        The new labels of a ball: a random label for every one of its sites, the constant label that costs least there,
        the label of a neighbour of its centre, or any one label.
    size : (least, most)
        How many sites a ball has, drawn log-uniformly between these.
    density : float
        The sites of all balls together, as a share of the model's; they may overlap.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> ring = tf.GraphMRF(np.tile([0, 3, 1], (8, 1)), [(i, (i + 1) % 8) for i in range(8)], tf.Potts(1))
    >>> x = np.full(8, 1, np.int32)
    >>> np.unique(tf.moves.BallJump("best", size=(2, 4))(x, ring, np.random.default_rng(0)))
    array([0, 1], dtype=int32)
    """

    def __init__(self, label: str = "scramble", size: tuple[int, int] = (4, 64), density: float = 0.5) -> None:
        self.label = as_choice(label, "label", ("scramble", "best", "neighbour", "random"))
        self.size = as_size_range(size, "size", "number of sites")
        self.density = as_positive(density, "density")

    def __repr__(self) -> str:
        return f"BallJump({self.label!r}, size={self.size}, density={self.density})"

    def work(self, mrf: Model) -> float:
        """The work of a jump, in sites x labels."""
        return self.density * mrf.size * (2 * mrf.n_labels + 4 if self.label == "best" else 1)

    def __call__(self, x: np.ndarray, mrf: Model, rng: np.random.Generator) -> np.ndarray:
        """Return a changed copy of `x`."""
        balls = mrf.backend.balls
        if balls is None:
            raise TypeError(f"BallJump is for graphs; on a {type(mrf).__name__} use BoxJump, or its to_graph()")
        flat, y = as_flat_input(x, mrf.backend), x.copy()
        centres, sizes = self._draw(mrf.size, rng)
        ends, sites = balls.draw(centres, sizes)
        if self.label == "scramble":
            balls.scramble(y, sites, rng.integers(2**63, dtype=np.uint64))
        elif self.label == "best":
            balls.fill_best(y, ends, sites)
        else:
            labels = mrf.backend.random_labels(rng, centres)
            if self.label == "neighbour":
                labels = flat[balls.neighbours(centres, rng)]
            balls.fill(y, ends, sites, labels)
        return y

    def _draw(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The centres of the balls, and how many sites each has."""
        least, most = self.size
        mean = least if least == most else (most - least) / math.log(most / least)
        number = max(1, round(self.density * size / min(mean, size)))
        centres = rng.integers(size, size=number, dtype=np.int32)
        sizes = np.exp(rng.uniform(math.log(least), math.log(most + 1), number)).astype(np.int64)
        return centres, np.minimum(sizes, size)
