"""Follow one array through the package: which files take part in a call, and which calls which.

    python docs/development/follow.py minimize            # the files, in the order of their first call
    python docs/development/follow.py t_icm --diagram     # the same as a Mermaid diagram

Every Python function of treefield that runs counts, while the model is built and while it is searched; compiled kernels
count when Python calls them, and so does the file of their message rule.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from types import FrameType

import numpy as np

import treefield as tf

ROOT = pathlib.Path(tf.__file__).parent


def place(frame: FrameType | None) -> str | None:
    """The file of the nearest frame that belongs to treefield, relative to the package; None if there is none."""
    while frame is not None:
        path = pathlib.Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and frame.f_code.co_name != "<module>":
            return str(path.relative_to(ROOT))
        frame = frame.f_back
    return None


def follow(name: str) -> list[tuple[str | None, str]]:
    """Pairs (caller, file), in the order in which files first call each other."""
    unary = np.random.default_rng(0).random((24, 24, 4)).astype(np.float32)
    search = getattr(tf, name)
    search(tf.GridMRF(unary, tf.Potts(0.3)), rng=0)  # compiles, and imports
    seen: dict[tuple[str | None, str], None] = {}
    dispatchers = _kernels()

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            file = place(frame) if frame.f_code.co_name != "<module>" else None
            caller = place(frame.f_back)
            if file is not None and pathlib.Path(frame.f_code.co_filename).is_relative_to(ROOT) and caller != file:
                seen[caller, file] = None
        elif event == "c_call" and id(getattr(argument, "__self__", argument)) in dispatchers:
            seen[place(frame), dispatchers[id(getattr(argument, "__self__", argument))]] = None

    sys.setprofile(profile)
    search(tf.GridMRF(unary, tf.Potts(0.3)), rng=0, threads=1)
    sys.setprofile(None)
    return list(seen)


def _kernels() -> dict[int, str]:
    """The compiled kernels that are loaded, and the file of each."""
    from numba.core.dispatcher import Dispatcher

    found = {}
    for module in [module for key, module in sys.modules.items() if key.startswith("treefield.kernels")]:
        for value in vars(module).values():
            if isinstance(value, Dispatcher):
                found[id(value)] = str(pathlib.Path(value.py_func.__code__.co_filename).relative_to(ROOT))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("search", choices=["minimize", "t_icm", "t_ils", "trw"])
    parser.add_argument("--diagram", action="store_true")
    given = parser.parse_args()
    calls = follow(given.search)
    if given.diagram:
        print("```mermaid\nflowchart LR")
        for caller, file in calls:
            print(f"    {caller or 'you'} --> {file}".replace(".py", ""))
        print("```")
        return
    files = list(dict.fromkeys(file for _, file in calls))
    print("\n".join(files))
    print(f"{len(files)} files")


if __name__ == "__main__":
    main()
