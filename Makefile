# Two commands do everything on a fresh machine with Python 3.11 or newer and make:
#   make demo   virtual environment, install, one auction over the bundled queue of a 1408-node cluster
#   make test   virtual environment, install, all tests

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test bench clean

demo: $(VENV)/.run
	$(BIN)/aucsched schedule examples/emulated-1408-queue.json

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/step.py

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "aucsched needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fast]'
	$(BIN)/python -m aucsched.models.search.compiled
	@touch $@

$(VENV)/.dev: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,plot]'
	$(BIN)/python -m aucsched.models.search.compiled
	@touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info
