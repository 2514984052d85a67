"""Jumps that change whole balls of a graph's sites."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treefield.moves.protocol import ascending
from treefield.validation import as_choice, as_flat_input, as_real_scalar


class BallJump:
    """Change the labels of many random balls of a graph: a centre and the sites nearest to it. On a grid `BoxJump` does
    the same with boxes.

    Parameters
    ----------
    label : "scramble", "best", "neighbour" or "random"
        What a ball gets: a random label for every one of its sites, the constant label that costs least there, the
        label of a site beside its centre, or any one label.
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
        self.size = ascending(size, "size", "number of sites")
        self.density = as_real_scalar(density, "density")
        if self.density <= 0:
            raise ValueError(f"density must be above 0, got {self.density}")

    def __repr__(self) -> str:
        return f"BallJump({self.label!r}, size={self.size}, density={self.density})"

    def work(self, mrf: Any) -> float:
        """What a jump takes, in sites x labels."""
        return self.density * mrf.size * (2 * mrf.labels + 4 if self.label == "best" else 1)

    def __call__(self, x: np.ndarray, mrf: Any, rng: np.random.Generator) -> np.ndarray:
        """Return a changed copy of `x`."""
        from treefield.kernels import balls

        if not hasattr(mrf, "kernel_graph"):
            raise TypeError(f"BallJump is for graphs; on a {type(mrf).__name__} use BoxJump, or take its to_graph()")
        flat, y = as_flat_input(x, mrf), x.copy()
        graph, out = mrf.kernel_graph(), y.reshape(-1)
        centres, ends, sites, seen = self._draw(mrf, graph, rng)
        if self.label == "scramble":
            balls.scramble_sites(graph, out, sites, rng.integers(2**63, dtype=np.uint64))
        elif self.label == "best":
            seen[:] = -1
            balls.best_balls(graph, out, ends, sites, seen, np.empty(mrf.labels))
        else:
            labels = mrf.random_labels(rng, centres)
            if self.label == "neighbour":
                degrees = np.diff(graph.starts)[centres]
                near = graph.starts[centres] + (rng.random(len(centres)) * degrees).astype(np.int64)
                labels = flat[np.where(degrees > 0, graph.beside[np.minimum(near, len(graph.beside) - 1)], centres)]
            balls.fill_balls(graph, out, ends, sites, labels)
        return y

    def _draw(self, mrf: Any, graph: Any, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """The balls' centres, where each one's sites end, and these; and the space that the kernel has used."""
        from treefield.kernels.balls import draw_balls

        least, most = self.size
        mean = least if least == most else (most - least) / math.log(most / least)
        number = max(1, round(self.density * mrf.size / min(mean, mrf.size)))
        centres = rng.integers(mrf.size, size=number, dtype=np.int32)
        sizes = np.exp(rng.uniform(math.log(least), math.log(most + 1), number)).astype(np.int64)
        sizes = np.minimum(sizes, mrf.size)
        ends, sites = np.empty(number, np.int64), np.empty(int(sizes.sum()), np.int32)
        seen = np.full(mrf.size, -1, np.int32)
        return centres, ends, sites[: draw_balls(graph, centres, sizes, ends, sites, seen)], seen
