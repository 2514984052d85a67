"""A jump that warms the labelling up and lets it cool down again."""

from __future__ import annotations

import numpy as np

from treefield.moves.common import as_size_range, as_temperatures, usual_temperatures
from treefield.protocols import Cools, Model
from treefield.validation import as_flat_input, as_model

_LEAST, _SHORT, _LONG = 8, 16, 4096  # sweeps: the fewest, and between which numbers the most are
_HOTTER = 3.0  # trees hold together where single sites do not
_COLDER = 1 / 30  # of the cold temperature: the lowest at which a jump ends, rarely
_WORK = 2**23  # sites x labels x sweeps of the longest jump, in between


class HeatJump:
    """Sample sites, as `anneal` does, or on a graph whole trees, from some temperature down to a low one.

    How warm it gets, and how slowly it cools, is drawn for every jump: from a few changes here and there to a
    restart. Where every site is joined to every other there are no pieces that could be accepted by themselves, and
    such jumps are what works.

    Parameters
    ----------
    sweeps : (least, most), optional
        How many sweeps over all sites a jump makes, drawn log-uniformly between these. The default is from 8 to the
        more the smaller the model is: 16 to 4096.
    temperatures : (hot, cold), optional
        The jump starts at a temperature drawn log-uniformly between these and ends at the cold one or below; the
        default is that of `anneal`.
    trees : bool
        Sample the trees of random forests (with noise on every cost, solved exactly) instead of single sites. For
        graphs; where labels are tied to those of neighbours, single sites cannot move.

    Examples
    --------
    >>> import treefield as tf
    >>> tf.moves.HeatJump(sweeps=(10, 100))
    HeatJump(sweeps=(10, 100))
    """

    def __init__(
        self,
        sweeps: tuple[int, int] | None = None,
        temperatures: tuple[float, float] | None = None,
        trees: bool = False,
    ) -> None:
        self.sweeps = None if sweeps is None else as_size_range(sweeps, "sweeps", "number of sweeps")
        self.temperatures = None if temperatures is None else as_temperatures(temperatures)
        self.trees = bool(trees)
        self._mrf: Model | None = None
        self._made = 0

    def __repr__(self) -> str:
        given = {"sweeps": self.sweeps, "temperatures": self.temperatures, "trees": self.trees or None}
        return f"HeatJump({', '.join(f'{name}={value}' for name, value in given.items() if value is not None)})"

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_mrf": None}  # what belongs to a model is created again

    def work(self, mrf: Model) -> float:
        """The work of the last jump, in sites x labels."""
        return self._made * (mrf.backend.sweep_work / 2 if self.trees else float(mrf.size * mrf.n_labels))

    def __call__(self, x: np.ndarray, mrf: Model, rng: np.random.Generator) -> np.ndarray:
        """Return a changed copy of `x`."""
        as_model(mrf)
        as_flat_input(x, mrf.backend)
        if self._mrf is not mrf:
            sampler: Cools | None = mrf.backend.tree_sampler() if self.trees else mrf.backend.sampler()
            if sampler is None:
                raise TypeError(f"HeatJump(trees=True) is for graphs, got a {type(mrf).__name__}; leave trees out")
            self._mrf, self._sampler = mrf, sampler
            # temperatures depend on the model alone, so that a resumed search makes the same jumps
            hot, cold = self.temperatures or usual_temperatures(mrf, np.random.default_rng(0))
            self._usual = hot * _HOTTER if self.trees and self.temperatures is None else hot, cold
        hot, cold = self._usual
        least, most = self.sweeps or (_LEAST, min(max(_WORK // (mrf.size * mrf.n_labels), _SHORT), _LONG))
        self._made = round(least * (most / least) ** rng.random())
        warmest = cold * (hot / cold) ** rng.random()
        coldest = cold * _COLDER ** (rng.random() ** 2)
        y = x.copy()
        self._sampler.cool(y, warmest * (coldest / warmest) ** (np.arange(self._made) / self._made), rng)
        return y
