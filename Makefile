# Two commands do everything on a fresh machine with Python 3.11 or newer and make:
#   make demo   virtual environment, install, one auction over the crowded queue of a 1408-node cluster
#   make test   virtual environment, install, all tests
# make quick runs only what takes next to no time; make times measures which that is. Properties draw the same examples
# each time; make soak draws others, to find what they miss.
# The documentation: make site builds it into site/; make site-version commits it, as a folder of this version
# beside those of earlier ones, to the branch SITE_BRANCH of this repository. Nothing is pushed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Further options of make test.
PYTEST ?=

SITE_BRANCH ?= gh-pages
SITE_VERSION ?= $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
# mike calls mkdocs by its name.
MIKE := PATH="$(abspath $(BIN)):$$PATH" $(BIN)/mike -q

CROWDED := examples/emulated-1408-full.json

.PHONY: demo test quick soak times bench site site-version clean

demo: $(VENV)/.run
	$(BIN)/aucsched compare $(CROWDED) --promise none --reserve 0 --work-limit 20 --top 14
	@echo
	@echo "More priority on as many cores: the auction wins where not everything fits."
	@echo "A job worth its priority times its cores (--objective priority_cores) fills every core:"
	@echo
	$(BIN)/aucsched compare $(CROWDED) --objective priority_cores --reserve 0 --work-limit 20 --top 1
	@$(BIN)/aucsched schedule $(CROWDED) --promise none --reserve 0 --work-limit 20 --html demo.html -o demo.txt
	@echo
	@echo "demo.html shows the machine: who starts where, who waits and why. Next:"
	@echo "    $(BIN)/aucsched explain $(CROWDED) 64"

site: $(VENV)/.docs
	$(BIN)/python -m mkdocs build --strict --quiet

site-version: $(VENV)/.docs
	$(MIKE) deploy --branch $(SITE_BRANCH) --update-aliases $(SITE_VERSION) latest
	$(MIKE) set-default --branch $(SITE_BRANCH) latest
	@echo "$(SITE_VERSION) stands in the branch $(SITE_BRANCH): push it, or put it on any web server with"
	@echo "    git archive $(SITE_BRANCH) | tar -x -C FOLDER"

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST)

quick: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -q -m "not costly"

soak: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -q --hypothesis-profile=soak

times: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -q --write-times

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/step.py

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "aucsched needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fast]'
	$(BIN)/python -m aucsched.cluster.kernels.warm_up
	@touch $@

$(VENV)/.dev: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,plot]'
	$(BIN)/python -m aucsched.cluster.kernels.warm_up
	@touch $@ $(VENV)/.run

$(VENV)/.docs: pyproject.toml $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) build dist site demo.html demo.txt *.egg-info src/*.egg-info
