"""The report in a browser without network: it shows what it should, moves, and runs nothing it was given."""

import math

import numpy as np
import pytest

from browser import messages, offline_chromium, open_page
from treefield.report.page import Picture, Section, report
from treefield.results import TRACE

EVIL = "<img src=x onerror=\"document.title='run'\"><script>document.title = 'run'</script>\"'& </script>"
NONE = "\N{EN DASH}"


def grey(caption, level, shape=(64, 64)):
    return Picture(caption, np.full(shape, level, np.uint8))


def falling(n, low, bound=-math.inf):
    """A run down to `low`, from very far above."""
    rows = np.zeros(n, TRACE)
    rows["iteration"], rows["seconds"] = np.arange(n), np.arange(n) / 100
    rows["energy"] = rows["best"] = low + 20 / (1 + np.arange(n))
    rows["energy"][0] = rows["best"][0] = 1e7
    rows["bound"] = bound
    return rows


def page():
    main = Section(
        "Main",
        grey("before", 0),
        grey("after", 255),
        [grey("truth", 128, (1, 300)), grey("colour", 128, (300, 1, 3))],
        {"first": falling(200, 12_000), "second": falling(50, 11_000, 10_900)},
        [grey(f"moment {k}", 80 * k) for k in range(1, 4)],
        {"energy": "12,000"},
        [{"method": "icm", "energy": "8"}],
    )
    odd = {
        "one row": falling(1, -5),
        "equal": np.array([(0, 0, -7, -7, -7), (1, 1, -7, -7, -7)], TRACE),
        "forbidden": np.array([(0, 0, math.inf, math.inf, math.nan)], TRACE),
    }
    lone = [Section(name, runs={name: trace}, moments=[grey("only", 9)]) for name, trace in odd.items()]
    evil = grey(EVIL, 50)
    injected = Section(EVIL, evil, evil, [evil], {EVIL: falling(9, 3, 1)}, [evil] * 2, {EVIL: EVIL}, [{EVIL: EVIL}])
    return report("Report" + EVIL, [main, Section("All odd", runs=odd), *lone, injected], command=EVIL, version=EVIL)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with offline_chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def chromium(driver, path):
    """The page, loaded again; fails if a test causes a message on the console."""
    open_page(driver, path)
    yield driver
    assert messages(driver) == []


def find(chromium, selector):
    return chromium.find_element("css selector", selector)


def visible(chromium, selector):
    return [element for element in chromium.find_elements("css selector", selector) if element.is_displayed()]


def put(chromium, slider, value):
    script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
    chromium.execute_script(script, slider, value)


def hover(chromium, canvas, x, y):
    """Move the mouse to a place of the plot, in fractions of its size."""
    from selenium.webdriver import ActionChains

    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    size = canvas.size
    ActionChains(chromium, 0).move_to_element_with_offset(
        canvas, int((x - 0.5) * size["width"]), int((y - 0.5) * size["height"])
    ).perform()


def tip_values(chromium):
    """The text of the box next to the pointer."""
    tip = find(chromium, ".tip")
    names = [term.text for term in tip.find_elements("css selector", "dt")]
    values = [value.text for value in tip.find_elements("css selector", "dd")]
    return {"run": tip.find_element("css selector", "strong").text, **dict(zip(names, values, strict=True))}


def test_every_picture_of_the_report_loads_and_is_visible(chromium):
    widths = chromium.execute_script("return [...document.images].map(i => i.complete && i.naturalWidth)")
    assert len(widths) == 15 and min(widths) > 0
    shown = chromium.execute_script(
        "return [...document.images].map(i => i.getBoundingClientRect()).map(b => [b.width, b.height])"
    )
    assert all(min(size) >= 39 for size in shown if max(size) > 0)


def test_markup_in_the_title_is_shown_as_text(chromium):
    assert chromium.title.startswith("Report<img")
    assert chromium.execute_script("return document.querySelectorAll('img[src=x]').length") == 0


