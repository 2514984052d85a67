"""`treefield paper`, from the first run to the page, on tiny fields and pictures."""

import csv
import importlib
import json
import os
import re
import signal
import urllib.parse

import pytest

from browser import messages, offline_chromium, open_page
from command import Command, check_command_refused, listing
from small import hide_package
from tiny import TINY, tiny_datasets
from treefield_reproduce.experiments import EXPERIMENTS


@pytest.fixture
def small(monkeypatch):
    """Little of everything."""
    module = importlib.import_module("treefield_reproduce.command")
    monkeypatch.setattr(module, "QUICK", TINY)
    monkeypatch.setattr(module, "load_datasets", lambda folder: tiny_datasets())


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """The files of `paper all`, and how it ended."""
    folder = tmp_path_factory.mktemp("paper")
    module = importlib.import_module("treefield_reproduce.command")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "QUICK", TINY)
        patch.setattr(module, "load_datasets", lambda folder: tiny_datasets())
        patch.chdir(folder)
        done = Command(patch, Silent())("paper", "all", "--quick", "--out", "out", "--seed", 0, "--quiet")
    assert done.code == 0
    return folder / "out"


class Silent:
    """In place of capsys, which lasts for one test alone."""

    def readouterr(self):
        return "", ""


def test_each_experiment_leaves_tables_figures_and_traces(everything):
    assert sorted(path.name for path in everything.iterdir()) == sorted([*EXPERIMENTS, "index.html"])
    for name in EXPERIMENTS:
        suffixes = {path.suffix for path in (everything / name).iterdir()}
        assert suffixes == {".csv", ".png", ".svg"}
        for table in (everything / name).glob("*.csv"):
            with table.open(encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file))
            assert len(rows) > 1 and len({len(row) for row in rows}) == 1, table
        drawn = {path.stem for path in (everything / name).glob("*.svg")}
        assert drawn == {path.stem for path in (everything / name).glob("*.png")}
    for name in ("ising", "stereo", "denoise"):
        assert (everything / name / "traces.csv").stat().st_size > 1000


def test_the_page_shows_every_figure_and_says_every_verdict(everything, tmp_path):
    with offline_chromium(tmp_path / "profile") as chromium:
        open_page(chromium, everything / "index.html")
        pictures = chromium.execute_script(
            "return [...document.images].map(i => [i.alt, i.complete && i.naturalWidth > 0 && i.clientHeight > 0])"
        )
        links = chromium.execute_script(
            "return [...document.querySelectorAll('main a')].map(a => a.getAttribute('href'))"
        )
        text = chromium.find_element("css selector", "body").text
        wide = chromium.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert messages(chromium) == []
    figures = list(everything.rglob("*.svg"))
    assert len(pictures) == len(figures) and all(shown for _, shown in pictures) and wide
    targets = [everything / urllib.parse.unquote(link) for link in links]
    assert all(target.is_file() for target in targets)
    assert {path.resolve() for path in everything.rglob("*.*")} - {t.resolve() for t in targets} == {
        (everything / "index.html").resolve()
    }
    for number in range(1, 9):
        assert any(f"Figure {number}" in caption for caption, _ in pictures) or number == 6  # the tiny pair is one
    for word in ("does not hold", "holds", "lower", "Of the paper's", "beta", "scan-line, nu = 0.4", "403,129"):
        assert word in text


