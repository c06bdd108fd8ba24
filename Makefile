# Every target builds the environment in .venv by itself; it is rebuilt when pyproject.toml or constraints.txt changes.
PYTHON ?= python3
JOBS ?= 2
# Folder with real data sets; handed on only where it exists.
DATA ?= ../shared/data
# More arguments for pytest, or for the benchmarks.
ARGS ?=

BIN := .venv/bin
STAMP := .venv/.stamp
DATA_ARGS := $(if $(wildcard $(DATA)/.),--data $(DATA))

# Packages are installed without bytecode, of which a third is ever needed: it is written when they are first imported.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env check docs test test-all oldest faults mutants example notebooks bench clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

env: $(STAMP) ## build the environment in .venv

$(STAMP): pyproject.toml constraints.txt
	@test ! -L .venv || { echo ".venv: expected a folder of this checkout, got a link, whose target would be cleared;" \
	  "update the environment there, or remove the link." >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e ".[dev]"
	@touch $@

check: $(STAMP) ## ruff, mypy --strict, the import layers, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

# From scratch, since pages that are up to date would keep their warnings to themselves.
docs: $(STAMP) ## build the reference and the guides to out/docs; a warning or a broken link is an error
	$(BIN)/python -m sphinx -q -E -W --keep-going -d out/doctrees docs out/docs
	$(BIN)/python docs/check_links.py out/docs

# One BLAS thread a test process: two pools of threads on the same cores slow each other down many times over.
test: $(STAMP) ## make check and make docs side by side, then the tests
	$(MAKE) -j $(JOBS) check docs
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(ARGS)

test-all: $(STAMP) ## the same with the slow tests: all combinations, whole benchmarks, fresh processes
	$(MAKE) -j $(JOBS) check docs
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "slow or not slow" $(ARGS)

# What the tests need beside the package is not pinned. One test counts how often log1p of this NumPy rounds otherwise.
oldest: ## the fast tests of the package with the oldest versions it allows, in .venv-oldest
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt \
	  -e ".[botorch,dask,examples,gest,gpytorch,parquet,river]" hatchling hypothesis pytest pytest-xdist scikit-optimize
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -n $(JOBS) --dist loadgroup $(addprefix --ignore tests/,benchmarks \
	  docs examples faults notebooks) --deselect tests/spaces/test_space.py::test_codes_of_decoded_floats_hardly_ever_move $(ARGS)

faults: $(STAMP) ## kill, fill disks, cut the power and crowd: the table of what was injected and what came of it; ARGS="--quick"
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.fault_table $(ARGS)

mutants: $(STAMP) ## see that the fast tests notice each mutant, a copy of the package with a fault sown; ARGS="--only WORD ..."
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutants $(ARGS)

example: $(STAMP) ## tune a real model, screen a real pool, and tune with Optuna
	$(BIN)/python examples/tune_svm.py
	$(BIN)/python examples/screen_pool.py $(DATA_ARGS)
	$(BIN)/python examples/optuna_sampler.py $(DATA_ARGS)

notebooks: $(STAMP) ## run all notebooks and write them with their outputs; ARGS="NAME ... --smoke"
	$(BIN)/python notebooks/build.py $(ARGS)

bench: $(STAMP) ## run the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

clean: ## remove the environment and all caches
	rm -rf .venv .venv-oldest .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
