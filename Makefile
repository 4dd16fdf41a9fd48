# Everything a newcomer needs, from a fresh clone with only Python 3.11+ and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# Known-good versions, so that a dependency's new release never breaks a fresh clone.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test test-fast test-long test-lowest test-prerelease coverage mutants lint bench bench-compare fuzz audit docs links package clean

help:
	@echo "make demo   see what idfsmec does, no data needed"
	@echo "make test   run the test suite, a few minutes"
	@echo "make test-fast   leave out what takes more than seconds, under two minutes"
	@echo "make test-long   run only the long trials: kills, full disks, little memory"
	@echo "make test-lowest   run it with the lowest versions that pyproject.toml allows"
	@echo "make test-prerelease   run it with the newest versions, also those not released yet"
	@echo "make coverage   run it and list lines and branches that it does not reach"
	@echo "make mutants   change formulas at random and see whether tests notice, an hour; MODULES=metrics for one"
	@echo "make lint   ruff, mypy --strict, import-linter and codespell"
	@echo "make bench  time idfsmec against its peers, half an hour; BENCH=grid for one of them"
	@echo "make bench-compare REF=main   time this tree against a revision"
	@echo "make fuzz   feed random bytes to the text readers for a minute"
	@echo "make audit  look for unsafe code (bandit) and known vulnerabilities of dependencies (pip-audit)"
	@echo "make docs   build the documentation into docs/_build/html"
	@echo "make links  check the links of the documentation"
	@echo "make package   build wheel and sdist, and try them in empty environments"
	@echo "make clean  remove everything that make created"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "idfsmec needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-user: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/.installed-user

# With the programs of others that results and speed are compared with.
$(VENV)/.installed-peers: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[dev,peers]'
	@touch $@ $(VENV)/.installed-dev $(VENV)/.installed-user

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[docs]'
	@touch $@ $(VENV)/.installed-user

demo: $(VENV)/.installed-user
	$(BIN)/idfsmec demo

# One worker per core, so one thread per worker: threads of several workers would only wait for
# one another. Compiling numba's functions takes longer than running them on small files. Processes
# that tests start read compiled modules instead of compiling them again.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

test: $(VENV)/.installed-dev
	$(PYTEST) -m "not long"

test-fast: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow and not long"

# axe-core checks that everybody can use the pages. Without npm its tests are skipped.
node_modules/axe-core/axe.min.js:
	-npm install --no-save --no-package-lock --silent axe-core

test-long: $(VENV)/.installed-peers node_modules/axe-core/axe.min.js
	$(PYTEST) -m long

# An environment of its own. Old packages warn about new ones below them: shown, but no errors.
LOWEST := $(VENV)-lowest
$(LOWEST)/.installed: pyproject.toml | $(BIN)/python
	$(INSTALL) uv
	$(PYTHON) -m venv --clear $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[dev]'
	@touch $@

test-lowest: $(LOWEST)/.installed
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest --numprocesses auto --dist worksteal -m "not long" -W default

# Without the known-good versions, and with what others are about to release.
test-prerelease: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --pre --editable '.[dev]'
	$(PYTEST) -m "not long"

coverage: $(VENV)/.installed-dev
	$(PYTEST) -m "not long" --cov --cov-report=term-missing:skip-covered --cov-fail-under=95

# Another sample of mutants every week: MODULES="metrics selection/effects", N of each, SEED.
MODULES ?=
N ?= 20
SEED ?= $(shell date +%G-%V)

mutants: $(VENV)/.installed-dev
	$(BIN)/python .ci/mutants.py $(MODULES) -n $(N) --seed $(SEED)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs benchmarks README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md

# One or a few of them: make bench BENCH="grid fastest" (the page keeps its other sections)
BENCH ?=
BENCH_PAGE ?= benchmarks/results/latest.md
BENCH_JSON ?= benchmarks/results/latest.json

bench: $(VENV)/.installed-peers
	$(BIN)/python -m benchmarks $(BENCH) --json $(BENCH_JSON) --markdown $(BENCH_PAGE)

bench-compare: $(VENV)/.installed-dev
	@test -n "$(REF)" || { echo "usage: make bench-compare REF=<revision>"; exit 2; }
	$(BIN)/python -m benchmarks._compare $(REF)

fuzz: $(VENV)/.installed-dev
	$(INSTALL) atheris
	PYTHONPATH=src $(BIN)/python fuzz/text_readers.py -max_total_time=60

# Where no advisory service can be reached pip-audit fails (--strict): unknown is not the same as safe.
audit: $(BIN)/python
	$(INSTALL) bandit pip-audit
	$(BIN)/bandit --quiet --recursive src
	$(BIN)/pip-audit --strict --disable-pip --no-deps --requirement constraints.txt

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

links: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -b linkcheck docs docs/_build/links

package: $(VENV)/.installed-dev
	$(INSTALL) build
	$(BIN)/python .ci/package.py

clean:
	rm -rf $(VENV) $(LOWEST) node_modules build dist docs/_build docs/auto_examples docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis idfsmec-demo
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
