"""Checkpoint files: a killed search resumes from one and ends bit for bit as if it had never stopped.

Layout: the line "treefield checkpoint 2"; a line with the BLAKE2b digest of every byte after it; a line of JSON with
the search that wrote the file, its state, and the dtype and shape of each array; then the bytes of the arrays in that
order. Nothing is parsed before the digest has been verified. Dtypes and shapes are those that the search needs: the
file's must equal them. The digest finds damage; `Run.resume` checks the rest, so that not even a file made by hand
leads to labels or positions out of range.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import glob
import hashlib
import json
import math
import os
import pathlib
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from treefield.atomic_write import replace_atomically
from treefield.protocols import Model
from treefield.results import TRACE
from treefield.solvers.identity import model_digest
from treefield.validation import as_fields, as_flat_input, label_dtype

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_FORMAT = "treefield checkpoint 2"
_MAGIC = f"{_FORMAT}\n".encode()
_DIGEST_BYTES = 32
_HEAD = len(_MAGIC) + 2 * _DIGEST_BYTES + 1  # the magic line, the digest in hexadecimal, a newline
_INTERVAL = 1.0  # least seconds between two files
_SHARE = 20  # least pause between two files, in multiples of the time it takes to write one


@dataclasses.dataclass
class Saved:
    """The content of a checkpoint whose digest, owner, dtypes and shapes are right."""

    path: pathlib.Path
    state: object
    arrays: dict[str, np.ndarray]

    def explain_errors(self) -> contextlib.AbstractContextManager[None]:
        """Turn any exception from checking or restoring the content into one error that names the file."""
        return _explain_errors(self.path)


class Checkpoint:
    """A file that is replaced atomically, at intervals, by the state of one search.

    The file belongs to one model and one search (its method and `settings`, which JSON can hold); a file of another one
    is refused and left unchanged. `stacks` names the arrays, besides the labellings "x" and "best" and the trace, that
    hold the given number of labellings each; `blobs` names arrays of bytes, of any length.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        method: str,
        mrf: Model,
        settings: Mapping[str, object],
        stacks: dict[str, int] | None = None,
        blobs: Sequence[str] = (),
    ) -> None:
        self.path = pathlib.Path(as_checkpoint_path(path))
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint {path}: there is no folder {self.path.parent}")
        if self.path.is_dir():
            raise IsADirectoryError(f"checkpoint {path} is a folder, expected the path of a file")
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"checkpoint {path} is not a regular file; give another path")
        self._settings: dict[str, object] = _json_round_trip(settings)
        self._owner = {"method": method, "model": model_digest(mrf), "settings": self._settings}
        labels = label_dtype(mrf.n_labels)
        self._specs = {"best": (labels, mrf.shape), "trace": (TRACE, (-1,)), "x": (labels, mrf.shape)}
        self._specs |= {name: (labels, (number, *mrf.shape)) for name, number in (stacks or {}).items()}
        self._specs |= {name: (np.dtype(np.uint8), (-1,)) for name in blobs}
        self._next = 0.0
        self._fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}-{threading.get_ident()}")
        self._fresh.touch()  # an error now is better than one after an hour
        self._fresh.unlink()

    def load(self) -> Saved | None:
        """Read and check the file; None if there is none yet."""
        self._clean()
        if not self.path.exists():
            return None
        content = self._verified()
        with _explain_errors(self.path):
            line, _, data = content.partition(b"\n")
            owner, state, specs = as_fields(json.loads(line), "the file", "owner", "state", "arrays")
            owned = as_fields(owner, "owner", "method", "model", "settings")
            if not isinstance(owned[2], dict):
                raise TypeError(f"settings must be a dict, got {type(owned[2]).__name__}")
        self._compare(*owned)
        with _explain_errors(self.path):
            return Saved(self.path, state, self._split(specs, data))

    def _verified(self) -> bytes:
        """Everything after the digest, or an error if the file is of another format or does not match its digest."""
        try:
            with self.path.open("rb") as file:
                head = file.read(_HEAD)
                content = file.read() if head.startswith(_MAGIC) else b""
        except OSError as error:
            raise _refused(self.path, f"cannot be read ({error})") from None
        if not head.startswith(_MAGIC):
            found = _format_of(head)
            if found is None:
                raise _refused(self.path, "is not a treefield checkpoint")
            raise _refused(self.path, f"has the format {found!r}, expected {_FORMAT!r}")
        if head[len(_MAGIC) :] != _digest([content]):
            raise _refused(self.path, "is damaged: its content does not match its checksum")
        return content

    def _split(self, specs: Any, data: bytes) -> dict[str, np.ndarray]:
        """The arrays in `data`, each with the dtype and shape that this search needs."""
        as_fields(specs, "arrays", *self._specs)
        arrays, offset = {}, 0
        for name, spec in specs.items():
            dtype, shape = self._specs[name]
            kind, lengths = as_fields(spec, name, "dtype", "shape")
            if not isinstance(lengths, list) or not all(type(length) is int and length >= 0 for length in lengths):
                raise ValueError(f"the shape of {name} must be a list of lengths")
            expected = lengths[:1] if shape == (-1,) else list(shape)
            if kind != _dtype_name(dtype) or lengths != expected:
                raise ValueError(f"{name} is {kind} {lengths}, expected {_dtype_name(dtype)} {expected}")
            end = offset + dtype.itemsize * math.prod(lengths)
            if end > len(data):
                raise ValueError(f"{name} ends at byte {end} of {len(data)}")
            arrays[name] = np.frombuffer(data[offset:end], dtype).reshape(lengths)
            offset = end
        if offset != len(data):
            raise ValueError(f"the arrays end at byte {offset} of {len(data)}")
        return arrays

    def _clean(self) -> None:
        """Remove temporary files of processes that were killed while they wrote."""
        for left in self.path.parent.glob(f".{glob.escape(self.path.name)}.[0-9]*"):
            number = left.name.rpartition(".")[2].partition("-")[0]
            if number.isdigit() and not _is_alive(int(number)):
                with contextlib.suppress(OSError):
                    left.unlink()

    def _compare(self, method: object, model: object, settings: dict[str, object]) -> None:
        """Raise unless the file was written by the same search of the same model."""
        if method != self._owner["method"]:
            raise _refused(self.path, f"was written by {method}, cannot resume {self._owner['method']}")
        if model != self._owner["model"]:
            raise _refused(self.path, "belongs to another model")
        own = self._settings
        for name in own | settings:
            if name not in own or name not in settings or settings[name] != own[name]:
                was, now = settings.get(name), own.get(name)
                raise _refused(self.path, f"was written with {name}={was}, this search has {name}={now}")

    @property
    def is_due(self) -> bool:
        """Whether it is time for a new file."""
        return time.monotonic() >= self._next

    def save(self, state: dict[str, object], arrays: dict[str, np.ndarray]) -> None:
        """Replace the file. If that fails, the old one stays and a warning says so: the search is worth more."""
        start = time.monotonic()
        specs = {name: {"dtype": _dtype_name(array.dtype), "shape": array.shape} for name, array in arrays.items()}
        header = json.dumps({"owner": self._owner, "state": _json_round_trip(state), "arrays": specs})
        parts: list[ReadableBuffer] = [f"{header}\n".encode()]
        parts += [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in arrays.values()]
        try:
            with replace_atomically(self.path, self._fresh) as fresh, fresh.open("wb") as file:
                file.write(_MAGIC + _digest(parts))
                file.writelines(parts)
        except OSError as error:
            warnings.warn(f"checkpoint {self.path} could not be written: {error}; the search goes on", stacklevel=2)
        end = time.monotonic()
        self._next = end + max(_INTERVAL, _SHARE * (end - start))


