"""Jumps that give whole segments of the labelling another label."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefield.validation import as_choice, as_count, as_flat_input, as_real_scalar


class SegmentJump:
    """Give many segments (connected sites of one label) another label.

    Parameters
    ----------
    label : "neighbour" or "shift"
        What a segment gets: the label across a random edge of its border, or its own moved by up to `shift` (for
        ordered labels such as disparities or grey values).
    share : float
        The share of the segments that change.
    shift : int
        The greatest step.

    Segments are taken up to a size that is drawn log-uniformly between one site and twice the grid.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.zeros((4, 4, 8)), tf.Potts(1))
    >>> x = np.array([[5, 5, 2, 2]] * 4, np.int32)
    >>> tf.moves.SegmentJump("neighbour", share=0.5)(x, mrf, np.random.default_rng(5))[0]
    array([5, 5, 5, 5], dtype=int32)
    """

    def __init__(self, label: str = "neighbour", share: float = 0.3, shift: int = 3) -> None:
        self.label = as_choice(label, "label", ("neighbour", "shift"))
        self.share = as_real_scalar(share, "share")
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, got {self.share}")
        self.shift = as_count(shift, "shift", 1)

    def __repr__(self) -> str:
        shift = f", shift={self.shift}" if self.label == "shift" else ""
        return f"SegmentJump({self.label!r}, share={self.share}{shift})"

    def work(self, mrf: Any) -> float:
        """What a jump takes, in sites x labels."""
        return 10.0 * mrf.size

    def __call__(self, x: np.ndarray, mrf: Any, rng: np.random.Generator) -> np.ndarray:
        from treefield.kernels import regions

        flat, y = as_flat_input(x, mrf), x.copy()
        numbers, segments = mrf.segments(flat)
        sizes, own = np.zeros(segments, np.int32), np.empty(segments, np.int32)
        regions.describe_segments(flat, numbers, sizes, own)
        if self.label == "neighbour":
            other = own.copy()
            mrf.labels_across(flat, numbers, rng.integers(2**63, dtype=np.uint64), other)
        else:
            step = rng.integers(1, self.shift + 1, segments) * rng.choice((-1, 1), segments)
            other = np.clip(own + step, 0, mrf.labels - 1).astype(np.int32)
        limit = (2 * mrf.size) ** rng.random()
        chosen = (sizes <= limit) & (rng.random(segments) < self.share)
        regions.relabel(y.reshape(-1), numbers, np.where(chosen, other, own))
        return y if mrf.same_count else np.where(y < mrf.label_counts, y, x)  # a site may lack the label
