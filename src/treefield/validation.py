"""Checks and conversions of the arguments of public functions."""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
import os
import pathlib
import re
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from treefield.protocols import Labels, Model, TiledModel

F = TypeVar("F", bound=Callable[..., object])

_MOST_THREADS = 4096
_AMERICAN_SPELLING = {"neighbor": "neighbour"}
_PACKAGE = str(pathlib.Path(__file__).parent)

# Keywords of other libraries, and ours for the same thing; where several are, the first that is accepted.
_SYNONYMS = {
    **dict.fromkeys(("seed", "random_state", "random_seed"), ("rng",)),
    **dict.fromkeys(("multichannel", "channels", "axis"), ("channel_axis",)),
    **dict.fromkeys(("n_segments", "num_labels", "n_labels", "n_clusters", "markers"), ("labels", "levels")),
    **dict.fromkeys(("max_iter", "max_num_iter", "n_iter", "num_iter", "niter", "iterations"), ("maxiter",)),
    **dict.fromkeys(("timeout", "max_time", "time"), ("time_limit",)),
    **dict.fromkeys(("verbose", "disp", "show_progress"), ("progress",)),
    **dict.fromkeys(("n_jobs", "num_threads", "n_threads"), ("threads", "workers")),
    **dict.fromkeys(("num_workers", "n_workers", "processes"), ("workers", "threads")),
    **dict.fromkeys(("eps", "tolerance", "gap"), ("tol",)),
    **dict.fromkeys(("init", "initial", "start"), ("x0",)),
    **dict.fromkeys(("num_disp", "ndisp", "max_disparity"), ("num_disparities",)),
}
_LEAST_LIKENESS = 0.75  # of a misspelt keyword, by difflib's ratio


