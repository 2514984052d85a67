"""A progress bar."""

from __future__ import annotations

import math
from typing import Any


class Bar:
    """Shows iterations, the energy, the best one and whatever else a search tells, while it runs; may be shared by
    searches in threads."""

    def __init__(self, method: str, total: int | None) -> None:
        from tqdm.auto import tqdm

        self._bar: Any = tqdm(desc=method, total=total, unit="it", dynamic_ncols=True)
        self._best = math.inf

    def step(self, iterations: int, energy: float, best: float, **more: float) -> None:
        """So many iterations further, the search is here."""
        self._best = min(self._best, best)
        figures = {"energy": f"{energy:.7g}", "best": f"{self._best:.7g}"}
        figures |= {name: f"{value:.{7 if name == 'bound' else 4}g}" for name, value in more.items()}
        self._bar.set_postfix(figures, refresh=False)
        self._bar.update(iterations)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.refresh()
        self._bar.close()


class ItemBar:
    """Shows how many items of a batch are done, and how many of them failed."""

    def __init__(self, total: int | None) -> None:
        from tqdm.auto import tqdm

        self._bar: Any = tqdm(desc="batch", total=total, unit="item", dynamic_ncols=True)
        self._failed = 0

    def __enter__(self) -> ItemBar:
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.close()

    def step(self, failed: bool) -> None:
        """One item further."""
        self._failed += failed
        if self._failed:
            self._bar.set_postfix({"failed": self._failed}, refresh=False)
        self._bar.update()
