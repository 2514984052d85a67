"""Write the output of the benchmarks as Markdown, to read, and as JSON.

Each section replaces its earlier output and leaves that of the others.
"""

import json
import pathlib
import time

from treefield.io.files import write_atomically
from treefield_reproduce.report_page import environment_facts

MARKDOWN, DATA = "bench.md", "bench.json"
PEERS = ("PyMaxflow", "gco-wrapper", "dwave-samplers", "opencv-python-headless", "scikit-image")
PACKAGES = ("numpy", "numba", "scipy", *PEERS)


def write_section(folder, name, start, output):
    """Write the output of a section, begun at `start` (seconds since 1970), to both files of the folder."""
    stamp = time.strftime("%Y-%m-%d %H:%M", time.localtime(start))
    facts = machine()
    section = {"when": stamp, "seconds": round(time.time() - start, 1), "with": facts, **output}
    document = {"date": stamp, "with": facts, "sections": sections(folder / DATA) | {name: section}}
    folder.mkdir(exist_ok=True)
    for file, text in ((DATA, json.dumps(document, indent=1)), (MARKDOWN, markdown(document))):
        with write_atomically(folder / file, force=True) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")


def sections(path):
    """The sections that an earlier run has written; none if there is no such file."""
    return json.loads(path.read_text(encoding="utf-8"))["sections"] if path.exists() else {}


def machine():
    """Where this runs, and the version of everything that bears on the figures."""
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {"processor": models[0] if models else "unknown", **environment_facts(PACKAGES)}


def markdown(document):
    """The whole as a page."""
    lines = ["# Benchmarks", "", f"Written {document['date']} by `benchmarks/run.py`.", ""]
    lines += grid(["", ""], list(document["with"].items()))
    for name, section in document["sections"].items():
        stamp = f"Run {section['when']}, {section['seconds']:g} s."
        other = [f"{what} {which}" for what, which in section["with"].items() if document["with"].get(what) != which]
        lines += ["", f"## {name}", "", stamp + (f" Then: {', '.join(other)}." if other else "")]
        for words in section["words"]:
            lines += ["", words]
        for table in section["tables"]:
            lines += ["", f"**{table['title']}**", "", *grid(table["columns"], table["rows"])]
        for file in section["pictures"]:
            lines += ["", f"![{pathlib.Path(file).stem}]({file})"]
    return "\n".join(lines)


def grid(columns, rows):
    """A table's lines: the first column to the left, the others to the right."""
    ruler = [":--", *["--:"] * (len(columns) - 1)]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [columns, ruler, *rows]]
