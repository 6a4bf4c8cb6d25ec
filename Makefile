# One list of verbs. `make` alone prints it; every verb sets up what it needs.
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 3
VERSIONS := 3.11 3.12 3.13 3.14

# A Python that can make the environment: 3.11 or newer, with venv.
PYTHON = $(shell for candidate in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$candidate; break; }; done)
DEMO := corpus/llamafactory-6800
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# What is installed has the hashes of locks/, and nothing else is fetched.
INSTALL = $(BIN)/python -m pip install --quiet
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check fix accept docs rules oracle fuzz bench bench-edits bench-triage wheel locks clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "make %-10s%s\n", $$1, $$2 }'

demo: $(VENV)/.core bytecode  ## set everything up and diagnose the first reference failure
	$(BIN)/oomdoctor explain $(DEMO)/error.log --config $(DEMO)/qwen2vl_dpo.yaml --config $(DEMO)/ds_z3_config.json

# The tests wait for processes now and then; the types, which cost half a minute in a clean checkout, are checked in that time.
test: lint  ## set everything up; format, lint, types and tests: what CI runs
	@$(MAKE) --no-print-directory -j2 types pytest

check: lint types  ## format, lint and types only

.PHONY: lint types
lint: $(VENV)/.dev bytecode
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev bytecode $(VENV)/.linted
	nice $(BIN)/mypy

# What has changed since it was looked at last; everything where the environment or what is asked for is new.
$(VENV)/.linted: $(VENV)/.dev .yamllint.yaml $(shell find rules -name '*.yaml')
	nice $(BIN)/yamllint --strict $(if $(filter-out rules/%,$?),rules,$?)
	@touch $@

test-all:  ## the tests and the long sweeps on every Python from 3.11 to 3.14 that is found, and the site in Chromium
	@export SWEEP=1; found=; for version in $(VERSIONS); do \
		for python in python$$version $(HOME)/.pyenv/versions/$$version*/bin/python; do \
			$$python -c "import sys, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$$version')" 2>/dev/null || continue; \
			echo "== Python $$version ($$python)"; found="$$found $$version"; \
			$(MAKE) --no-print-directory VENV=.venvs/$$version PYTHON=$$python pytest || exit 1; break; \
		done; \
	done; echo "passed on:$$found"; test -n "$$found"
	@if command -v npm >/dev/null && command -v node >/dev/null; then $(MAKE) --no-print-directory test-site; \
		else echo "NOT TESTED: the site, which needs npm and node"; fi

# Python may write bytecode here, also where the environment forbids it: else each worker compiles every test module in each run.
.PHONY: pytest
pytest: $(VENV)/.dev bytecode
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

fix: $(VENV)/.dev  ## format and repair what can be repaired
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

accept: $(VENV)/.dev  ## rewrite the snapshots; read the diff like code
	$(BIN)/python -m pytest -q -n 0 --snapshot-update

docs: $(VENV)/.core  ## write docs/generated from the rules
	$(BIN)/oomdoctor rules docs

rules: $(VENV)/.core  ## check every rule and run its examples
	$(BIN)/oomdoctor rules check

oracle: $(VENV)/.dev bytecode  ## every answer to every known job with a hash each, in OUT; JOBS=folders adds jobs, AGAINST=folder compares
	$(BIN)/python benchmarks/oracle.py $(or $(OUT),build/oracle) $(if $(JOBS),--jobs $(JOBS)) $(if $(AGAINST),--against $(AGAINST))

fuzz: $(VENV)/.dev bytecode  ## spliced and bent inputs for SECONDS (60); KEEP=1 makes what fails small and keeps it
	$(BIN)/python tests/fuzzing/campaign.py --seconds $(or $(SECONDS),60) $(if $(START),--start $(START)) $(if $(SLACK),--slack $(SLACK)) $(if $(KEEP),--keep)

bench: $(VENV)/.dev bytecode  ## start-up as a ratio to `python -c pass`, reading as a ratio to ripgrep
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/scan.py

