"""Images, label maps and models as files.

`images` and `models` hold one module per format. A module, and the package that decodes its format, is imported when
one of its names is first used: `import treefield.io` stays light, and works without the optional packages.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treefield.io.images.image_formats import read_image, read_labels, write_image, write_labels
    from treefield.io.images.large_images import new_image, open_image
    from treefield.io.models.bqm import read_bqm, write_bqm
    from treefield.io.models.cfn import read_cfn, write_cfn
    from treefield.io.models.coo import read_coo, read_qubo, write_coo, write_qubo
    from treefield.io.models.model_formats import read_model, write_model
    from treefield.io.models.npz_models import load_model, save_model
    from treefield.io.models.opengm import read_opengm, write_opengm
    from treefield.io.models.rudy import max_cut, read_rudy, write_rudy
    from treefield.io.models.uai import read_evidence, read_mpe, read_uai, write_mpe, write_uai
    from treefield.io.models.wcsp import read_wcsp, write_wcsp

_NAMES_BY_MODULE = {
    "images.image_formats": ("read_image", "read_labels", "write_image", "write_labels"),
    "images.large_images": ("new_image", "open_image"),
    "models.bqm": ("read_bqm", "write_bqm"),
    "models.cfn": ("read_cfn", "write_cfn"),
    "models.coo": ("read_coo", "read_qubo", "write_coo", "write_qubo"),
    "models.model_formats": ("read_model", "write_model"),
    "models.npz_models": ("load_model", "save_model"),
    "models.opengm": ("read_opengm", "write_opengm"),
    "models.rudy": ("max_cut", "read_rudy", "write_rudy"),
    "models.uai": ("read_evidence", "read_mpe", "read_uai", "write_mpe", "write_uai"),
    "models.wcsp": ("read_wcsp", "write_wcsp"),
}
_LAZY = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}

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


if not TYPE_CHECKING:  # type checkers would take any name for an attribute

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"treefield.io.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return __all__
