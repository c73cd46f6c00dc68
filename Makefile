# Two commands on a fresh machine: `make demo` and `make test`. Each sets up all it needs in $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip --quiet
# Tests of a foreign checkout must not meet its settings, and warnings are errors: no missing runtime folder. They start
# hundreds of processes, which are not to compile all modules each time.
TEST_ENV := env -u ARIANE_HOME -u ARIANE_CONFIG -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 LC_ALL=C.UTF-8 XDG_RUNTIME_DIR=$${XDG_RUNTIME_DIR:-/tmp}
# Three processes even on two cores: a test of real processes mostly waits (JOBS=0: none, for a debugger).
JOBS ?= 3

.PHONY: help demo test test-heavy eval-full tested pictures lint format wheel-check clean
.DEFAULT_GOAL := help

help:
	@echo "make demo         the whole loop on this machine, until Ctrl-C (ONCE=1: until the first answer)"
	@echo "make test         the test suite (ARGS='-k name' for a part of it)"
	@echo "make test-heavy   the tests that take minutes: whole forums, slow servers"
	@echo "make eval-full    retrieval on a real forum and a help desk beside the figures it had: some minutes"
	@echo "make tested       measure the demo anew and ship the verdict, after a change of what decides answers"
	@echo "make pictures     take the pictures of the guides again (needs Debian's chromium)"
	@echo "make lint         style, types and import contracts"
	@echo "make wheel-check  the built wheel, installed on its own, has all it needs"
	@echo "make format       rewrite the code in the project's style"

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Ariane needs Python 3.11 or newer; this is `$(PYTHON) --version`. Name another: make PYTHON=python3.12 ..." >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "This Python has no venv module. On Debian and Ubuntu: apt install python3-venv" >&2; exit 2; }
	@echo "Making a virtual environment in $(VENV) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.ready: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing Ariane ..." >&2
	@$(PIP) install -c constraints.txt -e .
	@$(BIN)/python -m compileall -q service eval
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@echo "Installing the development tools ..." >&2
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/.ready
	@$(BIN)/ariane demo $(if $(ONCE),--once)

test: $(VENV)/.ready-dev
	@$(TEST_ENV) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-heavy: $(VENV)/.ready-dev
	@$(TEST_ENV) $(BIN)/python -m pytest -n $(JOBS) --dist load -m heavy $(ARGS)

eval-full: $(VENV)/.ready-dev
	@$(TEST_ENV) $(BIN)/python -m pytest -n 0 -m heavy tests/eval/test_retrieve_full.py $(ARGS)

tested: $(VENV)/.ready-dev
	@$(BIN)/python -m eval retrieve --dataset eval/demo --systems reranked
	@$(BIN)/python -m eval answer --dataset eval/demo
	@$(BIN)/python -m eval judge retrieve answer --limits eval/demo/limits.yml --ship

pictures: $(VENV)/.ready-dev
	@$(TEST_ENV) $(BIN)/python -m tests.pictures

lint: $(VENV)/.ready-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

wheel-check: $(VENV)/.ready-dev
	@$(BIN)/python .ci/wheel_check.py

format: $(VENV)/.ready-dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
