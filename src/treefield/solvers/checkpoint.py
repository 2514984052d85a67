"""Files from which a killed search goes on as if nothing had happened."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import time
import zipfile
from typing import Any

import numpy as np

_FORMAT = "treefield checkpoint 1"
_INTERVAL = 1.0  # seconds between two files, at least
_SHARE = 20  # and at least so many times what writing one takes


class Checkpoint:
    """A file that is replaced every so often, atomically: at any moment it is either the old or the new one.

    It belongs to one model and one kind of search (`settings`, what JSON holds); that of another is refused and left as
    it is.
    """

    def __init__(self, path: Any, method: str, mrf: Any, settings: dict[str, Any]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"checkpoint must be the path of a file, got {path!r}")
        self.path = pathlib.Path(os.fsdecode(path)).absolute()
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint {path}: there is no folder {self.path.parent}")
        if self.path.is_dir():
            raise IsADirectoryError(f"checkpoint {path} is a folder, expected the path of a file")
        self._owner = {"method": method, "model": _fingerprint(mrf), "settings": _plain(settings)}
        self._next = 0.0

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """What was saved, numbers and arrays; None if there is no file yet."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(str(arrays.pop("header")))
            known = header["format"] == _FORMAT
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"checkpoint {self.path} is not a file that treefield wrote ({error}); "
                "it is left as it is: give another path, or remove it"
            ) from None
        if not known:
            raise ValueError(f"checkpoint {self.path} has the format {header['format']!r}, expected {_FORMAT!r}")
        self._compare(header["owner"])
        return header["state"], arrays

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
        """Replace the file."""
        start = time.monotonic()
        header = json.dumps({"format": _FORMAT, "owner": self._owner, "state": _plain(state)})
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with fresh.open("wb") as file:
                np.savez(file, allow_pickle=False, header=np.array(header), **arrays)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
        finally:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
        end = time.monotonic()
        self._next = end + max(_INTERVAL, _SHARE * (end - start))


def described(part: Any) -> str:
    """A part of a search by which it is known again in another process."""
    if isinstance(part, list | tuple) and part and isinstance(part[0], np.ndarray):
        digest = hashlib.blake2b(digest_size=16)
        for sites in part:
            digest.update(repr(sites.tolist()).encode())
        return f"trees {digest.hexdigest()}"
    kind = part if hasattr(part, "__qualname__") else type(part)
    if kind is not part and kind.__repr__ is not object.__repr__:
        return repr(part)
    return f"{kind.__module__}.{kind.__qualname__}"


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
