"""The command as a process: its output on a terminal, and how signals end it."""

import os
import pty
import re
import signal
import subprocess

import numpy as np
import pytest

import treefield as tf
from command import ENTRY, arguments_of, in_a_process, listing, without_notice
from treefield.io import open_image, read_image, write_image
from treefield.kernels.simd.jit import as_compile_time

ENDLESS = ("--tol", 0, "--time-limit", 90, "--seed", 0)


@pytest.fixture
def glass(tmp_path):
    """A spin glass, of which no search proves an answer optimal."""
    rng = np.random.default_rng(0)
    shapes = {"fields": (40, 40), "couplings_0": (39, 40), "couplings_1": (40, 39)}
    np.savez(tmp_path / "glass.npz", **{name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()})
    return tmp_path


def on_a_terminal(folder, arguments, wait_for=None, number=None):
    """Run the command with stderr on a terminal; when that shows `wait_for` send the signal. Returns the exit code,
    stdout and all that the terminal got."""
    ours, theirs = pty.openpty()
    given = arguments_of(*arguments)
    given["env"] |= {"COLUMNS": "120", "TERM": "xterm"}
    with subprocess.Popen(**given, cwd=folder, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
            if wait_for is not None and wait_for in shown:
                process.send_signal(number)
                wait_for = None
        os.close(ours)
        out = process.stdout.read()
    return process.returncode, out, without_notice(shown.decode())


def test_the_terminal_shows_energy_bound_and_gap_and_ctrl_c_writes_the_best(glass):
    arguments = ("ising", "glass.npz", "out.npy", *ENDLESS, "--report", "page.html")
    code, out, shown = on_a_terminal(glass, arguments, b"gap", signal.SIGINT)
    assert code == 130
    assert re.search(r"ising.*energy -[\d,.]+, bound -[\d,.]+, gap [\d.]+ %", shown)
    assert "Traceback" not in shown
    assert "interrupted" in out and "page.html" in out
    spins = np.load(glass / "out.npy")
    assert set(np.unique(spins)) == {-1, 1} and "interrupted" in (glass / "page.html").read_text()
    energy = float(re.search(r"energy: (\S+)", out)[1].replace(",", ""))
    data = np.load(glass / "glass.npz")
    alone = tf.ising(data["fields"], [data["couplings_0"], data["couplings_1"]], method="icm", rng=0, full_output=True)[
        1
    ]
    assert energy < alone.fun
    assert set(map(str, listing(glass))) == {"glass.npz", "out.npy", "page.html"}


def test_quiet_shows_nothing_on_a_terminal(glass):
    arguments = ("ising", "glass.npz", "out.npy", "--time-limit", 0.2, "--quiet")
    assert on_a_terminal(glass, arguments) == (0, "", "")
    assert (glass / "out.npy").exists()


def test_no_progress_is_shown_without_a_terminal(glass):
    done = in_a_process("ising", "glass.npz", "out.npy", "--time-limit", 0.2, cwd=glass)
    assert done.code == 0 and done.err == "" and "energy" in done.out and "\x1b" not in done.out


def test_a_command_writes_the_best_so_far_after_sigterm(glass):
    arguments = ("ising", "glass.npz", "out.npy", *ENDLESS)
    code, out, shown = on_a_terminal(glass, arguments, b"gap", signal.SIGTERM)
    assert code == 130 and "terminated (SIGTERM)" in out and "Traceback" not in shown
    assert set(map(str, listing(glass))) == {"glass.npz", "out.npy"}


SLOW_READER = """
import time, treefield.cli.commands.restore_commands as commands
def read_image(path):
    print("reading", flush=True)
    time.sleep(60)
commands.read_image = read_image
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_an_interrupt_while_reading_leaves_nothing_and_no_traceback(tmp_path, grey, number, code):
    write_image(tmp_path / "in.png", grey)
    given = arguments_of("denoise", "in.png", "out.png", "--report", "page.html")
    given["args"][2] = SLOW_READER + ENTRY
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(**given, **pipes, cwd=tmp_path, text=True) as process:
        assert process.stdout.readline() == "reading\n"
        process.send_signal(number)
        assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == code
    assert set(map(str, listing(tmp_path))) == {"in.png"}


def test_an_interrupt_while_importing_shows_no_traceback(tmp_path):
    given = arguments_of("info")
    given["args"][2] = (
        "import os, sys\nsys.addaudithook(lambda event, args: "
        "event == 'import' and args[0] == 'treefield.io.limits' and os.kill(os.getpid(), 2))\n" + ENTRY
    )
    done = subprocess.run(**given, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_ctrl_c_waits_for_the_kernel_that_is_being_compiled():
    reached = []
    with pytest.raises(KeyboardInterrupt), as_compile_time():
        os.kill(os.getpid(), signal.SIGINT)
        reached.append("the end of the compilation")
    assert reached and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with as_compile_time():
        pass


def test_an_interrupt_of_the_second_search_of_stereo_is_reported(command, files, monkeypatch):
    runs = []

    def pressed(watch, intermediate_result):
        if intermediate_result.nit == 1:
            runs.append(1)
        if len(runs) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("treefield.cli.progress_display.SearchDisplay.__call__", pressed)
    given = ("--num-disparities", 6, "--occlusion", "fill", "--seed", 0, "--tol", 0)
    done = command("stereo", "left.png", "right.png", "out.npy", *given)
    assert len(runs) == 2 and done.code == 130 and "interrupted" in done.out
    assert read_image(files / "out.npy").shape == (10, 18)


def test_an_interrupt_while_writing_leaves_the_old_file(command, files, monkeypatch):
    def pressed(file):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", pressed)
    before = listing(files)
    done = command("denoise", "grey.png", "grey.png", "--levels", 8, "--force")
    assert done.code == 130 and done.err == "" and listing(files) == before


def test_the_entry_point_of_the_package_is_the_command(tmp_path):
    done = in_a_process("--version")
    assert (done.code, done.out.strip(), done.err) == (0, tf.__version__, "")
    done = in_a_process("denoise", "gone.png", "out.png", cwd=tmp_path)
    assert done.code == 2 and done.err == "treefield: there is no file gone.png\n" and done.out == ""


def test_the_command_without_typer_says_what_to_install(tmp_path):
    given = arguments_of("info")
    given["args"][2] = "import sys; sys.modules['typer'] = None; " + ENTRY
    done = subprocess.run(**given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and 'pip install "treefield[cli]"' in done.stderr
    assert done.stdout == ""


def test_a_closed_pipe_prints_no_error():
    given = arguments_of("info")
    with subprocess.Popen(**given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""


TILES = ("--memory-limit", "9GB", "--levels", 8, "--method", "t_icm", "--seed", 0)
SENT = """
import os, treefield.{module} as module
whole = module.{name}
def sent(*given, **options):
    for number in {numbers}:
        os.kill(os.getpid(), number)
    return whole(*given, **options)
module.{name} = sent
"""


def signalled(folder, out, module, name, *numbers, options=TILES):
    """Denoise in a process that gets signals when it comes to call a function; returns its exit code."""
    given = arguments_of("denoise", "in.png", out, *options)
    given["args"][2] = SENT.format(module=module, name=name, numbers=tuple(map(int, numbers))) + ENTRY
    done = subprocess.run(**given, cwd=folder, capture_output=True, text=True, timeout=100)
    assert without_notice(done.stderr) == ""
    return done.returncode


@pytest.mark.parametrize("out", ["out.npy", "out.tif", "out.zarr", "out.png"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_just_after_the_output_was_begun_leaves_no_file(tmp_path, grey, out, number, code):
    write_image(tmp_path / "in.png", grey)
    assert signalled(tmp_path, out, "cli.commands.denoise_by_tiles", "denoise_tiled", number) == code
    assert [path.name for path in tmp_path.iterdir()] == ["in.png"]


ENCODING = "io.images.image_formats", "_encoded"
PACKING = {
    "out.npy": ("atomic_write", "move_into_place"),
    "out.tif": ("io.images.tiff", "write_tiles"),
    "out.zarr": ("io.images.large_images", "_write_zarr"),
    "out.png": ENCODING,
}


@pytest.mark.parametrize("out", PACKING)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_while_the_output_is_packed_waits_until_it_is_complete(tmp_path, grey, out, number, code):
    write_image(tmp_path / "in.png", grey)
    assert signalled(tmp_path, out, *PACKING[out], number) == code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.png", out]
    assert in_a_process("denoise", "in.png", "whole.npy", *TILES, cwd=tmp_path).code == 0
    with open_image(tmp_path / out) as found:
        np.testing.assert_array_equal(found[:, :], np.load(tmp_path / "whole.npy"))


IN_MEMORY = [("out.tif", "io.images.tiff", "write_tiff"), ("out.png", *ENCODING)]


@pytest.mark.parametrize(("out", "module", "name"), IN_MEMORY)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_while_an_image_is_written_waits_until_it_is_complete(tmp_path, grey, out, module, name, number, code):
    write_image(tmp_path / "in.png", grey)
    assert signalled(tmp_path, out, module, name, number, options=("--levels", 8)) == code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.png", out]
    assert read_image(tmp_path / out).shape == grey.shape


@pytest.mark.parametrize("out", PACKING)
def test_a_second_ctrl_c_while_the_output_is_packed_leaves_no_file(tmp_path, grey, out):
    write_image(tmp_path / "in.png", grey)
    assert signalled(tmp_path, out, *PACKING[out], signal.SIGINT, signal.SIGINT) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["in.png"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_labels_become_an_image_waits_until_it_is_written(tmp_path, grey, number):
    write_image(tmp_path / "in.png", grey)
    assert signalled(tmp_path, "out.tif", "apps.denoise_tiled", "_LabelFile.writing", number) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.png", "out.tif"]
