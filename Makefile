# Each target does its own set-up: all it needs is Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench paper pictures clean

demo: $(VENV)/demo
	$(BIN)/treefield demo --out demo-output --force

test: $(VENV)/test
	$(BIN)/python -m pytest -q -n auto --dist loadfile

lint: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/bench
	$(BIN)/python benchmarks/run.py

# The paper's experiments, run again, in minutes; without --quick as long as the paper's.
paper: $(VENV)/reproduce
	$(BIN)/treefield paper all --quick --out paper-output --force

pictures: $(VENV)/demo
	$(BIN)/python docs/pictures.py

# The file .venv/EXTRA says that the package with that extra is installed.
$(VENV)/%: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"treefield needs Python 3.11 or newer, this is {sys.version.split()[0]}; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) build dist demo-output bench-output paper-output .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
