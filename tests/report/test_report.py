"""The report as text: what is on the page, what is not, and what the curves keep."""

import base64
import builtins
import html.parser
import io
import json
import math

import numpy as np
import PIL.Image
import pytest

from treefield.report.page import POINTS, Picture, Section, _fitted, report, thinned
from treefield.results import TRACE

EVIL = "<script>alert(1)</script>\"'& </script>{{ 7 * 7 }}"


class Page(html.parser.HTMLParser):
    """Elements with their attributes, the text outside scripts, and each script."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.words, self.scripts, self.inside = [], [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside = tag
            self.scripts.append([dict(attributes), ""])

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1][1] += data
        else:
            self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self):
        return " ".join(self.words)

    @property
    def runs(self):
        return [json.loads(text) for attributes, text in self.scripts if attributes.get("type") == "application/json"]


def trace(*rows):
    """Rows of iteration, seconds, energy, best and bound."""
    return np.array(list(rows), TRACE)


def long_trace(n):
    rows = np.zeros(n, TRACE)
    rows["iteration"] = np.arange(n)
    rows["seconds"] = np.arange(n) / 100
    rows["energy"] = rows["best"] = 100 + 900 * np.exp(-np.arange(n) / 50)
    rows["bound"] = np.nan
    return rows


def page_of(*sections, **options):
    return Page(report("A title", list(sections), version="1.2.3", **options))


def square(caption, size=4):
    return Picture(caption, np.full((size, size), 100, np.uint8))


def sizes(page):
    data = [image["src"].removeprefix("data:image/png;base64,") for image in page.all("img")]
    return [PIL.Image.open(io.BytesIO(base64.b64decode(png))).size for png in data]


def test_a_section_with_all_parts_shows_every_part():
    page = page_of(
        Section(
            "Stereo",
            square("left"),
            square("depth"),
            [square("truth")],
            {"minimize": trace((0, 0, 9, 9, -math.inf), (1, 0.5, 7, 7, 6))},
            [square("first"), square("second")],
            {"energy": "7", "bound": "6"},
            [{"method": "icm", "energy": "8"}, {"method": "trw", "energy": "7"}],
        ),
        command="treefield stereo left.png",
    )
    words = (
        "A title|Stereo|left|depth|truth|first|second|energy|7|bound|6|method|icm|trw|treefield stereo left.png|1.2.3"
    )
    assert [word for word in words.split("|") if word not in page.text] == []
    assert len(page.all("img")) == 5
    assert [slider["aria-label"] for slider in page.all("input") if slider["type"] == "range"] == [
        "Divider between left and depth",
        "Which labelling",
    ]
    assert [cell.get("class") for cell in page.all("th")] == [None, "number"]
    assert page.all("nav") == []


def test_columns_of_numbers_stand_to_the_right():
    numbers = ["-1,234.5", "\N{MINUS SIGN}7", "0.02%", "12.5 ms", "1.5e-06", "\N{EN DASH}", "", "1.3x", "< 3 s"]
    words = ["icm", "3 labels", "1 of 2"]
    page = page_of(Section("S", table=[{"number": number, **{word: word for word in words}} for number in numbers]))
    assert [cell.get("class") for cell in page.all("th")] == ["number", None, None, None]


def test_an_empty_section_shows_only_its_title():
    page = page_of(Section("Nothing"))
    assert "Nothing" in page.text
    assert all(page.all(tag) == [] for tag in ("img", "input", "svg", "dl", "table", "pre"))


def test_several_sections_get_contents_that_lead_to_them():
    page = page_of(Section("One"), Section("Two"), Section("Three"))
    targets = [link["href"].removeprefix("#") for link in page.all("a")]
    assert targets == [section["id"] for section in page.all("section")] and len(set(targets)) == 3


def test_the_page_loads_nothing_from_elsewhere():
    page = page_of(Section("S", square("a"), square("b"), runs={"r": trace((0, 0, 1, 1, 0))}))
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv"))
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    links = [element[key] for _, element in page.elements for key in ("src", "href") if key in element]
    assert all(link.startswith(("data:", "#")) for link in links)
    assert not any("url(" in text or "@import" in text for _, text in page.scripts)


def filled(text):
    """A page with the same text in every field."""
    seen, runs = square(text), {text: trace((0, 0, 1, 1, 0))}
    section = Section(text, seen, seen, [seen], runs, [seen, seen], {text: text}, [{text: text}, {text: text}])
    return Page(report(text, [section, section], command=text, version=text))


def test_markup_in_any_given_text_is_escaped():
    page, harmless = filled(EVIL), filled("x" * len(EVIL))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in harmless.elements]
    assert [sorted(element) for _, element in page.elements] == [sorted(element) for _, element in harmless.elements]
    assert page.text.count(EVIL) == harmless.text.count("x" * len(EVIL)) > 20
    assert {image["alt"] for image in page.all("img")} == {EVIL}
    assert [run["name"] for runs in page.runs for run in runs] == [EVIL, EVIL]


def test_a_file_name_that_is_not_utf8_can_be_written():
    page = report("t", [], command=b"treefield \xff.png".decode("utf-8", "surrogateescape"), version="1")
    assert rb"treefield \udcff.png" in page.encode("utf-8")


def test_values_that_are_not_finite_become_null():
    rows = trace((0, 0, math.inf, math.inf, -math.inf), (1, 1, 5, 5, math.nan), (2, 2, 6, 5, 4))
    ((run,),) = page_of(Section("S", runs={"r": rows})).runs
    assert run["best"] == [None, 5, 5] and run["energy"] == [None, 5, 6] and run["bound"] == [None, None, 4]
    assert run["gap"] == [None, None, 0.2]
    assert run["whole"] == [4, 5]


def test_a_run_without_a_finite_value_has_no_range():
    ((run,),) = page_of(Section("S", runs={"r": trace((0, 0, math.inf, math.inf, math.nan))})).runs
    assert run["whole"] is None and run["detail"] is None


def test_a_start_far_off_is_outside_the_range_of_interest():
    rows = trace((0, 0, 1e9, 1e9, -1e9), (1, 1, 12, 12, 5), (2, 2, 10, 10, 8))
    ((run,),) = page_of(Section("S", runs={"r": rows})).runs
    assert run["whole"] == [-1e9, 1e9] and run["detail"] == [5, 12]


def test_short_traces_are_not_thinned():
    assert thinned(long_trace(POINTS)).tolist() == list(range(POINTS))


def test_long_traces_keep_their_ends_and_their_shape():
    rows = long_trace(100_000)
    rows["best"][54_321:] -= 50  # one late find
    rows["bound"][77_777:] = -30
    kept = thinned(rows)
    assert len(kept) <= POINTS and {0, 99_999, 54_321, 77_777} <= set(kept.tolist())
    held = rows["best"][kept[np.searchsorted(kept, np.arange(len(rows)), side="right") - 1]]
    assert np.max(np.abs(held - rows["best"])) < 1
    assert np.diff(kept).max() < 400
    ((run,),) = page_of(Section("S", runs={"r": rows})).runs
    assert len(run["best"]) == len(kept) and run["best"][-1] == rows["best"][-1]


def test_large_pictures_are_made_smaller_and_small_ones_kept():
    large = Picture("large", np.zeros((1300, 2600, 3), np.uint8))
    page = page_of(Section("S", large, square("small"), moments=[large]))
    assert sizes(page) == [(1200, 600), (4, 4), (650, 325)]


@pytest.mark.parametrize(("shape", "box"), [((1, 3000), (640, 40)), ((3000, 1), (40, 560)), ((1, 1), (560, 560))])
def test_pictures_of_one_row_column_or_site_are_enlarged(shape, box):
    page = page_of(Section("S", after=Picture("thin", np.zeros(shape, np.uint8))))
    (image,) = page.all("img")
    assert image["style"] == f"width: {box[0]}px; aspect-ratio: {box[0]} / {box[1]}" and image["class"] == "pixelated"
    assert min(sizes(page)[0]) == 1


def test_small_pictures_are_enlarged_by_whole_numbers():
    assert _fitted(64, 64, (640, 560)) == ((512, 512), True)
    assert _fitted(2000, 1000, (640, 560)) == ((640, 320), False)


@pytest.mark.parametrize("pixels", [np.zeros((2, 2)), np.zeros((2, 2, 4), np.uint8), np.zeros((0, 2), np.uint8)])
def test_pictures_of_another_kind_are_refused(pixels):
    with pytest.raises(ValueError, match=r"the picture 'odd' is .* give uint8 of shape \(M, N\) or \(M, N, 3\)"):
        page_of(Section("S", after=Picture("odd", pixels)))


@pytest.mark.parametrize(("package", "name"), [("jinja2", "Jinja2"), ("PIL", "Pillow")])
def test_a_report_without_its_packages_says_what_to_install(monkeypatch, package, name):
    real = builtins.__import__

    def importing(module, *rest):
        if module == package:
            raise ImportError(module)
        return real(module, *rest)

    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.raises(ImportError, match=rf'a report needs {name}: pip install "treefield\[cli\]"'):
        page_of(Section("S", after=square("a")))
