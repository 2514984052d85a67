"""treefield: the most probable labelling of a Markov random field, by exact search on trees."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treefield import io, moves
    from treefield.apps.batch import batch
    from treefield.apps.denoise import denoise
    from treefield.apps.inpaint import inpaint
    from treefield.apps.ising import ising
    from treefield.apps.segment import segment
    from treefield.apps.stereo import stereo
    from treefield.apps.tiled import denoise_tiled
    from treefield.models.graph import GraphMRF
    from treefield.models.grid import GridMRF
    from treefield.models.pairwise import EdgeTables, Potts, Table, TruncatedLinear, TruncatedQuadratic
    from treefield.models.tiled import TiledMRF
    from treefield.results import MAPResult
    from treefield.solvers.anneal import anneal
    from treefield.solvers.genetic import genetic
    from treefield.solvers.icm import icm
    from treefield.solvers.loopy_bp import loopy_bp
    from treefield.solvers.merge import merge
    from treefield.solvers.minimize import minimize
    from treefield.solvers.scan_line import scan_line
    from treefield.solvers.t_icm import t_icm
    from treefield.solvers.t_ils import t_ils
    from treefield.solvers.tree_bp import tree_bp
    from treefield.solvers.trw import trw

__version__ = "0.1.0"

# Each name and where it lives; loaded when first used, so that `import treefield` is quick.
_HOMES = {
    "batch": "apps.batch",
    "denoise": "apps.denoise",
    "denoise_tiled": "apps.tiled",
    "inpaint": "apps.inpaint",
    "ising": "apps.ising",
    "segment": "apps.segment",
    "stereo": "apps.stereo",
    "GridMRF": "models.grid",
    "GraphMRF": "models.graph",
    "TiledMRF": "models.tiled",
    "Potts": "models.pairwise",
    "TruncatedLinear": "models.pairwise",
    "TruncatedQuadratic": "models.pairwise",
    "Table": "models.pairwise",
    "EdgeTables": "models.pairwise",
    "MAPResult": "results",
    "tree_bp": "solvers.tree_bp",
    "anneal": "solvers.anneal",
    "genetic": "solvers.genetic",
    "icm": "solvers.icm",
    "loopy_bp": "solvers.loopy_bp",
    "merge": "solvers.merge",
    "minimize": "solvers.minimize",
    "t_icm": "solvers.t_icm",
    "t_ils": "solvers.t_ils",
    "scan_line": "solvers.scan_line",
    "trw": "solvers.trw",
}

__all__ = [
    "EdgeTables",
    "GraphMRF",
    "GridMRF",
    "MAPResult",
    "Potts",
    "Table",
    "TiledMRF",
    "TruncatedLinear",
    "TruncatedQuadratic",
    "anneal",
    "batch",
    "denoise",
    "denoise_tiled",
    "genetic",
    "icm",
    "inpaint",
    "io",
    "ising",
    "loopy_bp",
    "merge",
    "minimize",
    "moves",
    "scan_line",
    "segment",
    "stereo",
    "t_icm",
    "t_ils",
    "tree_bp",
    "trw",
]


def __getattr__(name: str) -> Any:
    if name in ("io", "moves"):
        return importlib.import_module(f"treefield.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'treefield' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"treefield.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
