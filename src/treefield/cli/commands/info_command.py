"""The command info."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from treefield import __version__
from treefield.cli.streams import say
from treefield.io.files import package_version
from treefield.io.limits import available_memory, format_bytes
from treefield.validation import as_thread_count

_PACKAGES = (
    "numpy",
    "numba",
    "scipy",
    "pillow",
    "tifffile",
    "imagecodecs",
    "matplotlib",
    "typer",
    "tqdm",
    "scikit-image",
    "h5py",
    "dimod",
    "dask",
    "distributed",
    "zarr",
)


def info(json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False) -> None:
    """Show versions, threads, memory and the cache of compiled kernels."""
    import json as writer

    facts = {"treefield": __version__, "python": platform.python_version(), "machine": platform.platform()}
    facts |= {name: package_version(name) for name in _PACKAGES}
    free = available_memory()
    facts |= {"threads": str(as_thread_count(None)), "free memory": "unknown" if free is None else format_bytes(free)}
    facts |= _cache_facts()
    if json:
        say(writer.dumps(facts))
    else:
        say("\n".join(f"{name:>16}: {value}" for name, value in facts.items()))


def _cache_facts() -> dict[str, str]:
    """The folder of compiled kernels, their number and size."""
    import pathlib

    from treefield.kernels.simd.jit import cache_folder

    folder = cache_folder()
    if folder is None:
        return {"kernel cache": "none: no folder can be written to, so kernels are compiled in every run"}
    files = [file for file in pathlib.Path(folder).glob("*.nbc") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    return {"kernel cache": folder, "cached kernels": f"{len(files)}, {format_bytes(size)}"}
