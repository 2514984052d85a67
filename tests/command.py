"""The command `treefield`, run in this process or in another."""

import dataclasses
import os
import pathlib
import subprocess
import sys

ENTRY = "from treefield.cli import command; command()"
SOURCE = pathlib.Path(__file__).parents[1] / "src"


@dataclasses.dataclass
class Outcome:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


def without_notice(text):
    """The output without the notice that kernels are compiled, which appears only the first time."""
    return "".join(line for line in text.splitlines(keepends=True) if "treefield: compiling" not in line)


class Command:
    """``command("denoise", a, b)`` runs the command in this process, which is quick."""

    def __init__(self, monkeypatch, capsys):
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments):
        from treefield.cli import main

        self._monkeypatch.setattr(sys, "argv", ["treefield", *map(str, arguments)])
        self._capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        out, err = self._capsys.readouterr()
        return Outcome(code, out, without_notice(err))


def arguments_of(*arguments):
    """The keywords of `subprocess.Popen` that start the command in another process."""
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    return {"args": [sys.executable, "-c", ENTRY, *map(str, arguments)], "env": {**os.environ, "PYTHONPATH": path}}


def in_a_process(*arguments, **options):
    """Run the command in another process."""
    done = subprocess.run(**arguments_of(*arguments), capture_output=True, text=True, timeout=100, **options)
    return Outcome(done.returncode, done.stdout, without_notice(done.stderr))


def listing(folder):
    """Every file below a folder, with its content."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def check_command_refused(done, *words):
    """Fail unless the command has refused its input: exit code 2, and one line on stderr that holds the words."""
    assert done.code == 2 and done.out == ""
    assert done.err.startswith("treefield: ") and done.err.endswith("\n") and done.err.count("\n") == 1
    for word in words:
        assert word in done.err
