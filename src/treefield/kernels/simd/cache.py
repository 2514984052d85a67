"""Compiled kernels on disk.

All kernels are in one folder, one file for each kernel and combination of argument types. A file holds a digest of all
that follows, the digest of a label (the version of Numba, the source files, the key) and the pickled code. The first
digest fails if the file is damaged, the second if it was written for other sources. In both cases the kernel is
compiled and the file replaced. There is no index that several processes would have to update.

The folder is the first of these that can be written to: one in NUMBA_CACHE_DIR, ``kernels/__pycache__``, one in the
user's folder of caches. Kernels are read from those before it, too: a system-wide installation may have filled its own.
"""

import contextlib
import functools
import hashlib
import os
import pathlib
import pickle
import sys
import tempfile
import uuid

import numba

from treefield.kernels.simd import numba_internals
from treefield.kernels.simd.checks import CHECKED
from treefield.kernels.simd.notices import Notice

_DIGEST = 32  # bytes
_KERNELS = pathlib.Path(__file__).parents[1]

notice = Notice()


def cache_folders():
    """The folders that kernels are read from, and whether the last of them can be written to."""
    return _usable_folders(numba.config.CACHE_DIR)


@functools.cache
def _usable_folders(configured):
    folders = []
    for folder in _candidates(configured):
        writable = _is_writable(folder)
        if writable or next(folder.glob("*.nbc"), None) is not None:
            folders.append(folder)
        if writable:
            return tuple(folders), True
    return tuple(folders), False


def _candidates(configured):
    name = f"treefield_{hashlib.sha1(os.fsencode(_KERNELS)).hexdigest()[:16]}"  # installations do not share files
    if configured:
        yield pathlib.Path(configured) / name
    yield _KERNELS / "__pycache__"
    with contextlib.suppress(RuntimeError):  # no home
        yield _user_caches() / name


def _user_caches():
    """The user's folder of caches, as each system has it."""
    if sys.platform == "win32":
        return pathlib.Path(os.environ.get("LOCALAPPDATA") or pathlib.Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return pathlib.Path.home() / "Library" / "Caches"
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")


def _is_writable(folder):
    """Whether files can be created in a folder, which is created if missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


class KernelCache:
    """The interface that Numba asks for compiled code: files that are checked before use. Without one it compiles."""

    def __init__(self, function):
        self._function = function
        folders, self._writable = cache_folders()
        if not folders:
            raise RuntimeError("there is no folder to cache kernels in")
        self.cache_path = str(folders[-1])
        self._files = [_KernelFiles(folder, _file_name(function), _function_stamp(function)) for folder in folders]

    def enable(self):
        """Part of Numba's interface; this cache is always enabled."""

    disable = enable

    def load_overload(self, signature, context):
        """The compiled code for a signature; None if there is none that can be used."""
        with _noticed_failures("read"):
            context.refresh()
            key = self._key(signature, context.codegen())
            for files in self._files:
                parts = files.load(key)
                if parts is not None:
                    return numba_internals.rebuild(context, parts)
        return None

    def save_overload(self, signature, compiled):
        """Write compiled code for the next process."""
        if not self._writable:
            return
        with _noticed_failures("cache"):
            if numba_internals.is_cachable(compiled):
                key = self._key(signature, compiled.codegen)
                try:
                    self._files[-1].save(key, numba_internals.reduce(compiled))
                except OSError as error:
                    notice.give(
                        f"cannot cache compiled kernels in {self.cache_path}: {error.strerror or error}; the next run "
                        "compiles them again unless NUMBA_CACHE_DIR names a folder with room"
                    )

    def flush(self):
        """Delete the files of this kernel."""
        if self._writable:
            self._files[-1].flush()

    def _key(self, signature, codegen):
        cells = [cell.cell_contents for cell in self._function.__closure__ or ()]
        code = self._function.__code__.co_code + (numba_internals.dumps(cells) if cells else b"")
        return signature, numba_internals.machine_key(codegen), hashlib.sha256(code).hexdigest(), CHECKED


@contextlib.contextmanager
def _noticed_failures(verb):
    """The code around Numba's private interface: whatever a new version changes there must not end a search."""
    try:
        yield
    except Exception as error:
        notice.give(f"cannot {verb} compiled kernels with Numba {numba.__version__}: {type(error).__name__}: {error}")


class _KernelFiles:
    """The files of one kernel in one folder."""

    def __init__(self, folder, name, stamp=None):
        self._folder, self._name, self._stamp = folder, name, stamp

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
        if content[:_DIGEST] != self._label(key):
            return None
        return pickle.loads(content[_DIGEST:])

    def save(self, key, data):
        content = self._label(key) + numba_internals.dumps(data)
        path = self._path(key)
        temporary = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
        self._folder.mkdir(parents=True, exist_ok=True)
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

    def _label(self, key):
        return _digest(repr((numba.__version__, _source_stamp(), self._stamp, key)).encode())


def _digest(data):
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


def _file_name(function):
    """Subpackage, module, function and line: two modules called `energy` have files of different names."""
    module = function.__module__.removeprefix("treefield.kernels.")
    name = f"{module}.{function.__qualname__}".replace("<", "").replace(">", "")
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return f"{name}-{function.__code__.co_firstlineno}.{python}{getattr(sys, 'abiflags', '')}"


def _function_stamp(function):
    """The stamp of the file of a function that is not one of ours."""
    file = pathlib.Path(function.__code__.co_filename)
    return None if _KERNELS in file.parents or not file.exists() else _stamp(file)


@functools.cache
def _source_stamp():
    """Names, times and sizes of all kernel sources: helpers of other files are inlined into a kernel."""
    return tuple((str(file.relative_to(_KERNELS)), *_stamp(file)) for file in sorted(_KERNELS.rglob("*.py")))


def _stamp(file):
    status = file.stat()
    return status.st_mtime, status.st_size
