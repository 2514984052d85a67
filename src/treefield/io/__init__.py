"""Images, label maps and models as files.

The packages that decode images and models are imported when a file needs them, and the formats of graph models when one
of their names is asked for, so that a program without them can still load and save models, and `import treefield.io`
stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from treefield.io.images import read_image, read_labels, write_image, write_labels
from treefield.io.models import load_model, save_model

if TYPE_CHECKING:
    from treefield.io.bqm import read_bqm, write_bqm
    from treefield.io.cfn import read_cfn, write_cfn
    from treefield.io.coo import read_coo, read_qubo, write_coo, write_qubo
    from treefield.io.formats import read_model, write_model
    from treefield.io.large import new_image, open_image
    from treefield.io.opengm import read_opengm, write_opengm
    from treefield.io.rudy import max_cut, read_rudy, write_rudy
    from treefield.io.uai import read_evidence, read_mpe, read_uai, write_mpe, write_uai
    from treefield.io.wcsp import read_wcsp, write_wcsp

_LATER = {
    "bqm": ("read_bqm", "write_bqm"),
    "cfn": ("read_cfn", "write_cfn"),
    "coo": ("read_coo", "read_qubo", "write_coo", "write_qubo"),
    "formats": ("read_model", "write_model"),
    "large": ("new_image", "open_image"),
    "opengm": ("read_opengm", "write_opengm"),
    "rudy": ("max_cut", "read_rudy", "write_rudy"),
    "uai": ("read_evidence", "read_mpe", "read_uai", "write_mpe", "write_uai"),
    "wcsp": ("read_wcsp", "write_wcsp"),
}
_WHERE = {name: module for module, names in _LATER.items() for name in names}

__all__ = [
    "load_model",
    "max_cut",
    "new_image",
    "open_image",
    "read_bqm",
    "read_cfn",
    "read_coo",
    "read_evidence",
    "read_image",
    "read_labels",
    "read_model",
    "read_mpe",
    "read_opengm",
    "read_qubo",
    "read_rudy",
    "read_uai",
    "read_wcsp",
    "save_model",
    "write_bqm",
    "write_cfn",
    "write_coo",
    "write_image",
    "write_labels",
    "write_model",
    "write_mpe",
    "write_opengm",
    "write_qubo",
    "write_rudy",
    "write_uai",
    "write_wcsp",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"treefield.io.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