def open_checkpoint(
    path: str | os.PathLike[str] | None,
    method: str,
    mrf: Model,
    settings: Mapping[str, object],
    stacks: dict[str, int] | None = None,
    blobs: Sequence[str] = (),
) -> tuple[Checkpoint | None, Saved | None]:
    """The checkpoint at a path, None without a path; and its content, None if the file does not exist yet."""
    if path is None:
        return None, None
    file = Checkpoint(path, method, mrf, settings, stacks, blobs)
    return file, file.load()


def compact_labellings(labellings: np.ndarray | list[np.ndarray], mrf: Model) -> np.ndarray:
    """Labellings in the smallest integer type that holds the model's labels."""
    return np.asarray(labellings).astype(label_dtype(mrf.n_labels))


def as_checkpoint_path(path: str | os.PathLike[str]) -> str:
    """`path` as an absolute path with links resolved, or an error."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"checkpoint must be the path of a file, got {path!r}")
    try:
        return str(pathlib.Path(os.fsdecode(path)).resolve())
    except (RuntimeError, OSError):  # the former until Python 3.12
        raise ValueError(f"checkpoint {path} is a loop of symbolic links; give another path, or remove it") from None


def as_saved_labelling(array: np.ndarray, mrf: Model, name: str) -> np.ndarray:
    """A saved labelling as int32, or an error if a label is out of range."""
    x = np.ascontiguousarray(array, np.int32)
    as_flat_input(x, mrf.backend, name)
    return x


def check_trace(trace: np.ndarray, nit: int, best: float) -> None:
    """Raise unless a saved trace has one row for each of `nit` iterations, after one or two for the start."""
    extra = len(trace) - 1 - nit
    if extra not in (0, 1) or not np.array_equal(trace["iteration"], np.maximum(np.arange(len(trace)) - extra, 0)):
        raise ValueError(f"trace does not have one row for each of {nit} iterations")
    if not np.isfinite(trace["seconds"]).all():
        raise ValueError("trace has seconds that are not finite")
    if np.isnan(trace["energy"]).any() or np.isnan(trace["best"]).any():
        raise ValueError("trace has an energy that is NaN")
    if (trace["bound"] - trace["best"] > 1e-9 * np.abs(trace["best"])).any():  # more than rounding
        raise ValueError("trace has a bound above the best energy")
    if trace["best"][-1] != best:
        raise ValueError(f"trace ends with the best energy {trace['best'][-1]}, but best_rank says {best}")


def check_stream(state: Any, rng: np.random.Generator) -> None:
    """Raise unless `state` is a state of the generator's kind of random numbers; the generator stays unchanged."""
    trial = copy.deepcopy(rng.bit_generator)
    name = type(trial).__name__
    found = state.get("bit_generator") if isinstance(state, dict) else None
    if found != name:
        raise ValueError(f"its random numbers come from {found}, but rng draws from {name}")
    trial.state = state
    # NumPy accepts any position in a buffer, also one past its end
    read = {"MT19937": lambda: (state["state"]["pos"], 624), "Philox": lambda: (state["buffer_pos"], 4)}
    position, length = read.get(name, lambda: (0, 0))()
    is_same = _json_round_trip(trial.state) == state
    if not is_same or not 0 <= position <= length or state.get("has_uint32", 0) not in (0, 1):
        raise ValueError(f"rng is not a state of {name}")


