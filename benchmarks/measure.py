"""How benchmarks measure and print."""

import time

import numpy as np


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


def table(title, columns, rows):
    """Print rows under a title."""
    widths = [max(len(str(row[i])) for row in [columns, *rows]) for i in range(len(columns))]
    print(f"\n{title}", flush=True)
    for row in [columns, *rows]:
        print(
            "  "
            + "  ".join(
                str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        )
