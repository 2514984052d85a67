"""The pages for developers name files, functions and tables that exist, and show diagrams of the current code."""

import ast
import functools
import pathlib
import re
import subprocess
import sys
import textwrap
import tomllib

import pytest

from contracts.conformity import members
from treefield import protocols

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "treefield"
DEVELOPMENT = ROOT / "docs" / "development"
PAGES = [*sorted(DEVELOPMENT.glob("*.md")), ROOT / "CONTRIBUTING.md"]
ARCHITECTURE = DEVELOPMENT / "architecture.md"

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+/[\w./-]*|[\w.-]+\.(?:py|md|toml)")
NAMED = re.compile(r"([\w./-]+\.py): ([\w.]+)")
NEW = re.compile(r"\*\*([\w./\\-]+)\*\*")  # a file that a recipe creates
LINK = re.compile(r"\]\(([^)#\s]*)#?([^)\s]*)\)")
ROW = re.compile(r"^\| (\d+) \| `([\w./]+): ", re.MULTILINE)
NODE = re.compile(r'\["\d+ ([\w/]+)"\]')

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
each_search = pytest.mark.parametrize("search", ["t_icm", "minimize"])


def spans(page):
    """What is in backticks, outside of blocks of code."""
    return SPAN.findall(FENCE.sub("", page.read_text(encoding="utf-8")))


def resolve(path, page):
    """The file or folder that a page means, None if there is none."""
    places = (folder / path for folder in (PACKAGE, ROOT, page.parent))
    return next((place for place in places if place.exists()), None)


@functools.cache
def names_in(path):
    """The names that a module defines, and those of its classes as Class.name."""
    found = set()

    def add(body, prefix):
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                add(node.body, f"{prefix}{node.name}.")
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found.update(prefix + target.id for target in targets if isinstance(target, ast.Name))
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.update(alias.asname or alias.name for alias in node.names)

    add(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


def snippets(page):
    """The blocks of Python code as syntax trees."""
    for _, language, code in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            yield ast.parse(textwrap.dedent(code))


def imports(page):
    """The modules of treefield that blocks of code import from, and the names."""
    for tree in snippets(page):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("treefield."):
                yield from ((node.module, alias.name) for alias in node.names)


def slugs(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@functools.cache
def printed(search):
    """The diagram that follow.py prints now."""
    command = [sys.executable, str(DEVELOPMENT / "follow.py"), search, "--diagram"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def files_in(diagram):
    """The files of a diagram in the order of their first call."""
    files, layer = {}, ""
    for line in diagram.splitlines():
        if line.strip().startswith("subgraph"):
            layer = "" if "called from most files" in line else line.split()[1] + "/"
        for label in NODE.findall(line):
            files[int(line.split('"')[1].split()[0])] = f"{layer}{label}.py"
    return [files[number] for number in sorted(files)]


def rows_under(search):
    """The numbers and files of the table that follows the diagram of a search."""
    _, _, rest = ARCHITECTURE.read_text(encoding="utf-8").partition(f"### `tf.{search}(")
    return [(int(number), file) for number, file in ROW.findall(re.split(r"^##", rest, flags=re.MULTILINE)[0])]


@every_page
def test_every_path_in_a_page_exists(page):
    paths = [span for span in spans(page) if PATH.fullmatch(span)]
    assert [path for path in paths if resolve(path, page) is None] == []


@every_page
def test_every_name_in_a_page_is_defined_in_its_file(page):
    named = [match.groups() for match in map(NAMED.fullmatch, spans(page)) if match]
    missing = []
    for path, name in named:
        file = resolve(path, page)
        if file is None or name not in names_in(file):
            missing.append((path, name))
    assert missing == []


@every_page
def test_every_link_in_a_page_leads_somewhere(page):
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not link[0].startswith("http")]
    for path, anchor in links:
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in slugs(target), f"{path}#{anchor}"


@every_page
def test_code_in_a_page_imports_what_exists(page):
    created = {path.replace("\\", "") for path in NEW.findall(page.read_text(encoding="utf-8"))}
    for module, name in imports(page):
        path = f"{module.removeprefix('treefield.').replace('.', '/')}.py"
        assert path in created or name in names_in(PACKAGE / path), f"{name} of {module}"


@every_page
def test_files_that_a_recipe_creates_do_not_exist_yet(page):
    created = [path for path in NEW.findall(page.read_text(encoding="utf-8")) if path.endswith(".py")]
    assert [path for path in created if resolve(path.replace("\\", ""), page) is not None] == []


def test_the_index_lists_every_page():
    linked = {path for path, _ in LINK.findall((DEVELOPMENT / "README.md").read_text(encoding="utf-8"))}
    assert linked == {page.name for page in DEVELOPMENT.glob("*.md")} - {"README.md"}


def test_table_of_layers_is_that_of_the_linter():
    with (ROOT / "pyproject.toml").open("rb") as file:
        contract = tomllib.load(file)["tool"]["importlinter"]["contracts"][0]
    expected = [sorted(module.removeprefix("treefield.") for module in row.split(" : ")) for row in contract["layers"]]
    table = ARCHITECTURE.read_text(encoding="utf-8").partition("## The layers")[2].partition("|---|---|\n")[2]
    cells = [line.split("|")[1] for line in table.partition("\n\n")[0].splitlines()]
    assert [sorted(name.rstrip("/").removesuffix(".py") for name in SPAN.findall(cell)) for cell in cells] == expected


def test_architecture_names_every_question_of_a_backend():
    assert set(members(protocols.Backend)) - set(spans(ARCHITECTURE)) == set()


@each_search
def test_diagram_is_what_follow_prints_now(search):
    page = ARCHITECTURE.read_text(encoding="utf-8")
    assert printed(search) in page, f"paste the output of: python docs/development/follow.py {search} --diagram"


def test_table_of_t_icm_lists_the_files_of_its_diagram():
    assert rows_under("t_icm") == list(enumerate(files_in(printed("t_icm")), 1))


def test_table_of_minimize_lists_the_files_that_t_icm_does_not_call():
    known = set(files_in(printed("t_icm")))
    others = [(number, file) for number, file in enumerate(files_in(printed("minimize")), 1) if file not in known]
    assert rows_under("minimize") == others