@pytest.mark.parametrize("width", [400, 1200])
def test_the_report_fits_narrow_and_wide_windows(chromium, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_divider_clips_the_upper_picture(chromium):
    stack, slider, after = (find(chromium, s) for s in (".stack", ".stack input", ".stack .after"))
    seen = {}
    for value in (20, 80):
        put(chromium, slider, value)
        assert after.value_of_css_property("clip-path") == f"inset(0px 0px 0px {value}%)"
        seen[value] = stack.screenshot_as_png
    assert seen[20] != seen[80]


def test_the_divider_moves_with_mouse_and_keys(chromium):
    from selenium.webdriver import ActionChains, Keys

    slider = find(chromium, ".stack input")
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", slider)
    ActionChains(chromium, 0).move_to_element(slider).click_and_hold().move_by_offset(128, 0).release().perform()
    dragged = float(slider.get_attribute("value"))
    assert dragged == pytest.approx(75, abs=1.5)
    slider.send_keys(Keys.ARROW_LEFT)
    assert float(slider.get_attribute("value")) < dragged
    assert find(chromium, ".divider").value_of_css_property("left") != "256px"


def test_the_slider_of_moments_changes_picture_and_caption(chromium):
    from selenium.webdriver import Keys

    slider = find(chromium, ".moments input")
    seen = []
    for k in (1, 2, 3):
        (figure,) = visible(chromium, "#section-1 .moments figure")
        assert figure.text == f"moment {k}" and find(chromium, ".moments output").text == f"{k} of 3"
        seen.append(figure.find_element("css selector", "img").screenshot_as_png)
        slider.send_keys(Keys.ARROW_RIGHT)
    assert len(set(seen)) == 3


def test_the_plot_shows_the_row_under_the_pointer(chromium):
    canvas = find(chromium, ".canvas")
    assert visible(chromium, ".tip") == []
    hover(chromium, canvas, 0.99, 0.05)
    last = {
        "run": "first",
        "iteration": "199",
        "time": "1.99 s",
        "energy": "12,000.1",
        "lower bound": NONE,
        "gap": NONE,
    }
    assert tip_values(chromium) == last
    hover(chromium, canvas, 0.6, 0.85)
    assert tip_values(chromium)["run"] == "second" and tip_values(chromium)["lower bound"] == "10,900"
    assert tip_values(chromium)["gap"].endswith(" %")


def test_the_plot_can_be_read_by_keys(chromium):
    from selenium.webdriver import Keys

    canvas = find(chromium, ".canvas")
    canvas.send_keys(Keys.HOME)
    assert tip_values(chromium) | {"energy": "10,000,000", "iteration": "0"} == tip_values(chromium)
    canvas.send_keys(Keys.ARROW_RIGHT + Keys.ARROW_RIGHT)
    assert tip_values(chromium)["iteration"] == "2"
    canvas.send_keys(Keys.ARROW_DOWN + Keys.END)
    assert tip_values(chromium)["run"] == "second" and tip_values(chromium)["iteration"] == "49"


def test_the_plot_leaves_a_far_start_out_until_asked(chromium):
    def labels():
        return [text.text for text in chromium.find_elements("css selector", "#section-1 .canvas text")]

    assert "11,000" in labels() and "10,000,000" in find(chromium, ".note").text
    find(chromium, ".whole").click()
    assert "10,000,000" in labels() and visible(chromium, "#section-1 .note") == []
    find(chromium, ".whole").click()
    before = labels()
    find(chromium, ".log").click()
    assert labels() != before
    find(chromium, ".legend button").click()
    assert len(chromium.find_elements("css selector", "#section-1 .canvas .best")) == 1


def test_runs_with_missing_values_are_drawn_without_nan(chromium):
    for canvas in chromium.find_elements("css selector", ".canvas"):
        drawn = canvas.get_attribute("innerHTML")
        assert "NaN" not in drawn and "Infinity" not in drawn
    assert len(chromium.find_elements("css selector", "#section-3 .end-point")) == 1
    assert len(chromium.find_elements("css selector", "#section-4 path.bound")) == 1


def test_copying_the_command_copies_or_selects_it(chromium):
    button = find(chromium, ".command button")
    button.click()
    chromium.execute_async_script("setTimeout(arguments[0], 50)")
    assert button.text in ("Copied", "Selected")
