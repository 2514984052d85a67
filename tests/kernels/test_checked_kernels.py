"""A few tests of kernels, run again with bounds checks: no load, store or gather leaves its array."""

import pathlib

TESTS = pathlib.Path(__file__).parents[1]
CHECKED = [
    "kernels/test_lines.py::test_few_lines_are_searched_exactly",
]
