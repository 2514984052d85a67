"""treefield: the most probable labelling of a Markov random field, by exact search on trees."""

from __future__ import annotations

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from treefield import dask, dimod, io, moves, protocols
    from treefield.apps.batch import BatchInterrupted, BatchItem, WorkerDiedError, batch
    from treefield.apps.denoise import denoise
    from treefield.apps.denoise_tiled import denoise_tiled
    from treefield.apps.inpaint import inpaint
    from treefield.apps.ising import ising
    from treefield.apps.segment import segment
    from treefield.apps.stereo import stereo
    from treefield.errors import CycleError
    from treefield.io.files import MissingPackageError
    from treefield.io.limits import TooLargeError
    from treefield.models.graph import GraphMRF
    from treefield.models.grid import GridMRF
    from treefield.models.pairwise import EdgeTables, Pairwise, Potts, Table, TruncatedLinear, TruncatedQuadratic
    from treefield.results import MAPResult, Status
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
    from treefield.tiling.model import TiledMRF
    from treefield.tiling.stores import NoSpaceError

__version__ = "0.1.0"

__all__ = [
    "BatchInterrupted",
    "BatchItem",
    "CycleError",
    "EdgeTables",
    "GraphMRF",
    "GridMRF",
    "MAPResult",
    "MissingPackageError",
    "NoSpaceError",
    "Pairwise",
    "Potts",
    "Status",
    "Table",
    "TiledMRF",
    "TooLargeError",
    "TruncatedLinear",
    "TruncatedQuadratic",
    "WorkerDiedError",
    "anneal",
    "batch",
    "dask",
    "denoise",
    "denoise_tiled",
    "dimod",
    "genetic",
    "icm",
    "inpaint",
    "io",
    "ising",
    "loopy_bp",
    "merge",
    "minimize",
    "moves",
    "protocols",
    "scan_line",
    "segment",
    "stereo",
    "t_icm",
    "t_ils",
    "tree_bp",
    "trw",
]

# Where each name lives: loaded on first use, so that `import treefield` is quick.
_LAZY = {
    "BatchInterrupted": "apps.batch",
    "BatchItem": "apps.batch",
    "WorkerDiedError": "apps.batch",
    "batch": "apps.batch",
    "denoise": "apps.denoise",
    "denoise_tiled": "apps.denoise_tiled",
    "inpaint": "apps.inpaint",
    "ising": "apps.ising",
    "segment": "apps.segment",
    "stereo": "apps.stereo",
    "CycleError": "errors",
    "MissingPackageError": "io.files",
    "TooLargeError": "io.limits",
    "GraphMRF": "models.graph",
    "GridMRF": "models.grid",
    "EdgeTables": "models.pairwise",
    "Pairwise": "models.pairwise",
    "Potts": "models.pairwise",
    "Table": "models.pairwise",
    "TruncatedLinear": "models.pairwise",
    "TruncatedQuadratic": "models.pairwise",
    "MAPResult": "results",
    "Status": "results",
    "anneal": "solvers.anneal",
    "genetic": "solvers.genetic",
    "icm": "solvers.icm",
    "loopy_bp": "solvers.loopy_bp",
    "merge": "solvers.merge",
    "minimize": "solvers.minimize",
    "scan_line": "solvers.scan_line",
    "t_icm": "solvers.t_icm",
    "t_ils": "solvers.t_ils",
    "tree_bp": "solvers.tree_bp",
    "trw": "solvers.trw",
    "TiledMRF": "tiling.model",
    "NoSpaceError": "tiling.stores",
}
_MODULES = ("dask", "dimod", "io", "moves", "protocols")

if not _typing.TYPE_CHECKING:  # type checkers would take any name for an attribute

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return _importlib.import_module(f"treefield.{name}")
        if name not in _LAZY:
            raise AttributeError(f"module 'treefield' has no attribute {name!r}")
        value = getattr(_importlib.import_module(f"treefield.{_LAZY[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
