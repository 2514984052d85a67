"""Where a search starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefield.validation import as_choice, as_labelling, check_has_lines

_SCAN_LINE_NU = 0.4  # the paper's


def starting_labelling(mrf: Any, x0: Any, rng: np.random.Generator) -> np.ndarray:
    """A new int32 labelling: the given one, or "random" (also None), "unary" (each site alone) or "scan-line"."""
    check_start(mrf, x0)
    if x0 is not None and not isinstance(x0, str):
        return as_labelling(x0, mrf, "x0")
    if x0 == "unary":
        return mrf.best_labels()
    if x0 == "scan-line":
        from treefield.solvers.scan_line import scan_line

        return scan_line(mrf, nu=_SCAN_LINE_NU).x
    return mrf.random_labels(rng)


def check_start(mrf: Any, x0: Any) -> None:
    """Refuse what is no start, before any work."""
    if isinstance(x0, str):
        as_choice(x0, "x0", ("random", "unary", "scan-line"))
        if x0 == "scan-line":
            check_has_lines(mrf, 'x0="scan-line" solves the lines of a grid', 'use "unary" or "random"')
    elif x0 is not None:
        as_labelling(x0, mrf, "x0", copy=False)
