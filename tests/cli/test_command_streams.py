"""Output of the command: streams that are closed, broken or full, and contents of files on a terminal."""

import json
import os
import pathlib
import subprocess
import zipfile

import numpy as np
import pytest

import treefield as tf
from command import arguments_of, check_command_refused, without_notice
from treefield.io import load_model, read_cfn, read_image, read_opengm, write_opengm

pytestmark = pytest.mark.usefixtures("no_hang")
COMMANDS = {  # with its exit code and one of its files
    "denoise": (("denoise", "grey.png", "out.png", "--levels", 8), 0, "out.png"),
    "json": (("solve", "model.npz", "out.npy", "--json"), 0, "out.npy"),
    "batch": (("denoise", "grey.png", "left.png", "out", "--levels", 8, "--workers", 2), 0, "out/left.png"),
    "compare": (("compare", "solve", "model.npz", "--out", "out", "--methods", "icm"), 0, "out/icm.png"),
    "help": (("solve", "--help"), 0, None),
    "refused": (("denoise", "gone.png", "out.png"), 2, None),
}
ALL_CLOSED = "<&- >&- 2>&-"
ESCAPE = "\x1b[31m\x07\x9b2J\u202e"


def run(folder, arguments, redirection="", **streams):
    """Run a command through a shell; returns its exit code and whatever it printed."""
    given = arguments_of(*arguments)
    script = ["sh", "-c", f'exec "$@" {redirection}', "sh", *given["args"]]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    done = subprocess.run(script, env=given["env"], cwd=folder, timeout=200, text=True, **streams)
    return done.returncode, done.stdout, without_notice(done.stderr or "")


def check_written(folder, name):
    if name is not None:
        assert read_image(folder / name).size


@pytest.mark.parametrize(
    ("name", "redirection"),
    [*((name, closed) for name in COMMANDS for closed in (">&-", ALL_CLOSED)), ("json", "2>&-"), ("refused", "2>&-")],
)
def test_closed_streams_change_neither_exit_code_nor_files(files, name, redirection):
    arguments, code, output = COMMANDS[name]
    done, out, err = run(files, arguments, redirection)
    assert done == code
    check_written(files, output)
    assert err.startswith("treefield: there is no file") if (name, redirection) == ("refused", ">&-") else err == ""
    if (name, redirection) == ("json", "2>&-"):
        assert json.loads(out)["output"] == "out.npy"


@pytest.mark.parametrize(
    ("name", "stream"),
    [*((name, "stdout") for name in ("denoise", "batch", "compare")), ("denoise", "stderr"), ("refused", "stderr")],
)
def test_reader_that_has_gone_ends_the_command_as_a_broken_pipe(files, name, stream):
    arguments, code, output = COMMANDS[name]
    read, write = os.pipe()
    os.close(read)
    done, _, err = run(files, arguments, **{stream: write})
    os.close(write)
    assert done == (141 if stream == "stdout" and code == 0 else code) and "Traceback" not in err
    check_written(files, output)


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="there is no /dev/full")
def test_full_disk_under_stdout_is_an_error_in_one_line(files):
    arguments, _, output = COMMANDS["denoise"]
    code, _, err = run(files, arguments, ">/dev/full")
    assert (code, err) == (2, "treefield: could not write to stdout: No space left on device\n")
    check_written(files, output)


@pytest.mark.parametrize("redirection", [">&-", "2>&-"])
def test_no_file_takes_the_place_of_a_closed_stream(files, redirection):
    code = "import os, pathlib, sys; from treefield.cli.streams import open_streams; open_streams()\n"
    code += "with open('new.txt', 'w') as file: assert file.fileno() > 2; os.write(1, b'a'); os.write(2, b'b')\n"
    given = arguments_of()
    script = ["sh", "-c", f'exec "$@" {redirection}', "sh", given["args"][0], "-c", code]
    subprocess.run(script, env=given["env"], cwd=files, check=True, timeout=100, capture_output=True)
    assert (files / "new.txt").read_text() == ""


def test_warnings_are_one_line_each(files):
    code = "import warnings; from treefield.cli.streams import open_streams; open_streams()\n"
    code += f"warnings.warn('a name{ESCAPE} \\nof a file')"
    given = arguments_of()
    done = subprocess.run([given["args"][0], "-c", code], env=given["env"], capture_output=True, text=True, timeout=100)
    assert done.stderr.startswith("treefield: a name\\x1b[31m") and done.stderr[:-1].isprintable()


def write_odd_models(folder):
    """Models that are refused with an error that quotes a name of the file."""
    with zipfile.ZipFile(folder / "names.npz", "w") as archive:
        for name in ("unary", "potts", f"evil{ESCAPE}"):
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, np.zeros((2, 2, 2)))
    graph = tf.GraphMRF([[0, 1], [0, 3]], [(0, 1)], tf.Potts(4))
    costs = f'"evil{ESCAPE}": {{"scope": ["a", "b"], "costs": "none{ESCAPE}"}}'
    head = '"problem": {"name": "p", "mustbe": "<9"}, "variables": {"a": 2, "b": 2}'
    (folder / "names.cfn").write_text(f'{{{head}, "functions": {{{costs}}}}}')
    h5py = pytest.importorskip("h5py")
    write_opengm(folder / "names.h5", graph)
    with h5py.File(folder / "names.h5", "a") as file:
        file.copy("gm", f"evil{ESCAPE}")


@pytest.mark.parametrize("name", ["names.npz", "names.cfn", "names.h5"])
def test_names_inside_files_do_not_steer_the_terminal(command, files, name):
    write_odd_models(files)
    done = command("solve", name, "o.npy")
    check_command_refused(done, name, r"\x1b[31m")
    assert done.err[:-1].isprintable()
    read = {".npz": load_model, ".cfn": read_cfn, ".h5": read_opengm}[pathlib.Path(name).suffix]
    with pytest.raises(ValueError) as caught:
        read(files / name)
    assert str(caught.value).isprintable()


def test_names_on_the_command_line_do_not_steer_the_terminal(command, files):
    for arguments in ((f"restore{ESCAPE}",), ("denoise", f"--{ESCAPE}"), ("denoise", "grey.png", f"o{ESCAPE}.xyz")):
        done = command(*arguments)
        check_command_refused(done)
        assert done.err[:-1].isprintable()
    done = command("denoise", "grey.png", f"o{ESCAPE}.png", "--levels", 8)
    assert done.code == 0 and done.out.replace("\n", "").isprintable() and (files / f"o{ESCAPE}.png").exists()