def test_one_experiment_alone_and_its_summary_as_json(command, tmp_path, small):
    done = command("paper", "denoise", "--quick", "--out", "out", "--json")
    assert done.code == 0 and done.err == ""
    said = json.loads(done.out)
    assert said["output"] == "out/index.html" and said["pictures"] == "The pictures are tiny."
    assert all(row["verdict"] in ("holds", "does not hold") for row in said["comparisons"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["denoise", "index.html"]
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "Denoising: Penguin" in page and "Stereo: Tsukuba" not in page


def test_ising_needs_no_pictures_and_no_scikit_image(command, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("treefield_reproduce.command"), "QUICK", TINY)
    hide_package(monkeypatch, "skimage")
    monkeypatch.delenv("TREEFIELD_DATA", raising=False)
    check_command_refused(command("paper", "stereo", "--quick", "--out", "out"), 'pip install "treefield[demo]"')
    done = command("paper", "ising", "--quick", "--out", "out")
    assert done.code == 0 and done.out.endswith("\nOpen out/index.html in a browser.\n")
    assert re.search(r"^ +(holds|does not hold)  Ising, λ = 1: .*: -\d+, -\d+$", done.out, re.MULTILINE)
    assert (tmp_path / "out" / "ising" / "energies.csv").is_file()


def test_paper_replaces_existing_files_only_with_force(command, tmp_path, small):
    (tmp_path / "out" / "denoise").mkdir(parents=True)
    (tmp_path / "out" / "denoise" / "energies.csv").write_text("precious")
    check_command_refused(command("paper", "denoise", "--quick", "--out", "out"), "denoise is not empty", "--force")
    (tmp_path / "out" / "index.html").write_text("precious")
    check_command_refused(command("paper", "ising", "--quick", "--out", "out"), "index.html exists", "--force")
    assert (tmp_path / "out" / "denoise" / "energies.csv").read_text() == "precious"
    assert command("paper", "denoise", "--quick", "--out", "out", "--force", "--quiet").out == ""
    assert "precious" not in (tmp_path / "out" / "denoise" / "energies.csv").read_text()


def test_paper_refuses_bad_arguments_before_any_work(command, tmp_path, monkeypatch):
    monkeypatch.delenv("TREEFIELD_DATA", raising=False)
    check_command_refused(command("paper", "isling"), "isling", "ising", "all")
    check_command_refused(command("paper", "ising", "--data", "nowhere"), "nowhere, from --data, is no folder")
    check_command_refused(command("paper", "ising", "--out", "no/where"), "there is no folder no")
    check_command_refused(command("paper", "ising", "--seed", -1), "seed must be at least 0, got -1")
    check_command_refused(command("paper", "ising", "--threads", 0), "threads must be at least 1, got 0")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "ising").write_text("")
    check_command_refused(command("paper", "ising", "--out", "out"), "is a file, expected a folder")
    assert [str(path) for path in listing(tmp_path)] == ["out/ising"]


def interrupting(monkeypatch, method):
    """Press Ctrl-C when a method begins."""
    from treefield_reproduce.runner import Runner

    run = Runner.run

    def pressed(runner, problem, name, *arguments, **options):
        if name == method:
            options["callback"] = lambda intermediate_result: os.kill(os.getpid(), signal.SIGINT)
        return run(runner, problem, name, *arguments, **options)

    monkeypatch.setattr(Runner, "run", pressed)


def test_an_interrupt_keeps_the_experiments_that_are_done(command, tmp_path, small, monkeypatch):
    interrupting(monkeypatch, "loopy BP (sequential)")  # not among the methods on Ising fields
    done = command("paper", "ising", "stereo", "--quick", "--out", "out")
    assert done.code == 130
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index.html", "ising"]
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "ended early: stereo left out" in page


def test_an_error_keeps_the_experiments_that_are_done(command, tmp_path, small, monkeypatch):
    from treefield_reproduce import command as module

    run_experiment = module.run_experiment

    def failing(name, runner):
        if name == "stereo":
            raise MemoryError("no memory for stereo")
        return run_experiment(name, runner)

    monkeypatch.setattr(module, "run_experiment", failing)
    done = command("paper", "ising", "stereo", "--quick", "--out", "out", "--quiet")
    check_command_refused(done, "no memory for stereo")
    assert "ended early: stereo left out" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_an_interrupt_before_anything_is_done_leaves_nothing(command, tmp_path, small, monkeypatch):
    interrupting(monkeypatch, "T-ICM")
    assert command("paper", "ising", "--quick", "--out", "out").code == 130
    assert listing(tmp_path) == {}
