"""The report of a real run, in a browser without network."""

import shutil

import numpy as np
import pytest

from browser import messages, offline_chromium, open_page
from treefield.io import write_image

EVIL = """<script>document.title='run'</script> "'&.png"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with offline_chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def show(driver):
    """Opens a page; nothing that a test does to it may upset the console."""

    def opened(path):
        open_page(driver, path)
        return driver

    yield opened
    assert messages(driver) == []


def put(chromium, slider, value):
    script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
    chromium.execute_script(script, slider, value)


def test_the_report_of_a_command_has_pictures_curve_and_facts(command, files, show):
    given = ("denoise", "grey.png", "out.png", "--levels", 8, "--data", "squared", "--cutoff", 100, "--seed", 0)
    done = command(*given, "--report", "page.html")
    summary = dict(line.strip().split(": ", 1) for line in done.out.splitlines())
    chromium = show(files / "page.html")
    assert chromium.title == "treefield denoise"
    text = chromium.find_element("css selector", "body").text
    assert summary["energy"] in text and summary["lower bound"] in text and "GridMRF(shape=(12, 16)" in text
    assert (
        "treefield denoise grey.png out.png --levels 8 --data squared --cutoff 100 --seed 0 --report page.html" in text
    )
    names = [term.text for term in chromium.find_elements("css selector", "dt")]
    assert {"image", "levels", "data", "smoothness", "cutoff", "seed", "method"} <= set(names)
    assert min(chromium.execute_script("return [...document.images].map(i => i.naturalWidth)")) > 0
    assert chromium.find_elements("css selector", ".canvas path.bound")


def test_the_sliders_of_a_report_change_the_picture(command, files, show):
    noise = np.random.default_rng(2).integers(0, 256, (60, 80), dtype=np.uint8)  # no first descent solves this
    write_image(files / "noise.png", noise)
    given = ("--report", "page.html", "--time-limit", 0.5, "--method", "t_ils", "--seed", 0, "--weight", 2000)
    assert command("denoise", "noise.png", "out.png", "--levels", 8, *given).code == 0
    chromium = show(files / "page.html")
    stack, slider = (chromium.find_element("css selector", place) for place in (".stack", ".stack input"))
    seen = []
    for value in (10, 90):
        put(chromium, slider, value)
        seen.append(stack.screenshot_as_png)
    assert seen[0] != seen[1]
    slider, seen = chromium.find_element("css selector", ".moments input"), []
    last = int(slider.get_attribute("max"))
    assert 3 <= last <= 12
    for value in (int(slider.get_attribute("min")), last):
        put(chromium, slider, value)
        figures = chromium.find_elements("css selector", ".moments figure")
        (shown,) = [figure for figure in figures if figure.is_displayed()]
        seen.append((shown.text, shown.find_element("css selector", "img").screenshot_as_png))
    assert seen[0][0] != seen[1][0] and seen[0][1] != seen[1][1] and "energy" in seen[0][0]


def test_markup_in_a_file_name_is_escaped_in_the_report(command, files, show):
    name = EVIL.replace("/", "\N{FRACTION SLASH}")  # no file name holds a slash, but the command line may
    shutil.copy(files / "grey.png", files / name)
    (files / EVIL).parent.mkdir()
    assert command("denoise", name, EVIL, "--levels", 8, "--report", "page.html").code == 0
    page = (files / "page.html").read_text()
    assert "<script>document.title" not in page
    chromium = show(files / "page.html")
    assert chromium.title == "treefield denoise"
    text = chromium.find_element("css selector", "body").text
    assert name in text and "</script>" in text


def test_a_report_accepts_a_file_name_that_is_not_utf8(command, files, show):
    name = "caf\udce9.png"  # Latin-1, as a file system may hold it
    shutil.copy(files / "grey.png", files / name)
    done = command("denoise", name, f"out-{name}", "--levels", 8, "--report", "page.html")
    assert done.code == 0 and r"out-caf\udce9.png" in done.out
    assert (files / f"out-{name}").exists()
    assert r"caf\udce9.png" in show(files / "page.html").find_element("css selector", "body").text


@pytest.mark.parametrize("name", ["segment", "stereo", "solve"])
def test_every_command_writes_a_report(command, files, show, name):
    given = {"segment": ("rgb.png",), "stereo": ("left.png", "right.png"), "solve": ("model.npz",)}[name]
    more = ("--num-disparities", 6) if name == "stereo" else ()
    assert command(name, *given, "out.npy", *more, "--report", "page.html").code == 0
    chromium = show(files / "page.html")
    assert chromium.title == f"treefield {name}"
    widths = chromium.execute_script("return [...document.images].map(i => i.naturalWidth)")
    assert widths and min(widths) > 0


def test_the_report_of_compare_shows_a_table_and_every_method(command, files, show):
    assert command("compare", "solve", "model.npz", "--out", "d", "--methods", "icm,auto", "--seed", 0).code == 0
    chromium = show(files / "d" / "report.html")
    rows = [row.text for row in chromium.find_elements("css selector", "table tbody tr")]
    assert [row.split()[0] for row in rows] == ["icm", "auto"]
    slider = chromium.find_element("css selector", ".moments input")
    put(chromium, slider, slider.get_attribute("max"))
    assert "auto" in chromium.find_element("css selector", ".moments").text