def as_real_array(value: object, name: str) -> np.ndarray:
    """`value` as a real NumPy array, or a TypeError."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(f"{name} must be an array of numbers, but its rows differ in length: {error}") from None
    if array.dtype.kind not in "buif":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array


def smallest_dtype(array: np.ndarray, name: str) -> np.dtype:
    """The smallest of uint8, uint16, float32 and float64 that holds every value of an array exactly.

    Arrays that already have one of these dtypes keep it.
    """
    native = array.dtype.newbyteorder("=")
    if native in (np.uint8, np.uint16, np.float32, np.float64):
        return native
    if native == np.float16:
        return np.dtype(np.float32)
    if array.dtype.kind == "f":
        return np.dtype(np.float64)
    if array.dtype == np.bool_ or array.size == 0:
        return np.dtype(np.uint8)
    low, high = int(array.min()), int(array.max())
    if low >= 0 and high < 2**16:
        return np.dtype(np.uint8 if high < 2**8 else np.uint16)
    largest = max(-low, high)
    if largest > 2**53:
        raise ValueError(
            f"{name} holds integers up to {largest}, beyond 2**53, which float64 does not hold exactly; "
            "divide them by a common factor"
        )
    return np.dtype(np.float32 if largest <= 2**24 else np.float64)


def is_integral(values: np.ndarray) -> np.ndarray:
    """Test each value for being an integer; infinities count as integers, NaN does not."""
    return values == np.floor(values)


def all_integral(values: np.ndarray) -> bool:
    """Whether all values are integers; infinities, which stand for forbidden costs, count as integers."""
    return values.dtype.kind in "bui" or bool(is_integral(values).all())


def label_dtype(n_labels: int) -> np.dtype:
    """The smallest integer dtype that holds all n_labels."""
    return np.min_scalar_type(max(n_labels - 1, 1))


def as_real_scalar(value: object, name: str, *, infinite: bool = False) -> float:
    """`value` as a float, finite unless `infinite`, or an error."""
    is_int = isinstance(value, int) and not isinstance(value, bool)
    array = np.asarray(0 if is_int or isinstance(value, list | tuple) else value)
    if isinstance(value, list | tuple) or array.ndim or array.dtype.kind not in "uif":
        raise TypeError(f"{name} must be a number, got {_shown(value)}")
    try:
        number = float(value) if isinstance(value, int) else float(array)
    except OverflowError:
        raise ValueError(f"{name} must be finite, but {_shown(value)} is beyond what a float holds") from None
    if math.isnan(number) or (math.isinf(number) and not infinite):
        raise ValueError(f"{name} must be {'a number' if infinite else 'finite'}, got {number}".replace("nan", "NaN"))
    return number


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_model(mrf: object) -> Model:
    """`mrf` if it is a model in memory, or an error."""
    if isinstance(mrf, type) or not isinstance(mrf, Model | TiledModel):
        models = "GridMRF(unary, pairwise) or GraphMRF(unaries, edges, pairwise)"
        raise TypeError(f"mrf must be a model such as {models}, got {type(mrf).__name__}")
    if not isinstance(mrf, Model):
        raise TypeError("a TiledMRF is searched by minimize, t_icm and t_ils; the other solvers need a GridMRF")
    return mrf


def check_has_lines(mrf: Model, what: str, instead: str) -> None:
    """Raise if a model is not a grid."""
    if not mrf.backend.has_lines:
        raise TypeError(f"{what}, got a {type(mrf).__name__}; {instead}")


def as_labelling(x: ArrayLike, labels: Labels, name: str = "x", copy: bool = True) -> np.ndarray:
    """`x` as a new int32 array of the model's shape, with labels that its sites have, or an error.

    Without `copy` the array itself, if it already is one.
    """
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise TypeError(f"{name} must be an array of integer labels, but its rows differ in length: {error}") from None
    if array.dtype.kind not in "bui":
        raise TypeError(
            f"{name} must be an array of integer labels, got dtype {array.dtype}; convert it with .astype(int)"
        )
    if array.shape != labels.shape:
        raise ValueError(f"{name} has shape {array.shape}, but the model's is {labels.shape}")
    if labels.mask is not None:  # labels where there is no site do not matter
        array = np.where(labels.mask, array, 0)
    check_labels(array, labels.n_labels, name)
    _check_counts(array, labels, name)
    return np.array(array, dtype=np.int32, order="C") if copy else np.ascontiguousarray(array, dtype=np.int32)


def check_labels(array: np.ndarray, n_labels: int, name: str) -> None:
    """Raise unless every value is in range(n_labels)."""
    if array.size and (array.min() < 0 or array.max() >= n_labels):
        raise ValueError(f"{name} holds labels from {array.min()} to {array.max()}, expected 0 to {n_labels - 1}")


def as_flat_labels(x: object, labels: Labels) -> np.ndarray:
    """A flat view of a labelling that a kernel may write to, or an error."""
    as_flat_input(x, labels)
    return as_flat_output(x, labels)


def as_flat_output(x: object, labels: Labels) -> np.ndarray:
    """A flat view of an array that a kernel may write a labelling to, whatever is in it, or an error."""
    flat = _flat_labels(x, labels, "x")
    if not flat.flags.writeable:
        raise ValueError("x is read-only, but it is changed in place: give a copy")
    return flat


def as_flat_input(x: object, labels: Labels, name: str = "x") -> np.ndarray:
    """A flat view of a labelling that a kernel may read, or an error."""
    flat = _flat_labels(x, labels, name)
    if flat.view(np.uint32).max() >= labels.n_labels:
        raise ValueError(f"{name} holds labels from {flat.min()} to {flat.max()}, expected 0 to {labels.n_labels - 1}")
    _check_counts(flat, labels, name)
    return flat


def _check_counts(x: np.ndarray, labels: Labels, name: str) -> None:
    """Raise if a site has a label that only other sites have."""
    if labels.has_uniform_labels:
        return
    beyond = x >= labels.label_counts
    if beyond.any():
        site = int(beyond.argmax())
        count = int(labels.label_counts[site])
        raise ValueError(f"{name}[{site}] is label {x[site]}, but the site has the labels 0 to {count - 1}")


def _flat_labels(x: object, labels: Labels, name: str) -> np.ndarray:
    if not isinstance(x, np.ndarray) or x.dtype != np.int32 or not x.flags.c_contiguous or x.shape != labels.shape:
        came = f"{x.dtype} array of shape {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
        raise ValueError(f"{name} must be a C-contiguous int32 array of shape {labels.shape}, got {came}")
    return x.reshape(-1)


def as_choice(value: object, name: str, allowed: tuple[str, ...]) -> str:
    """`value` if it is one of the allowed words, or an error; American spelling becomes ours."""
    word = _AMERICAN_SPELLING.get(value, value) if isinstance(value, str) else value
    if not isinstance(word, str) or word not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return word


def as_positive(value: object, name: str, *, infinite: bool = False) -> float:
    """`value` as a number above 0, or an error."""
    number = as_real_scalar(value, name, infinite=infinite)
    if number <= 0:
        raise ValueError(f"{name} must be above 0, got {number:g}")
    return number


def as_non_negative(value: object, name: str, *, infinite: bool = False) -> float:
    """`value` as a number of at least 0, finite unless `infinite`, or an error."""
    number = as_real_scalar(value, name, infinite=infinite)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, got {number:g}")
    return number


def as_share(value: object, name: str) -> float:
    """`value` as a number above 0 and at most 1, or an error."""
    number = as_real_scalar(value, name)
    if not 0 < number <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {number:g}")
    return number


def as_count(value: object, name: str, least: int = 0) -> int:
    """`value` as an integer of at least `least`, or an error."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def as_fields(value: object, name: str, *keys: str) -> list[Any]:
    """The values of a dict that has exactly these keys, in their order, or an error."""
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be a dict, got {_shown(value)}")
    if value.keys() != set(keys):
        raise ValueError(f"{name} must have the keys {', '.join(keys)}, got {', '.join(map(str, value)) or 'none'}")
    return [value[key] for key in keys]


