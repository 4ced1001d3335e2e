# make demo and make test need python3 (3.11 or newer) and make, nothing else. What takes more than a few lines is in .ci/.
export PYTHON ?= python3
export VENV ?= .venv
export REPLAY ?= .venv-replay
# A list of versions with hashes to install instead of what pyproject.toml allows; .ci/run sets it.
export LOCK ?=
BIN := $(VENV)/bin
# Half of a test's time is waiting, for turns and for the disk.
export PARALLEL := --numprocesses $(shell expr 2 '*' $$(nproc)) --dist worksteal
# What tests import is compiled once, wherever they run.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test debian installed acceptance check format docs site publish pictures bench league faults dst mutants fuzz chaos nightly figures dist lock sbom clean parts axe frameworks corpus pandas

help:  ## show what can be made
	@awk -F':.*## ' '/^[a-z ]+:.*## /{printf "make %-12s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/run.stamp  ## crawl a synthetic web on loopback, with progress and a report
	$(BIN)/gossamer demo

test: $(VENV)/dev.stamp  ## run the tests, or those of MARKS: they contact loopback only
	sh .ci/in-memory $(BIN)/python -m pytest $(PARALLEL) $(if $(MARKS),-m "$(MARKS)")

debian: $(VENV)/dev.stamp  ## run the tests of what parses, and a crawl, with Debian's own Python
	@sh .ci/debian $(or $(DEBIAN),/usr/bin/python3) $(or $(VENV_DEBIAN),.venv-debian)

installed: $(VENV)/dev.stamp $(VENV)/docs.stamp  ## install the real parts that make acceptance needs
	@sh .ci/parts debian pywb axe corpus pandas grafana frameworks

acceptance: installed  ## run the checks against real parts from Debian, installing what is missing; of long ones a seventh, those of today
	@sh .ci/acceptance $(GROUPS)

check: $(VENV)/dev.stamp  ## the fast inner loop: format, lint, types, import contracts, spelling, tests
	@sh .ci/lint
	sh .ci/in-memory $(BIN)/python -m pytest -q $(PARALLEL)

format: $(VENV)/dev.stamp  ## lay out the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/run.stamp  ## write the pages that are made from the code and its tests, manual pages too
	set -e; for module in promises reference manual tables; do $(BIN)/python -m tests.$$module; done

site: $(VENV)/docs.stamp  ## build the documentation site in site/; a broken link stops it
	$(BIN)/zensical build --clean --strict
publish: $(VENV)/docs.stamp  ## build the site of this version into FOLDER, shown at URL, beside other versions
	$(BIN)/python -m tests.publish "$(FOLDER)" "$(URL)"
pictures: $(VENV)/dev.stamp  ## make the pictures of the documentation: a real crawl, in a terminal and in Chromium
	$(BIN)/python benchmarks/pictures.py

bench: $(VENV)/bench.stamp  ## measure; one benchmark at a time
	set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

# WCXB is the folder `dev` of the benchmark of main text; without it that figure is left out.
league: $(VENV)/dev.stamp  ## measure Gossamer beside other crawlers: .parts/league/league.html
	@sh .ci/parts debian league
	$(BIN)/python benchmarks/league/league.py --rounds $(or $(ROUNDS),3) $(if $(WCXB),--wcxb "$(WCXB)")

TRIALS ?= 1000
faults dst: $(VENV)/dev.stamp  ## crawl TRIALS simulated worlds with kills (deterministic), and look for broken promises
	$(BIN)/python -m tests.faults.trial --trials $(TRIALS)
	$(BIN)/python -m tests.faults.trial --several --trials $(TRIALS)

mutants: $(VENV)/dev.stamp  ## change COUNT places in the decisions of a crawl, one at a time, and say which no test finds
	@sh .ci/parts mutation
	PYTHONPATH=.parts/mutation sh .ci/in-memory $(BIN)/python -m tests.mutation --seed $(or $(SEED),1) --count $(or $(COUNT),300) --of "$(OF)" --beside "$(BESIDE)"
fuzz: $(VENV)/dev.stamp  ## fuzz what reads bytes, for SECONDS
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),120)
chaos: $(VENV)/dev.stamp parts  ## crawl real servers under faults of processes, disk, network and clock, for SECONDS
	$(BIN)/python -m tests.acceptance.chaos --seconds $(or $(SECONDS),3600)
nightly: installed  ## all long checks, and four hours of fault trials, their mutants, fuzzing, chaos, and a drill of a cluster
	@sh .ci/nightly

figures: $(VENV)/run.stamp  ## print the figures of the code's structure, and of a page's way through it
	@$(BIN)/python benchmarks/figures.py
	@$(BIN)/python benchmarks/page_way.py

dist: $(VENV)/dev.stamp  ## build wheel and sdist in dist/; the same commit and SOURCE_DATE_EPOCH make the same bytes
	$(BIN)/python -m hatchling build --clean
lock: $(VENV)/release.stamp  ## write the versions for CI and for the container; those that still fit are kept
	@sh .ci/lock
sbom: $(VENV)/release.stamp  ## write the bill of materials of what the container installs: dist/gossamer.cdx.json
	@sh .ci/sbom

clean:  ## remove what was made here: environment, caches, the demo's output
	rm -rf $(VENV) $(REPLAY) $(or $(VENV_DEBIAN),.venv-debian) demo build dist site .cache .parts .*_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

parts axe frameworks corpus pandas: $(VENV)/dev.stamp
	@sh .ci/parts debian $(filter-out parts,$@)

.PRECIOUS: $(BIN)/python $(VENV)/%.stamp
$(VENV)/%.stamp: $(BIN)/python pyproject.toml
	@sh .ci/install $*
$(BIN)/python:
	@sh .ci/make-venv "$(PYTHON)" "$(VENV)"
