"""Files from which a killed search goes on as if nothing had happened."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import pathlib
import re
import threading
import time
import warnings
import zipfile
import zlib
from typing import Any

import numpy as np

from treefield.models.stores import label_dtype

_FORMAT = "treefield checkpoint 1"
_INTERVAL = 1.0  # seconds between two files, at least
_SHARE = 20  # and at least so many times what writing one takes
# what reading a file that is no archive of arrays, or a damaged one, may raise
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


class Checkpoint:
    """A file that is replaced every so often, atomically: at any moment it is either the old or the new one.

    It belongs to one model and one kind of search (`settings`, what JSON holds); that of another is refused and left as
    it is.
    """

    def __init__(self, path: Any, method: str, mrf: Any, settings: dict[str, Any]) -> None:
        self.path = pathlib.Path(checked_path(path))
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint {path}: there is no folder {self.path.parent}")
        if self.path.is_dir():
            raise IsADirectoryError(f"checkpoint {path} is a folder, expected the path of a file")
        self._owner = {"method": method, "model": _fingerprint(mrf), "settings": _plain(settings)}
        self._next = 0.0
        self._fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}-{threading.get_ident()}")
        self._fresh.touch()  # an error now is better than one after an hour
        self._fresh.unlink()

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """What was saved, numbers and arrays; None if there is no file yet."""
        self._clean()
        if not self.path.exists():
            return None
        try:
            # np.load does not close a damaged file that it has opened itself
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(str(arrays.pop("header")))
            known = header["format"] == _FORMAT
            if known:
                arrays = {name: arrays[name] for name in header["arrays"]}
        except _UNREADABLE as error:
            raise ValueError(
                f"checkpoint {self.path} is not a file that treefield wrote ({error}); "
                "it is left as it is: give another path, or remove it"
            ) from None
        if not known:
            raise ValueError(f"checkpoint {self.path} has the format {header['format']!r}, expected {_FORMAT!r}")
        self._compare(header["owner"])
        return header["state"], arrays

    def _clean(self) -> None:
        """Remove what runs that were killed while they wrote have left."""
        for left in self.path.parent.glob(f".{glob.escape(self.path.name)}.[0-9]*"):
            number = left.name.rpartition(".")[2].partition("-")[0]
            if number.isdigit() and not _alive(int(number)):
                with contextlib.suppress(OSError):
                    left.unlink()

    def _compare(self, found: dict[str, Any]) -> None:
        kept = "; the file is left as it is: give another path, or remove it"
        if found["method"] != self._owner["method"]:
            raise ValueError(f"checkpoint {self.path} is of {found['method']}, this is {self._owner['method']}{kept}")
        if found["model"] != self._owner["model"]:
            raise ValueError(f"checkpoint {self.path} is of another model{kept}")
        for name, value in self._owner["settings"].items():
            if found["settings"].get(name) != value:
                was = found["settings"].get(name)
                raise ValueError(f"checkpoint {self.path} is of a search with {name}={was}, this has {value}{kept}")

    @property
    def due(self) -> bool:
        """Whether it is time for a new file."""
        return time.monotonic() >= self._next

    def save(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace the file. If that fails, the old one stays, and a warning says so: the search is worth more."""
        start = time.monotonic()
        header = json.dumps({"format": _FORMAT, "owner": self._owner, "state": _plain(state), "arrays": sorted(arrays)})
        fresh = self._fresh
        try:
            with fresh.open("wb") as file:
                np.savez(file, allow_pickle=False, header=np.array(header), **arrays)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
        except OSError as error:
            warnings.warn(f"checkpoint {self.path} could not be written: {error}; the search goes on", stacklevel=2)
        finally:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
        end = time.monotonic()
        self._next = end + max(_INTERVAL, _SHARE * (end - start))


def opened(path: Any, method: str, mrf: Any, settings: dict[str, Any]) -> tuple[Checkpoint | None, Any]:
    """The checkpoint at a path and what it holds; None for either that there is not."""
    if path is None:
        return None, None
    file = Checkpoint(path, method, mrf, settings)
    return file, file.load()


def compact(labellings: Any, mrf: Any) -> np.ndarray:
    """Labellings in the smallest type that holds the model's labels."""
    return np.asarray(labellings).astype(label_dtype(mrf.labels))


def checked_path(path: Any) -> str:
    """A path as an absolute one, links followed, or an error."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"checkpoint must be the path of a file, got {path!r}")
    return str(pathlib.Path(os.fsdecode(path)).resolve())


def _alive(process: int) -> bool:
    """Whether a process may still be running; elsewhere than on POSIX there is no way to ask."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is someone else's
        return True
    return True


def described(part: Any) -> str:
    """A part of a search by which it is known again in another process."""
    if isinstance(part, list | tuple | np.ndarray):  # trees of the user's own
        digest = hashlib.blake2b(digest_size=16)
        for sites in part:
            digest.update(repr(np.asarray(sites).tolist()).encode())
        return f"trees {digest.hexdigest()}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(part))  # addresses differ from one process to the next


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(value, default=lambda item: item.tolist()))


def _fingerprint(mrf: Any) -> str:
    """A hash of everything that makes the model."""
    digest = hashlib.blake2b(digest_size=16)
    for part in mrf.parts():
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
        else:
            digest.update(repr(part).encode())
    return digest.hexdigest()
