# What a newcomer needs: `make demo` and `make test`. Everything is installed into .venv, with the pinned versions of
# constraints.txt.
PYTHON ?= python3.11
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Where the real data is that benchmarks measure on.
DATA ?= ../shared/data

.PHONY: demo serve test test-slow test-web test-python fuzz damage kills lint docs walk bench clean

demo: .venv/installed
	$(BIN)/rechain demo

serve: .venv/installed-dev
	$(BIN)/rechain serve

test: .venv/installed-dev
	$(BIN)/python -m pytest -m "not slow and not web" -n auto --dist loadfile

test-slow: .venv/installed-dev
	$(BIN)/python -m pytest -m slow

# In a real browser: Debian's chromium, or the one that CHROMIUM names.
test-web: .venv/installed-dev
	$(BIN)/python -m pytest -m web

# What needs no torch, on another Python: make test-python PYTHON=python3.12. (torch's CPU build is pinned for 3.11.)
LIGHT := ahocorasick_rs bm25s huggingface_hub numpy orjson pydantic rich safetensors tokenizers typer
ROOMS := $(addprefix tests/,text formats/datasets formats/exports scoring evaluation labels test_schema.py test_errors.py)
OTHER := .venv-$(notdir $(PYTHON))
test-python:
	$(PYTHON) -m venv $(OTHER)
	$(OTHER)/bin/python -m pip install --quiet -c constraints.txt $(LIGHT) pyarrow datasets hypothesis pytest
	$(OTHER)/bin/python -m pip install --quiet --no-deps -e .
	$(OTHER)/bin/python -m pytest -m "not slow and not web and not torch" --ignore tests/text/linking/test_spacy_names.py $(ROOMS)

# Files that are wrong in every way, given to every command: make fuzz SEED=7; one case again: make fuzz SEED=7 CASE=1234.
SEED ?= 1
NUMBERS = --seed $(SEED) $(if $(COUNT),--count $(COUNT)) $(if $(CASE),--case $(CASE))
fuzz: .venv/installed-dev
	$(BIN)/python tests/hardness/fuzz.py $(NUMBERS)

# Files that rechain wrote, damaged in every region of their bytes, and then read.
damage: .venv/installed-dev
	$(BIN)/python tests/hardness/damage.py $(NUMBERS)

# kill -9 of everything that writes, at any moment.
kills: .venv/installed-dev
	$(BIN)/python tests/hardness/kills.py $(NUMBERS)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/plain_english.py
	$(BIN)/python .ci/linear_patterns.py
	$(BIN)/hadolint Dockerfile

# The site, in build/site: no network, and every warning, such as a link that leads nowhere, is an error.
docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

# How many files and functions of the package one question passes, command by command.
walk: .venv/installed-dev
	$(BIN)/python benchmarks/walk.py

bench: .venv/installed-dev
	$(BIN)/python benchmarks/candidates.py $(DATA)
	$(BIN)/python benchmarks/baselines.py $(DATA)
	$(BIN)/python benchmarks/speed.py $(DATA)
	$(BIN)/python benchmarks/bulk.py $(DATA)
	$(BIN)/python benchmarks/collection_size.py $(DATA)
	$(BIN)/python benchmarks/exports.py $(DATA)

.venv/bin/python:
	$(PYTHON) -m venv .venv || python3 -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e .
	touch $@

.venv/installed-dev: .venv/installed
	$(PIP) -e .[dev]
	touch $@

.venv/installed-docs: .venv/installed
	$(PIP) -e .[docs]
	touch $@

clean:
	rm -rf .venv build dist src/*.egg-info
