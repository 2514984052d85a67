"""One item of a batch: what is to be done, and how it went."""

from __future__ import annotations

import dataclasses
import inspect
import pathlib
import pickle
import time
from collections.abc import Callable
from typing import Any

from treefield.apps.pictures import has_channels
from treefield.io.files import one_line
from treefield.io.images import read_image
from treefield.solvers.minimize import METHODS, takes


@dataclasses.dataclass(frozen=True)
class Job:
    """The arguments of one call, of which paths stand for the images there, and keywords of its own; or the error that
    came instead of them."""

    name: Any
    parts: tuple[Any, ...]
    options: dict[str, Any]
    error: Exception | None = None

    def anywhere(self) -> Job:
        """The same for a worker that may be in another folder."""
        parts = [part.absolute() if isinstance(part, pathlib.Path) else part for part in self.parts]
        return dataclasses.replace(self, parts=tuple(parts))


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a call returned or raised, and how long it took."""

    value: Any = None
    error: BaseException | None = None
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class Work:
    """What is done with every item."""

    function: Callable[..., Any]
    options: dict[str, Any]

    @classmethod
    def with_one_thread(cls, function: Callable[..., Any], options: dict[str, Any]) -> Work:
        """For many at once: each call uses one thread, unless another number is given."""
        if "threads" in _keywords(function, options):
            options = {"threads": 1} | options
        return cls(function, options)

    def attempt(self, job: Job) -> Outcome:
        """Read what is to be read and call the function; what it raises is part of the outcome."""
        start = time.perf_counter()
        value, error = None, None
        try:
            value = self._call(job)
        except (Exception, SystemExit) as raised:
            error = raised
        return Outcome(value, error, time.perf_counter() - start)

    def _call(self, job: Job) -> Any:
        if job.error is not None:
            raise job.error
        files = [isinstance(part, pathlib.Path) for part in job.parts]
        parts = [read_image(part) if file else part for part, file in zip(job.parts, files, strict=True)]
        options = self.options | job.options
        if files and files[0] and has_channels(parts[0].shape) and "channel_axis" in _keywords(self.function, options):
            options = {"channel_axis": -1} | options
        return self.function(*parts, **options)


def _keywords(function: Callable[..., Any], options: dict[str, Any]) -> list[str]:
    """The keywords a function is known to take; one of ours hands those it has no name for to `minimize`."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have none
        return []
    inner = inspect.unwrap(getattr(function, "func", function))
    ours = (getattr(inner, "__module__", None) or "").startswith("treefield.apps.")
    method = options.get("method", "auto")
    return [*parameters, *(takes(method) if ours and method in METHODS else ())]


def pickled(outcome: Outcome) -> bytes:
    """An outcome that another process can surely unpickle: what cannot be sent becomes an error that says so."""
    try:
        data = pickle.dumps(outcome)
        if outcome.error is not None:
            pickle.loads(data)  # not every exception comes back
        return data
    except Exception as problem:
        if outcome.error is not None:
            error = RuntimeError(f"{type(outcome.error).__name__}: {one_line(outcome.error)}")
        else:
            error = RuntimeError(f"what the function returned cannot be sent to another process: {one_line(problem)}")
        return pickle.dumps(Outcome(error=error, seconds=outcome.seconds))
