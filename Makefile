# One command each; every target makes the virtual environment and installs what it needs.
#   PYTHON=python3.12 make test     chooses the interpreter (3.11 or newer)
#   make test WORKERS=1             chooses the number of test processes

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint format bench docs check clean
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMP)-plots ## show something real, and say what you see
	@$(BIN)/discreet demo

test: $(STAMP)-test ## the fast tests
	$(BIN)/python -m pytest -n $(WORKERS)

test-all: $(STAMP)-test ## all tests, the slow ones too, with a fresh seed and many more random examples
	HYPOTHESIS_PROFILE=thorough DISCREET_TEST_SEED=random $(BIN)/python -m pytest -n $(WORKERS) -m "slow or not slow"

lint: $(STAMP)-lint ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)-lint ## rewrite the files as lint wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: lint test ## what must be green before a commit

bench: $(STAMP)-bench ## measure against the peers; tables on screen, JSON in benchmarks/results
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs: $(STAMP)-docs ## build the site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean: ## remove caches and built files (delete .venv by hand to start afresh)
	rm -rf site dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "discreet needs Python 3.11 or newer; run: PYTHON=/path/to/python3.11 make ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A stamp per set of dependencies: younger than pyproject.toml means installed.
$(STAMP)-bench: pyproject.toml | $(BIN)/python
	$(INSTALL) torch==2.13.0
	$(INSTALL) --editable '.[bench]'
	@touch $@

$(STAMP)-%: pyproject.toml | $(BIN)/python
	$(INSTALL) --editable '.[$*]'
	@touch $@
