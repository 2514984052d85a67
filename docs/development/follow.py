"""Follow one array through the package: which files take part in a call, and which calls which.

    python docs/development/follow.py minimize            # the files, in the order of their first call
    python docs/development/follow.py t_icm --diagram     # the same as a Mermaid diagram, layer by layer

A file counts if one of its Python functions or compiled kernels runs while the model is built and searched, or if it
defines the message rule. The diagram leaves out

- calls through a protocol or a callback: upward to another layer, and within a layer to a file that is not imported;
- calls of what most files call: `validation`, `results` and `kernels/simd`;
- calls that a longer way implies: a --> c where there are a --> b and b --> c.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from unittest import mock

import numpy as np
from numba.core.dispatcher import Dispatcher

import treefield as tf
from treefield.solvers.minimize import takes

ROOT = pathlib.Path(tf.__file__).parent
SEARCHES = ("minimize", "t_icm", "t_ils", "trw")
YOU, EVERYWHERE = "you", "everywhere"
LAYERS = (YOU, "models", "solvers", "moves", "backends", "kernels", EVERYWHERE)

Call = tuple[str, str]  # the file that calls, or `YOU`, and the file that is called
Note = Callable[[str, str], None]


def file_of(frame: FrameType | None) -> str:
    """The file of the nearest frame that belongs to treefield, relative to the package; `YOU` if there is none."""
    while frame is not None:
        path = pathlib.Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and frame.f_code.co_name != "<module>":
            return path.relative_to(ROOT).as_posix()
        frame = frame.f_back
    return YOU


def follow(name: str) -> list[Call]:
    """The calls from one file to another, in the order in which they first happen."""
    unary = np.random.default_rng(0).random((24, 24, 4)).astype(np.float32)
    known = takes("auto" if name == "minimize" else name)
    options = {option: value for option, value in {"rng": 0, "threads": 1}.items() if option in known}
    calls: dict[Call, None] = {}

    def search() -> None:
        getattr(tf, name)(tf.GridMRF(unary, tf.Potts(0.3)), **options)

    def note(caller: str, file: str) -> None:
        if file not in (caller, YOU):
            calls[caller, file] = None

    def profile(frame: FrameType, event: str, value: object) -> None:
        module = type(value).__module__
        if event == "call" and frame.f_back is not None and pathlib.Path(frame.f_code.co_filename).is_relative_to(ROOT):
            note(file_of(frame.f_back), file_of(frame))
        elif event == "return" and module.startswith("treefield.kernels.rules."):
            rule = f"{module.removeprefix('treefield.').replace('.', '/')}.py"
            if rule not in files_of(list(calls)):  # those that it is handed to do not count
                note(file_of(frame), rule)

    search()  # imports and compiles everything
    with noted_kernels(note):
        sys.setprofile(profile)
        search()
        sys.setprofile(None)
    return list(calls)


@contextlib.contextmanager
def noted_kernels(note: Note) -> Iterator[None]:
    """While entered, note the calls of compiled kernels from Python, which a profiler does not see."""
    with contextlib.ExitStack() as stack:
        for module in [module for key, module in sys.modules.items() if key.startswith("treefield.kernels.")]:
            for name, value in list(vars(module).items()):
                if isinstance(value, Dispatcher):
                    stack.enter_context(mock.patch.object(module, name, _noted(value, note)))
        yield


def _noted(kernel: Dispatcher, note: Note) -> Callable:
    file = pathlib.Path(kernel.py_func.__code__.co_filename).relative_to(ROOT).as_posix()

    def call(*arguments: object) -> object:
        note(file_of(sys._getframe(1)), file)
        return kernel(*arguments)

    return call


def files_of(calls: list[Call]) -> list[str]:
    """The files that are called, in the order of their first call."""
    return list(dict.fromkeys(file for _, file in calls))


def layer_of(file: str) -> str:
    """The layer of a file: its first folder, or `EVERYWHERE`."""
    folder = file.split("/")[0]
    return EVERYWHERE if folder not in LAYERS or file.startswith("kernels/simd/") else folder


def is_drawn(caller: str, file: str) -> bool:
    """Whether a call goes down to another layer, or to a file that the caller imports."""
    above, below = layer_of(caller), layer_of(file)
    if below == EVERYWHERE:
        return False
    return imports(caller, file) if above == below else LAYERS.index(above) < LAYERS.index(below)


def imports(caller: str, file: str) -> bool:
    """Whether one file imports another, or something from it."""
    first, second = (f"treefield.{path.removesuffix('.py').replace('/', '.')}" for path in (caller, file))
    values = vars(sys.modules[first]).values()
    return any(value is sys.modules[second] or getattr(value, "__module__", None) == second for value in values)


def arrows_of(calls: list[Call]) -> list[Call]:
    """The calls that a diagram shows."""
    drawn = [call for call in calls if is_drawn(*call)]
    below: dict[str, set[str]] = {file: set() for call in calls for file in call}  # all that a file leads to
    for _ in below:
        for caller, file in drawn:
            below[caller] |= {file} | below[file]

    def is_implied(caller: str, file: str) -> bool:
        return caller != YOU and any(file in below[between] for other, between in drawn if other == caller)

    return [call for call in drawn if not is_implied(*call)]


def diagram(calls: list[Call]) -> str:
    """The calls as a Mermaid diagram; files are numbered in the order of their first call."""
    files = files_of(calls)
    names = {YOU: YOU} | {file: f"f{number}" for number, file in enumerate(files, 1)}
    lines = ["flowchart TB", f"    {YOU}([{YOU}])"]
    for layer in sorted({layer_of(file) for file in files}, key=LAYERS.index):
        lines.append(f"    subgraph {layer}")
        if layer == EVERYWHERE:
            lines[-1:] = [f"    subgraph {layer} [called from most files]", "        direction TB"]
        for number, file in enumerate(files, 1):
            if layer_of(file) == layer:
                label = file.removeprefix(f"{layer}/").removesuffix(".py")
                lines.append(f'        {names[file]}["{number} {label}"]')
        lines.append("    end")
    lines += [f"    {names[caller]} --> {names[file]}" for caller, file in arrows_of(calls)]
    lines.append(f"    kernels ~~~ {EVERYWHERE}")
    return "\n".join(["```mermaid", *lines, "```"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("search", choices=SEARCHES)
    parser.add_argument("--diagram", action="store_true", help="print a Mermaid diagram instead of the list of files")
    given = parser.parse_args()
    calls = follow(given.search)
    files = files_of(calls)
    print(diagram(calls) if given.diagram else "\n".join([*files, f"{len(files)} files"]))


if __name__ == "__main__":
    main()
