"""Measure and print: the output of a section is kept until run.py writes it to files."""

import pathlib
import time

import numpy as np

OUTPUT = pathlib.Path(__file__).resolve().parents[1] / "bench-output"
_section_output = {"words": [], "tables": [], "pictures": []}


def milliseconds(work, repeat=30, prepare=None):
    """The median time of `work()`, `prepare()` before each."""
    times = []
    for _ in range(repeat):
        if prepare is not None:
            prepare()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def slope(sizes, times):
    """The exponent of the power law that fits best: of log time against log size, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def table(title, columns, rows):
    """Print rows under a title."""
    rows = [[str(cell) for cell in row] for row in rows]
    _section_output["tables"].append({"title": title, "columns": columns, "rows": rows})
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    sides = ["<", *">" * (len(columns) - 1)]
    print(f"\n{title}", flush=True)
    for row in [columns, *rows]:
        print("  " + "  ".join(f"{cell:{side}{n}}" for cell, side, n in zip(row, sides, widths, strict=True)))


def say(words):
    """Print a line, once in a section."""
    if words not in _section_output["words"]:
        _section_output["words"].append(words)
        print(f"\n{words}", flush=True)


def picture(figure, name):
    """Write a Matplotlib figure to the folder of outputs."""
    OUTPUT.mkdir(exist_ok=True)
    figure.savefig(OUTPUT / name, dpi=110)
    _section_output["pictures"].append(name)
    print(f"  picture: {OUTPUT.name}/{name}", flush=True)


def take_output():
    """Remove and return the output since the last call: words, tables, pictures."""
    output = {kind: list(things) for kind, things in _section_output.items()}
    for things in _section_output.values():
        things.clear()
    return output
