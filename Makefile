# Every command a contributor or a pipeline needs. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(CURDIR)/.cache/prometheus/trixie/usr/bin
# At most four: the tests start real servers, which want a processor of their own.
WORKERS ?= auto --maxprocesses 4 --dist worksteal
# What pytest gets besides: make test PYTEST_ARGS="-k exposition"
PYTEST_ARGS ?=
LOCK := $(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header pyproject.toml

export PATH := $(TOOLS):$(PATH)

.PHONY: help
help: ## List the targets
	@sed -nE 's/^([a-z][a-z-]*):[^#]*## (.*)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

.PHONY: setup
setup: $(READY) ## Make .venv with the locked packages and this checkout in it

$(READY): requirements/dev.txt pyproject.toml scripts/make-venv.sh
	@scripts/make-venv.sh $(VENV) $(PYTHON)
	@touch $@

.PHONY: run
run: setup ## Start the demo: a stand-in engine and the sidecar on 127.0.0.1:9877
	@$(BIN)/specbudget demo --listen 127.0.0.1:9877

.PHONY: tools
tools: ## Fetch what tests need into .cache: Prometheus and its family in three ages, axe-core; root gets Chromium
	@scripts/fetch-prometheus-tools.sh promtool prometheus prometheus-alertmanager victoria-metrics
	@scripts/fetch-prometheus-tools.sh --suite bookworm prometheus prometheus-alertmanager victoria-metrics
	@scripts/fetch-prometheus-tools.sh --suite sid promtool prometheus prometheus-alertmanager victoria-metrics || \
	  echo "sid moves and could not be fetched: what needs the newest release is skipped" >&2
	@scripts/need-chromium.sh
	@scripts/fetch-axe-core.sh || [ -z "$${CI:-}" ]

.PHONY: test
test: setup tools check ## Run every check and every test
	@$(BIN)/pytest -n $(WORKERS) $(PYTEST_ARGS)

.PHONY: check
check: setup ## Run the checks that need no tests: style, types, layers, generated files, Dockerfile
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m specbudget.generate.reference --check
	@$(BIN)/specbudget generate all --budget examples/budget.yaml --out . --check
	@$(BIN)/hadolint Dockerfile

.PHONY: format
format: setup ## Format the code and mend what ruff can mend
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

.PHONY: generate
generate: setup ## Write the generated files anew
	@$(BIN)/python -m specbudget.generate.reference
	@$(BIN)/specbudget generate all --budget examples/budget.yaml --out .

.PHONY: lock
lock: setup ## Write the lock files anew from pyproject.toml; LOCK_ARGS=--upgrade takes the newest
	@$(LOCK) $(LOCK_ARGS) --output-file requirements/runtime.txt
	@$(LOCK) $(LOCK_ARGS) --group dev --output-file requirements/dev.txt

.PHONY: bench
bench: setup ## Measure reading speed, and the processor time of the request log against mtail's
	@$(BIN)/python bench/exposition.py
	@$(BIN)/python bench/checkpoint.py
	@command -v mtail >/dev/null || scripts/fetch-prometheus-tools.sh mtail
	@$(BIN)/python bench/ingest.py

.PHONY: week
week: setup tools ## Judge a simulated week, healthy and with incidents, by Prometheus's own rule engine (half an hour)
	@$(BIN)/pytest -n $(WORKERS) tests/week/prometheus_week.py $(PYTEST_ARGS)

.PHONY: alerts-live
alerts-live: setup tools ## Follow every scenario to the message for 18 minutes, nothing quickened; tells what came when
	@$(BIN)/pytest -q -s tests/e2e/live_alerts.py $(PYTEST_ARGS)

.PHONY: preview
preview: ## Draw the dashboards with Grafana's widgets on recorded data, for docs/dashboards-in-pictures.md; PREVIEW_ARGS=--open shows them
	@scripts/fetch-prometheus-tools.sh promtool prometheus
	@dashboards/preview/preview.sh $(PREVIEW_ARGS)

.PHONY: clean
clean: ## Remove .venv, caches and build output
	@rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	@find exporter tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
