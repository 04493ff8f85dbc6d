# ssdlab: `make help` lists the verbs. Each does its own set-up, and again only what has changed.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
# Rust sources and manifests: what the native module is built from.
RUST := Cargo.toml Cargo.lock $(shell find crates -path '*/src/*.rs' -o -name Cargo.toml -o -name build.rs)

# A virtual environment knows its own path: one that was copied or moved here is made anew.
ifneq "$(shell cat .venv/home 2>/dev/null)" "$(CURDIR)"
$(shell rm -f .venv/stamp-*)
endif

# Two calls of pip at once would spoil the environment.
.NOTPARALLEL:
.PHONY: help demo test test-long test-guest test-fresh check bench lint build studio site fuzz wheels \
        deb release-check

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: .venv/stamp-native ## age a twin and a directory of this checkout; one HTML report
	@tools/demo.sh

test: .venv/stamp-native .venv/stamp-test ## Rust tests, then Python tests except those of guests and pages
	@tools/setup.sh test-tools
	@failed=0; \
	cargo test --workspace --quiet || failed=1; \
	cargo test --package ssdlab-wire --features model --lib --quiet model || failed=1; \
	PATH="$$PATH:/usr/sbin:/sbin" $(BIN)/python -m pytest -n $$(($$(nproc) + 1)) \
		-m "not pages" --ignore=tests/serve/test_guest.py || failed=1; \
	exit $$failed

PART ?= all
SEED ?= 0
test-long: .venv/stamp-native .venv/stamp-test ## pages, then proofs by number: an hour or two; make test-long PART=heal SEED=7
	@tools/setup.sh test-tools
	@tools/test_long.sh $(PART) $(SEED)

test-guest: .venv/stamp-native .venv/stamp-test ## Linux guests in QEMU on served twins: fetch their packages, test (an hour)
	@tools/setup.sh guest
	@PATH="$$PATH:/usr/sbin:/sbin" $(BIN)/python -m pytest --verbose tests/serve/test_guest.py

test-fresh: ## on bare Debian 12 and 13, as root and as a user: make demo, make test (needs root; hours)
	@failed=0; \
	for release in bookworm trixie; do for who in root user; do \
	    tools/fresh/machine.sh $$release $$who demo test || failed=1; \
	done; done; \
	exit $$failed

check: lint test ## lint, then test; the gate, .ci/run, also tests pages

bench: .venv/stamp-native .venv/stamp-test ## the side-by-side comparisons in bench/
	@tools/bench.sh

lint: .venv/stamp-lint ## formatters, linters, types, import arrows, size rules, licences
	@tools/setup.sh rust-lints
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/python -m ruff check --quiet
	$(BIN)/python -m ruff format --check --quiet
	$(BIN)/python -m mypy --strict --no-error-summary
	PYTHONPATH=python $(BIN)/lint-imports --no-logo
	$(BIN)/python tools/tidy.py
	$(BIN)/python tools/licences.py

studio: ## the WebAssembly module of the studio's page: python/ssdlab/studio/studio.wasm
	@tools/studio.sh

site: .venv/stamp-native .venv/stamp-site studio ## the documentation as web pages, in build/site
	@tools/site.sh

wheels: .venv/stamp-native .venv/stamp-release studio ## a release in build/dist: wheel, source archive, serve_twin (TARGET="...": for others)
	@tools/wheels.sh $(TARGET)

deb: .venv/stamp-native ## a package for Debian 13 in build/dist, from the wheel that is there
	@tools/deb.sh

release-check: .venv/stamp-native .venv/stamp-lint .venv/stamp-site ## what this commit lacks to be a release (see CONTRIBUTING.md)
	@$(BIN)/python tools/release_check.py

fuzz: TARGET ?= nbd_session
SECONDS ?= 600
fuzz: .venv/stamp-native ## one fuzz target for a while: make fuzz TARGET=profile SECONDS=600
	@fuzz/run.sh $(TARGET) $(SECONDS)

build: .venv/stamp-native ## only what the program needs: `.venv/bin/ssdlab` is ready to use

# One of pyproject.toml's dependency-groups (build, test, site, lint, release) in .venv.
.venv/stamp-%: constraints.txt pyproject.toml tools/setup.sh
	@tools/setup.sh system
	@tools/setup.sh packages $*
	@touch $@

.venv/stamp-native: .venv/stamp-build $(RUST)
	@tools/setup.sh native
	@touch $@