def as_axis(value: object, dimensions: int, name: str = "axis") -> int:
    """`value` as an axis, from -dimensions to dimensions - 1, or an error."""
    axis = as_count(value, name, -dimensions)
    if axis >= dimensions:
        raise ValueError(f"{name} must be between {-dimensions} and {dimensions - 1}, got {axis}")
    return axis


def as_callable(value: F, name: str, of: str) -> F:
    """`value` if it can be called, or an error; a class is no object of it."""
    if isinstance(value, type):
        raise TypeError(
            f"{name} must be a function of {of}, got the class {value.__name__}; did you mean {value.__name__}()?"
        )
    if not callable(value):
        raise TypeError(f"{name} must be a function of {of}, got {_shown(value)}")
    return value


def as_generator(rng: object) -> np.random.Generator:
    """A NumPy generator from None, an integer seed or a generator."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None or (isinstance(rng, numbers.Integral) and not isinstance(rng, bool)):
        if rng is not None and int(rng) < 0:
            raise ValueError(f"rng must be None, a non-negative integer or a numpy.random.Generator, got {rng}")
        return np.random.default_rng(None if rng is None else int(rng))
    raise TypeError(f"rng must be None, a non-negative integer or a numpy.random.Generator, got {rng!r}")


def as_thread_count(threads: object) -> int:
    """How many threads to use: the argument, else TREEFIELD_NUM_THREADS, else all cores this process may use."""
    if threads is None:
        text = os.environ.get("TREEFIELD_NUM_THREADS")
        if text is None:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        try:
            return as_count(int(text), "TREEFIELD_NUM_THREADS", 1)
        except ValueError:
            raise ValueError(f"TREEFIELD_NUM_THREADS must be a positive integer, got {text!r}") from None
    count = as_count(threads, "threads", 1)
    if count > _MOST_THREADS:
        raise ValueError(f"threads must be at most {_MOST_THREADS}, got {threads}")
    return count


def as_byte_count(value: object, name: str) -> int:
    """`value`, a number of bytes or text such as "500 MB" or "2GiB", as bytes, or an error."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]+|[0-9]*\.[0-9]+)\s*([kmgt]?)(i?)b\s*", value, re.IGNORECASE)
        if match is None:
            raise ValueError(f'{name} must be a number of bytes or text such as "500 MB", got {value!r}')
        number = float(match[1])
        number *= (1024 if match[3] else 1000) ** " kmgt".index(match[2].lower() or " ")
    else:
        number = as_real_scalar(value, name)
    if number < 1:
        raise ValueError(f"{name} must be at least 1 byte, got {value!r}")
    return int(number)


def check_keywords(
    given: Iterable[str], taker: str, own: Sequence[str], passed_on: Sequence[str] = (), receiver: str = ""
) -> None:
    """Raise a TypeError for a keyword that is not accepted; it names the one that was probably meant, and all others.

    `taker` accepts its own keywords and, if it passes them on, those of `receiver`.
    """
    for name in given:
        if name in own or name in passed_on:
            continue
        meant = _suggest_keyword(name, own, passed_on)
        names = [*own, f"and the keywords of {receiver}"] if passed_on else own
        accepted = f"takes {', '.join(names) or 'nothing'}"
        hint = f"it {accepted}" if meant is None else f"did you mean {meant}? It {accepted}"
        raise TypeError(f"{taker} takes no {name}; {hint}")


def _suggest_keyword(name: str, *accepted: Sequence[str]) -> str | None:
    """The accepted keyword that was probably meant, or None; of synonyms, one of the first group that has any."""
    for names in accepted:
        for meant in _SYNONYMS.get(name, ()):
            if meant in names:
                return meant
    names = [each for group in accepted for each in group]
    return next(iter(difflib.get_close_matches(name.lower(), names, 1, _LEAST_LIKENESS)), None)


def warn_caller(message: str) -> None:
    """Issue a UserWarning at the line outside of treefield that called it."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def warn_direct_caller(message: str) -> None:
    """Issue a UserWarning at the line that called the function that calls this, unless that line is in treefield."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = None if frame is None else frame.f_back
    if frame is not None and not _is_ours(frame):
        warnings.warn(message, stacklevel=3)


def _is_ours(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)
