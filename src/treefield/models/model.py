"""What every model does the same way."""

from __future__ import annotations

import numpy as np


class Model:
    """A model whose labellings are arrays."""

    def apply_components(self, x: np.ndarray, y: np.ndarray, numbers: np.ndarray, taken: np.ndarray) -> None:
        """Set x to y, in place, on the components (as `components` numbers them) that are taken."""
        from treefield.kernels.components import take_components

        take_components(x.reshape(-1), y.reshape(-1), numbers.reshape(-1), taken)
