"""Compiled kernels on disk.

There is one file for each kernel and combination of argument types. It holds a digest of all that follows, the digest
of a label (the version of Numba, the source files, the key) and the pickled code. The first digest fails if the file is
damaged, the second if it was written for other sources. In both cases the kernel is compiled and the file replaced.
There is no index that several processes would have to update.
"""

import contextlib
import functools
import hashlib
import pathlib
import pickle
import uuid

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from treefield.kernels.notices import Notice

_DIGEST = 32  # bytes

notice = Notice()


class KernelCache(FunctionCache):
    """Numba's cache with files that are checked before they are used; without a usable file it compiles."""

    def __init__(self, function):
        super().__init__(function)
        self._cache_file = _KernelFiles(pathlib.Path(self.cache_path), self._impl.filename_base)

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except OSError as error:
            notice.give(
                f"cannot cache compiled kernels in {self.cache_path}: {error.strerror or error}; the next run compiles "
                "them again unless NUMBA_CACHE_DIR names a folder with room"
            )


class _KernelFiles:
    """The files of one kernel."""

    def __init__(self, folder, name):
        self._folder, self._name = folder, name

    def load(self, key):
        """The data saved for this key; None if there is none, or none that can be used."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            notice.give(f"cannot read the compiled kernel {path}: {error.strerror or error}; compiling it again")
            return None
        digest, content = content[:_DIGEST], memoryview(content)[_DIGEST:]
        if digest != _digest(content):
            notice.give(f"the compiled kernel {path} is damaged; compiling it again")
            return None
        if content[:_DIGEST] != _label(key):
            return None
        return pickle.loads(content[_DIGEST:])

    def save(self, key, data):
        content = _label(key) + dumps(data)
        path = self._path(key)
        temporary = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
        try:
            temporary.write_bytes(_digest(content) + content)
            temporary.replace(path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def flush(self):
        for path in self._folder.glob(f"{self._name}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key):
        return self._folder / f"{self._name}.{_digest(repr(key).encode()).hex()[:16]}.nbc"


def _digest(data):
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


def _label(key):
    return _digest(repr((numba.__version__, _source_stamp(), key)).encode())


@functools.cache
def _source_stamp():
    """Names, times and sizes of all kernel sources: helpers of other files are inlined into a kernel."""
    files = sorted(pathlib.Path(__file__).parent.glob("*.py"))
    return tuple((file.name, file.stat().st_mtime, file.stat().st_size) for file in files)
