# Everything runs in .venv, which is made when it is first needed. Python 3.11+, pip, venv and git are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help demo tour test test-model test-ray lint format bench wheel clean

help:
	@echo "make demo        a real task with a real model, then the recorded tour (first time: 1.1 GB of weights)"
	@echo "make tour        the recorded tour alone: offline, some seconds"
	@echo "make test        the test suite"
	@echo "make test-model  the tests that need the built-in model's weights"
	@echo "make test-ray    the batch on a Ray cluster of this machine (installs Ray)"
	@echo "make lint        ruff and basedpyright"
	@echo "make bench       the measurements in benchmarks/"
	@echo "make wheel       the wheel, in dist/"

demo: $(VENV)/ready-local
	$(BIN)/refold demo

tour: $(VENV)/ready-local
	$(BIN)/refold demo --recorded

test: $(VENV)/ready-test
	$(BIN)/python -m pytest -q -n auto

test-model: $(VENV)/ready-test
	$(BIN)/python -m pytest -q -m real_model

test-ray: $(VENV)/ready-ray
	$(BIN)/python -m pytest -q tests/test_cli_batch.py -k ray

lint: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

format: $(VENV)/ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/ready-test
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

wheel: $(VENV)/ready-dev
	$(BIN)/python -m build --wheel --outdir dist .

clean:
	rm -rf $(VENV) build dist ./*.egg-info .pytest_cache .ruff_cache .hypothesis

# One stamp for each set of extras; a change of pyproject.toml installs again.
$(VENV)/ready-local: EXTRAS := local
$(VENV)/ready-test: EXTRAS := local,test
$(VENV)/ready-ray: EXTRAS := test,ray
$(VENV)/ready-dev: EXTRAS := dev
$(VENV)/ready-%: pyproject.toml | $(BIN)/python
	@echo "Setting up: installing refold[$(EXTRAS)] with its dependencies into $(VENV) (about a minute, once)"
	@$(PIP) install --quiet --editable '.[$(EXTRAS)]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "refold needs Python 3.11 or later; $(PYTHON) is older. Try: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up: $(VENV), a virtual environment of $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
