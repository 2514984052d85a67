"""Jumps that give whole segments of the labelling another label."""

from __future__ import annotations

import numpy as np

from treefield.protocols import Model
from treefield.validation import as_choice, as_count, as_flat_input, as_share


class SegmentJump:
    """Give many segments (connected sites of one label) another label.

    Parameters
    ----------
    label : "neighbour" or "shift"
        The new label of a segment: the label across a random edge of its border, or its own moved by up to `shift` (for
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
        self.share = as_share(share, "share")
        self.shift = as_count(shift, "shift", 1)

    def __repr__(self) -> str:
        shift = f", shift={self.shift}" if self.label == "shift" else ""
        return f"SegmentJump({self.label!r}, share={self.share}{shift})"

    def work(self, mrf: Model) -> float:
        """The work of a jump, in sites x labels."""
        return 10.0 * mrf.size

    def __call__(self, x: np.ndarray, mrf: Model, rng: np.random.Generator) -> np.ndarray:
        """Return a changed copy of `x`."""
        backend = mrf.backend
        flat = as_flat_input(x, backend)
        numbers, segments = backend.segments(flat)
        sizes, own = np.bincount(numbers, minlength=segments), np.empty(segments, np.int32)
        own[numbers] = flat
        if self.label == "neighbour":
            other = own.copy()
            backend.labels_across(flat, numbers, rng.integers(2**63, dtype=np.uint64), other)
        else:
            step = rng.integers(1, self.shift + 1, segments) * rng.choice((-1, 1), segments)
            other = np.clip(own + step, 0, mrf.n_labels - 1).astype(np.int32)
        limit = (2 * mrf.size) ** rng.random()
        chosen = (sizes <= limit) & (rng.random(segments) < self.share)
        y = np.where(chosen, other, own)[numbers].reshape(x.shape)
        return y if backend.has_uniform_labels else np.where(y < backend.label_counts, y, x)  # not every site has it
