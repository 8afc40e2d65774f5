# What developers and CI run. Each target sets up what it needs on Debian 12 or newer; nothing has to be prepared.
.DEFAULT_GOAL := help
.PHONY: help demo test check mutants test-crowd test-cluster test-vm validate-vm agent-release bench lock fmt clean

PYTHON := .venv/bin/python
READY := .venv/.installed

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 15

demo: $(READY) ## A fleet of five with a rollout that you can watch; DEMO_ARGS=--exit ends when it has converged
	@tools/system-packages demo
	@$(PYTHON) -m demo $(DEMO_ARGS)

test: $(READY) ## All tests, on PostgreSQL and (where they touch the database) on SQLite; TEST_ARGS go to pytest
	@tools/system-packages test
	@tools/test $(TEST_ARGS)

check: $(READY) ## Style, types, imports, migrations, deployment settings, documents
	@tools/check

mutants: $(READY) ## Break the code on purpose and show which test notices; MUTANTS_ARGS=ID runs one
	@tools/system-packages test
	@$(PYTHON) -m tests.mutants $(MUTANTS_ARGS)

test-crowd: $(READY) ## A task run over a thousand simulated devices; TEST_ARGS go to pytest
	@tools/system-packages test
	@$(PYTHON) -m pytest tests/crowd --durations=3 $(TEST_ARGS)

test-cluster: $(READY) ## The fleet through kubectl, on a real kube-apiserver; builds that once, in ten minutes
	@tools/system-packages test cluster
	@tools/test-cluster $(TEST_ARGS)

test-vm: $(READY) ## Agent and updater on disposable Debian machines with systemd; TEST_ARGS go to pytest
	@tools/system-packages vm
	@tools/test-vm $(TEST_ARGS)

validate-vm: $(READY) ## The same under qemu, with kernels of its own; writes the record to docs/validation
	@tools/system-packages vm validate
	@$(PYTHON) tools/validate_vm.py $(VALIDATE_ARGS)

agent-release: $(READY) ## The archive that devices install, in dist/; RELEASE_ARGS=--version=1.2.3 names it otherwise
	@tools/system-packages release
	@$(PYTHON) tools/release/build.py $(RELEASE_ARGS)

bench: $(READY) ## Speed and memory, each as a ratio against a floor measured in the same run
	@tools/system-packages test bench
	@$(PYTHON) -m bench $(BENCH_ARGS)

lock: $(READY) ## Resolve requirements.lock from pyproject.toml; LOCK_ARGS=--upgrade takes newer versions
	@.venv/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
		--no-header --no-emit-index-url --quiet --output-file requirements.lock $(LOCK_ARGS)

fmt: $(READY) ## Format the code and mend what ruff can mend
	@.venv/bin/ruff check --fix --exit-zero --quiet .
	@.venv/bin/ruff format .

clean: ## Remove the environment and all caches; keep var/, the embedded default's data
	@rm -rf .venv .cache .demo .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml tools/python-environment
	@tools/python-environment
