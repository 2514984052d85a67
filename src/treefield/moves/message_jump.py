"""A jump that asks the messages where the labelling is undecided."""

from __future__ import annotations

import numpy as np

from treefield.protocols import Marginals, Model
from treefield.validation import as_axis, as_generator, as_labelling, as_model, as_non_negative, as_positive

_DIMENSIONS = 3  # at most, of a grid
_TEMPERATURE = 2.0  # times the mean gap: jumps that far won most on Ising fields and stereo pairs alike
_CLOSENESS = 4.0  # likewise


class MessageJump:
    """Redraw labels where the lines along one axis are undecided.

    The min-marginal of a label at a site is the least energy of the site's line with that label there, given the
    current labels of the neighbouring lines; two messages per site give it for all labels. Where the two best of a site
    are close, its label is drawn with probabilities proportional to exp(-min-marginal / temperature); elsewhere it is
    kept. So the jump goes to labels that cost little, at sites where they cost little.

    Parameters
    ----------
    temperature : float, optional
        The higher, the further the jump goes. The default is twice the model's mean gap, that between the two best
        min-marginals of a site where the neighbouring lines have the labels of the least unary cost.
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
        self.temperature = None if temperature is None else as_positive(temperature, "temperature")
        self.closeness = None if closeness is None else as_non_negative(closeness, "closeness")
        self.axis = as_axis(axis, _DIMENSIONS)
        self._mrf: Model | None = None
        self._marginals: Marginals | None = None
        self._gap = 1.0

    def __repr__(self) -> str:
        return f"MessageJump(temperature={self.temperature}, closeness={self.closeness}, axis={self.axis})"

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_mrf": None, "_marginals": None}  # created again, not copied or pickled

    def work(self, mrf: Model) -> float:
        """The work of a jump, in sites x labels."""
        return 3.0 * mrf.size * mrf.n_labels

    def __call__(self, x: np.ndarray, mrf: Model, rng: np.random.Generator) -> np.ndarray:
        """Return a changed copy of `x`."""
        as_model(mrf)
        y = as_labelling(x, mrf.backend)
        seed = int(as_generator(rng).integers(2**63))
        marginals = self._prepare(mrf)
        temperature = _TEMPERATURE * self._gap if self.temperature is None else self.temperature
        closeness = _CLOSENESS * self._gap if self.closeness is None else self.closeness
        marginals.draw(y, closeness, temperature, seed)
        return y

    def _prepare(self, mrf: Model) -> Marginals:
        """The min-marginals of a model, packed for the first jump, and its mean gap: a scale that depends on the model
        alone, so that a resumed search makes the same jumps."""
        if self._marginals is None or self._mrf is not mrf:
            self._marginals = mrf.backend.marginals(as_axis(self.axis, len(mrf.shape)))
            if self._marginals is None:
                raise TypeError(f"MessageJump is for grids, got a {type(mrf).__name__}; use BallJump")
            self._mrf = mrf
            gaps, sites = self._marginals.draw(mrf.backend.best_labels(), 0.0, 1.0, 0)
            self._gap = gaps / sites if gaps > 0 else 1.0  # where all labels are alike any scale will do
        return self._marginals
