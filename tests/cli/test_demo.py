"""The demo, on small pictures."""

import importlib
import os
import signal

import numpy as np
import pytest

from browser import messages, offline_chromium, open_page
from command import check_command_refused, listing
from small import hide_package
from treefield.io import read_image

FILES = [f"{name}-{which}.png" for name in ("ising", "motorcycle", "photograph") for which in ("after", "before")]


class SmallData:
    """In place of skimage.data."""

    def camera(self):
        return np.kron([[50, 200], [120, 80]], np.ones((10, 10))).astype(np.uint8)

    def stereo_motorcycle(self):
        scene = np.random.default_rng(0).integers(0, 256, (12, 90, 4), np.uint8)
        truth = np.full((12, 80), 5.0)
        truth[0] = np.inf
        return scene[:, :80], scene[:, 5:85], truth


@pytest.fixture
def small(monkeypatch):
    """Small pictures, little time."""
    demo = importlib.import_module("treefield.cli.commands.demo_command")
    monkeypatch.setattr(demo, "_example_images", SmallData)
    for name in ("_photograph", "_motorcycle", "_ising"):
        monkeypatch.setattr(demo, name, shortened(getattr(demo, name)))
    monkeypatch.setattr(demo, "_SPINS", 20)


def shortened(prepare):
    def prepared():
        part = prepare()
        part.seconds = 1.0
        return part

    return prepared


def test_the_table_of_demo_has_energy_bound_gap_time_and_error(command, tmp_path, small):
    done = command("demo", "--out", "shown")
    assert done.code == 0 and done.err == ""
    rows = [line for line in done.out.splitlines() if line.strip()]
    assert rows[0].split() == ["energy", "lower", "bound", "gap", "time", "error"]
    assert [row.split(":")[0] for row in rows[1:4]] == ["denoise", "stereo", "ising"]
    assert "dB" in rows[1] and "0.0% of pixels" in rows[2] and all(" s " in row for row in rows[1:4])
    before, after = map(float, rows[1].split("PSNR")[1].replace("dB", "").split("->"))
    assert after > before + 5
    assert "report.html" in rows[4]
    assert sorted(path.name for path in (tmp_path / "shown").iterdir()) == sorted([*FILES, "report.html"])
    assert read_image(tmp_path / "shown" / "ising-after.png").shape == (20, 20)
    assert read_image(tmp_path / "shown" / "motorcycle-after.png").shape == (12, 80, 3)


def test_the_report_of_demo_shows_all_three_problems(command, tmp_path, small, tmp_path_factory):
    assert command("demo", "--quiet").out == ""
    with offline_chromium(tmp_path_factory.mktemp("profile")) as chromium:
        open_page(chromium, tmp_path / "treefield-demo" / "report.html")
        text = chromium.find_element("css selector", "body").text
        assert all(title in text for title in ("a photograph", "a motorcycle", "a spin glass", "the truth", "PSNR"))
        assert min(chromium.execute_script("return [...document.images].map(i => i.naturalWidth)")) > 0
        assert messages(chromium) == []


def test_demo_replaces_existing_files_only_with_force(command, tmp_path, small):
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "ising-after.png").write_bytes(b"precious")
    before = listing(tmp_path)
    check_command_refused(command("demo", "--out", "shown"), "ising-after.png exists", "--force")
    assert listing(tmp_path) == before
    assert command("demo", "--out", "shown", "--force", "--quiet").code == 0
    assert (tmp_path / "shown" / "ising-after.png").read_bytes() != b"precious"


def test_demo_refuses_a_folder_that_cannot_be_created(command, tmp_path, small):
    (tmp_path / "file").write_text("")
    before = listing(tmp_path)
    check_command_refused(command("demo", "--out", "no/shown"), "there is no folder no")
    check_command_refused(command("demo", "--out", "file"), "file")
    assert listing(tmp_path) == before


def test_demo_without_scikit_image_says_what_to_install(command, tmp_path, monkeypatch):
    hide_package(monkeypatch, "skimage")
    check_command_refused(command("demo", "--out", "shown"), 'pip install "treefield[demo]"')
    assert not (tmp_path / "shown").exists()


def test_an_interrupted_demo_shows_the_finished_problems(command, tmp_path, small, monkeypatch):
    def pressed(watch, intermediate_result):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("treefield.cli.progress_display.SearchDisplay.__call__", pressed)
    done = command("demo", "--out", "shown")
    assert done.code == 130 and "denoise" in done.out and "stereo" not in done.out
    names = sorted(path.name for path in (tmp_path / "shown").iterdir())
    assert names == ["photograph-after.png", "photograph-before.png", "report.html"]
