"""One item of a batch: the call to make, and its outcome."""

from __future__ import annotations

import dataclasses
import inspect
import pathlib
import pickle
import time
from collections.abc import Callable, Sequence

import numpy as np

from treefield.apps.image_arrays import has_channels
from treefield.io.images.image_formats import read_image
from treefield.io.paths import error_text
from treefield.solvers.minimize import METHODS, takes
from treefield.validation import check_keywords


@dataclasses.dataclass(frozen=True)
class BatchTask:
    """The arguments of one call, where a path stands for the image in that file, and keywords for this call alone.

    `error` is set instead if the iterator of items raised.
    """

    name: pathlib.Path | int
    arguments: tuple[object, ...]
    options: dict[str, object]
    error: Exception | None = None

    def with_absolute_paths(self) -> BatchTask:
        """The same task for a worker that may run in another folder."""
        arguments = [part.absolute() if isinstance(part, pathlib.Path) else part for part in self.arguments]
        return dataclasses.replace(self, arguments=tuple(arguments))


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The value that a call returned or the error that it raised, and how long it took."""

    value: object = None
    error: BaseException | None = None
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """The function to call for every item, and the keywords that all calls share."""

    function: Callable[..., object]
    options: dict[str, object]

    @classmethod
    def with_one_thread(cls, function: Callable[..., object], options: dict[str, object]) -> Call:
        """For several calls at once: each uses one thread unless the options say otherwise."""
        if "threads" in _keywords(function, options):
            options = {"threads": 1} | options
        return cls(function, options)

    def run(self, task: BatchTask) -> Outcome:
        """Read the files of a task and call the function. An exception becomes part of the outcome."""
        start = time.perf_counter()
        value, error = None, None
        try:
            value = self._call(task)
        except (Exception, SystemExit) as raised:
            error = raised
        return Outcome(value, error, time.perf_counter() - start)

    def _call(self, task: BatchTask) -> object:
        if task.error is not None:
            raise task.error
        arguments = [read_image(part) if isinstance(part, pathlib.Path) else part for part in task.arguments]
        options = self.options | task.options
        is_file = bool(task.arguments) and isinstance(task.arguments[0], pathlib.Path)
        image = arguments[0] if is_file else None
        is_colour = isinstance(image, np.ndarray) and has_channels(image.shape)
        if is_colour and "channel_axis" in _keywords(self.function, options):
            options = {"channel_axis": -1} | options
        return self.function(*arguments, **options)


def check_batch_options(function: Callable[..., object], options: dict[str, object], own: Sequence[str]) -> None:
    """Raise a TypeError for options of a batch that its function does not take; `own` are the keywords of `batch`.

    A function with `**keywords` may take any. If it is an application, one that only other methods take is left to it.
    """
    unknown = [name for name in options if name not in _keywords(function, options)]
    if not unknown or not _has_known_keywords(function):
        return
    if _is_application(function):
        unknown = [name for name in unknown if not any(name in takes(method) for method in METHODS)]
    name = getattr(_unwrap(function), "__name__", "the function")
    check_keywords(unknown, "batch", own, _keywords(function, options), name)


def _has_known_keywords(function: Callable[..., object]) -> bool:
    """Whether the keywords that a function takes are known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    return _is_application(function) or all(each.kind != inspect.Parameter.VAR_KEYWORD for each in parameters)


def _is_application(function: Callable[..., object]) -> bool:
    return (getattr(_unwrap(function), "__module__", None) or "").startswith("treefield.apps.")


def _unwrap(function: Callable[..., object]) -> Callable[..., object]:
    """The function inside of decorators and of a functools.partial."""
    return inspect.unwrap(getattr(function, "func", function))


def _keywords(function: Callable[..., object], options: dict[str, object]) -> list[str]:
    """The keywords that a function takes. An application also takes those of the solver it hands them to."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return []
    method = options.get("method", "auto")
    return [*parameters, *(["method", *takes(method)] if _is_application(function) and method in METHODS else ())]


def pickle_outcome(outcome: Outcome) -> bytes:
    """Pickle an outcome. If it cannot be pickled, or its error not unpickled, send an error that says so instead."""
    try:
        data = pickle.dumps(outcome)
        if outcome.error is not None:
            pickle.loads(data)  # some exceptions can be pickled but not unpickled
        return data
    except Exception as problem:
        if outcome.error is not None:
            error = RuntimeError(f"{type(outcome.error).__name__}: {error_text(outcome.error)}")
        else:
            error = RuntimeError(
                f"the function's return value cannot be sent to another process: {error_text(problem)}"
            )
        return pickle.dumps(Outcome(error=error, seconds=outcome.seconds))
