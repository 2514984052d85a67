"""The command `treefield paper` of this checkout, whatever is installed."""

import importlib.metadata
import pathlib
import tomllib

import pytest

from command import Command
from treefield.cli.app import ENTRY_POINTS

PYPROJECT = pathlib.Path(__file__).parents[2] / "pyproject.toml"


def declared_entry_points(name):
    """The entry points of pyproject.toml."""
    declared = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    entries = [importlib.metadata.EntryPoint(name, declared[ENTRY_POINTS][name], ENTRY_POINTS)]
    return importlib.metadata.EntryPoints(entries)


@pytest.fixture(scope="package", autouse=True)
def paper_installed():
    """Let the command find what pyproject.toml declares."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("treefield.cli.app.find_entry_points", declared_entry_points)
        yield


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """The command in this process and in a temporary folder."""
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capsys)