bench-edits: $(VENV)/.dev bytecode  ## edits judged by the own parsers of the frameworks (ALL=1: older releases too); 3 GB on disk with torch
	test -d .venvs/judge || $(BIN)/python -m venv .venvs/judge
	.venvs/judge/bin/pip install --quiet torch==2.13.0 setuptools setuptools_scm setuptools_rust wheel packaging numpy hydra-core pydantic tyro docstring-parser \
		'jsonargparse[signatures]' triton msgspec orjson cloudpickle aiohttp fastapi uvicorn pyzmq cachetools pillow openai anthropic pybase64 \
		blake3 prometheus_client mistral_common dill regex requests tqdm psutil einops hjson msgpack py-cpuinfo safetensors tokenizers annotated-types fire \
		scikit-build-core pydantic-settings prime-pydantic-config --editable .
	.venvs/judge/bin/pip uninstall --quiet --yes transformers accelerate huggingface_hub  # these come in the releases of packages.yaml
	.venvs/judge/bin/python benchmarks/edits/packages.py
	.venvs/judge/bin/python benchmarks/edits/record.py
	.venvs/judge/bin/python benchmarks/edits/run.py corpus corpus/configs $(wildcard benchmarks/edits/configs/*) --sample $(or $(JOBS),0) --tries $(or $(TRIES),2) $(if $(ALL),,--newest) --write docs/edits.md

bench-triage: $(VENV)/.dev bytecode  ## what ten thousand jobs cost, as ratios to ripgrep; needs 8 GB of disk and half an hour
	$(BIN)/python benchmarks/triage/bench.py --json $(or $(FIGURES),/dev/null)

wheel: $(VENV)/.dev $(VENV)/.tools  ## build the wheel into dist/, and beside it the list of what it brings (CycloneDX)
	$(BIN)/python -m build --wheel --no-isolation
	rm -rf .venvs/wheel && $(BIN)/python -m venv .venvs/wheel
	.venvs/wheel/bin/python -m pip install --quiet --require-hashes --requirement locks/core.txt
	.venvs/wheel/bin/python -m pip install --quiet --no-deps dist/*.whl
	$(BIN)/cyclonedx-py environment .venvs/wheel --pyproject pyproject.toml --output-reproducible --output-file dist/oomdoctor.cdx.json

# Python in WebAssembly and what checks pages come from npm with the hashes of site/package-lock.json; no script of a package is run.
site/node_modules/.made: site/package.json site/package-lock.json
	@command -v npm >/dev/null || { echo "make: npm is not installed (Debian: apt install npm)" >&2; exit 1; }
	cd site && npm ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

$(VENV)/.site: locks/site.txt $(VENV)/.dev
	$(INSTALL) --require-hashes --requirement locks/site.txt
	@touch $@

.PHONY: site test-site
site: $(VENV)/.site site/node_modules/.made bytecode  ## build the site into build/site; FIGURES=file: what benchmarks/accuracy.py printed
	$(BIN)/python site/build_site.py $(if $(FIGURES),--figures $(FIGURES))

test-site: site  ## build the site and try it in Chromium
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q site/tests

.PHONY: bytecode
bytecode: | $(BIN)/python  # an editable install brings none, and some environments forbid Python to write it
	@$(BIN)/python -m compileall -q diagnose

clean:  ## remove everything that is made
	rm -rf $(VENV) .venvs dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer with venv was found; install one (Debian: apt install python3 python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The project itself has no hash: it is installed last, with what is there.
$(VENV)/.core: pyproject.toml locks/core.txt locks/build.txt | $(BIN)/python
	$(INSTALL) --require-hashes --requirement locks/core.txt --requirement locks/build.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml locks/dev.txt locks/build.txt | $(BIN)/python
	$(INSTALL) --require-hashes --requirement locks/dev.txt --requirement locks/build.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.core

$(VENV)/.tools: locks/tools.txt | $(BIN)/python
	$(INSTALL) --require-hashes --requirement locks/tools.txt
	@touch $@

locks: | $(BIN)/python  ## write locks/ (releases and hashes) anew, after a change of pyproject.toml or constraints.txt
	$(INSTALL) uv
	$(LOCK) pyproject.toml --output-file locks/core.txt
	echo 'hatchling>=1.27' | $(LOCK) - --output-file locks/build.txt
	$(LOCK) pyproject.toml --extra dev --output-file locks/dev.txt
	$(LOCK) pyproject.toml --extra serve --extra mcp --extra triage --extra packed --output-file locks/serve.txt
	printf 'uv\ncyclonedx-bom>=7\n' | $(LOCK) - --output-file locks/tools.txt
	printf 'mkdocs-material>=9.6,<10\njieba>=0.42\n' | $(LOCK) - --output-file locks/site.txt
