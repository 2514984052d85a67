"""Disks that are nearly full, for tests that may mount them."""

import contextlib
import pathlib
import shutil
import subprocess

import pytest

KINDS = ("tmpfs", "ext4")  # of 40 kB and of 4 MB


@contextlib.contextmanager
def mounted(kind, folder):
    """An empty disk of a kind, mounted at a new folder; without the right to mount the test is skipped."""
    place = pathlib.Path(folder, "disk")
    place.mkdir()
    if kind == "tmpfs":
        commands = [["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", place]]
    else:
        file = pathlib.Path(folder, "disk.ext4")
        with file.open("wb") as disk:
            disk.truncate(4 * 2**20)
        commands = [["mkfs.ext4", "-q", file], ["mount", "-o", "loop", file, place]]
    for command in commands:
        if shutil.which(command[0]) is None:
            pytest.skip(f"{command[0]} is not installed")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"cannot mount a disk of {kind}: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def names(folder):
    """All names in a folder, hidden ones too."""
    return sorted({path.name for path in folder.iterdir()} - {"lost+found"})