def _refused(path: pathlib.Path, why: str) -> ValueError:
    why = why.replace("\n", " ")  # reprs of arrays have several lines
    return ValueError(f"checkpoint {path} {why}; the file is left unchanged: give another path, or remove it")


@contextlib.contextmanager
def _explain_errors(path: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # also from a set_state() of the user's
        text = " ".join(str(error).split())
        why = text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"
        raise _refused(path, f"cannot be resumed ({why})") from error


def _format_of(head: bytes) -> str | None:
    """The format of a file that begins with `head`; None if no version of treefield wrote it."""
    if head.startswith(_FORMAT[:-1].encode()):
        return head.partition(b"\n")[0][:40].decode("ascii", "replace")
    if head.startswith(b"PK") and head[30:40] == b"header.npy":  # an .npz archive
        return "treefield checkpoint 1"
    return None


def _digest(parts: Sequence[ReadableBuffer]) -> bytes:
    """The line with the digest of all parts."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return f"{digest.hexdigest()}\n".encode()


def _dtype_name(dtype: np.dtype) -> str:
    """A dtype as text, with its byte order and fields."""
    return str(np.lib.format.dtype_to_descr(dtype))


def _is_alive(process: int) -> bool:
    """Whether a process may still be running; always True where POSIX signals are missing."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _json_round_trip(value: object) -> Any:
    """`value` as JSON returns it: tuples as lists, arrays as nested lists."""
    return json.loads(json.dumps(value, default=_to_list))


def _to_list(item: object) -> object:
    if not hasattr(item, "tolist"):
        raise TypeError(f"a checkpoint keeps what JSON can hold, got a {type(item).__name__}")
    return item.tolist()
