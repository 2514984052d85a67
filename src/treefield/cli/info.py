"""info: what is installed, and where things are."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from treefield import __version__
from treefield.cli.streams import say
from treefield.io.files import available_memory, in_units, package_version
from treefield.validation import thread_count

_PACKAGES = (
    "numpy",
    "numba",
    "scipy",
    "pillow",
    "tifffile",
    "imagecodecs",
    "matplotlib",
    "rich",
    "typer",
    "scikit-image",
    "h5py",
    "dimod",
    "dask",
    "distributed",
    "zarr",
)


def info(json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Show versions, threads, memory and the cache of compiled kernels."""
    import json as writer

    facts = {"treefield": __version__, "python": platform.python_version(), "machine": platform.platform()}
    facts |= {name: package_version(name) for name in _PACKAGES}
    free = available_memory()
    facts |= {"threads": str(thread_count(None)), "free memory": "unknown" if free is None else in_units(free)}
    facts |= _cache()
    if json:
        say(writer.dumps(facts))
    else:
        say("\n".join(f"{name:>16}: {value}" for name, value in facts.items()))


def _cache() -> dict[str, str]:
    """Where compiled kernels are kept, how many there are and how much room they take."""
    import pathlib

    from treefield.kernels.jit import cache_folder

    folder = cache_folder()
    if folder is None:
        return {"kernel cache": "none: there is no folder to write to, kernels are compiled in every run"}
    files = [file for file in pathlib.Path(folder).glob("*.nbc") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    return {"kernel cache": folder, "cached kernels": f"{len(files)}, {in_units(size)}"}
