# make demo    try everything                     make test    run the tests
# make check   format, lint, types, tests         make bench   measure the ratios of benchmarks/
# Each target first sets up a virtual environment in .venv with the dependencies of pyproject.toml and the torch of
# constraints.txt. The targets for developers install the development dependencies too.

PYTHON ?= python3.11
BIN := .venv/bin
INSTALLED := .venv/installed
DEVELOPED := .venv/developed

.PHONY: demo test check bench docs format clean

demo: $(INSTALLED)
	$(BIN)/deepcruiser demo

test: $(DEVELOPED)
	$(BIN)/python -m pytest -n 2 --durations=5

check: $(DEVELOPED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2

bench: $(DEVELOPED)
	$(BIN)/python -m benchmarks

docs: $(DEVELOPED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html; to search in it, run $(BIN)/mkdocs serve"

format: $(DEVELOPED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(INSTALLED): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found; Python 3.11 or later is needed, name yours with: make PYTHON=python3 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(DEVELOPED): $(INSTALLED)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
