# make demo and make test need python3 (3.11 or newer) and make, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Pywb lives in an environment of its own: it needs a brotli that is too old for everything else.
REPLAY ?= .venv-replay
export REPLAY
# A list of versions with hashes to install instead of what pyproject.toml allows; .ci/run sets it.
LOCK ?=
APT := $(shell [ "$$(id -u)" = 0 ] || echo sudo) apt-get

# Real parts that `make acceptance` runs against, and a file by which each is known to be there.
PARTS := nginx-light:/usr/sbin/nginx python3-doc:/usr/share/doc/python3-doc/html/index.html \
         postgresql-doc:/usr/share/doc/postgresql-doc/copyright \
         gcc:/usr/bin/gcc libc6-dev:/usr/include/stdio.h wget:/usr/bin/wget pygopherd:/usr/sbin/pygopherd \
         chromium:/usr/bin/chromium chromium-headless-shell:/usr/bin/chromium-headless-shell iproute2:/usr/sbin/ip curl:/usr/bin/curl \
         groff-base:/usr/bin/groff prometheus:/usr/bin/promtool \
         python3-venv:/usr/share/doc/python3-venv/copyright npm:/usr/bin/npm

# The rules by which a page is checked for contrast, keyboard and screen reader: a package of npm.
AXE := axe-core-4.14.1

# What makes the pages of tests/acceptance/mixed.py in a browser, and what replays a WACZ in one, from npm.
FRAMEWORKS := vue@3.5.13 vue-router@4.5.0 react@18.3.1 react-dom@18.3.1 solid-js@1.9.5 replaywebpage@2.5.3

# Half of a test's time is waiting, for turns and for the disk. What wants the machine for itself is marked `alone`, what
# wants it not to be at its limit `paced`. Of these, tests that look whether a browser is left have one worker.
PARALLEL := --numprocesses $(shell expr 2 '*' $$(nproc)) --dist worksteal
# Of long tests, those whose day it is (tests/sampled.py).
TODAY := (today or not long)
# What tests import is compiled once, wherever they run.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test debian installed acceptance check format docs site publish pictures bench league faults dst mutants fuzz chaos nightly figures dist lock sbom clean axe corpus pandas frameworks

help:  ## show what can be made
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "make %-12s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/run.stamp  ## crawl a synthetic web on loopback, with progress and a report
	$(BIN)/gossamer demo

test: $(VENV)/dev.stamp  ## run the tests: they contact loopback only
	sh .ci/in-memory $(BIN)/python -m pytest $(PARALLEL)

# Debian's own Python has faults that later ones have not: what parses pages, and a crawl, hold there too. It has an
# environment where it is another version than that of the other tests.
DEBIAN ?= /usr/bin/python3
VENV_DEBIAN ?= .venv-debian
version = $$($(1) -c 'import sys; print(*sys.version_info[:3])')
debian: $(VENV)/dev.stamp  ## run the tests of what parses, and a crawl, with Debian's own Python
	@if [ ! -x $(DEBIAN) ] || [ "$(call version,$(DEBIAN))" = "$(call version,$(BIN)/python)" ]; then \
		echo "$(DEBIAN) is the Python of the other tests, or not there"; \
	else \
		$(MAKE) --no-print-directory VENV=$(VENV_DEBIAN) PYTHON=$(DEBIAN) $(VENV_DEBIAN)/dev.stamp && \
		$(VENV_DEBIAN)/bin/python -m pytest -q -p no:cacheprovider tests/process \
			tests/growth/test_patterns.py tests/cli/test_crawling.py::test_a_crawl_runs_to_its_end_and_says_where_it_lies; \
	fi

installed: $(VENV)/dev.stamp $(VENV)/docs.stamp $(REPLAY)/pywb.stamp parts axe corpus pandas frameworks  ## install the real parts that make acceptance needs

acceptance: installed  ## run the checks against real parts from Debian, installing what is missing; of long ones a seventh, those of today
	failed=0; sh .ci/in-memory $(BIN)/python -m pytest -m "heavy and not acceptance and $(TODAY)" $(PARALLEL) || failed=1; \
	$(BIN)/python -m pytest -m "acceptance and alone and $(TODAY)" --timeout 600 || failed=1; \
	$(BIN)/python -m pytest -m "acceptance and paced and $(TODAY)" --timeout 600 --numprocesses 2 || failed=1; \
	$(BIN)/python -m pytest -m "acceptance and not alone and not paced and $(TODAY)" --timeout 600 $(PARALLEL) || failed=1; \
	exit $$failed

axe: parts
	[ -f .axe/package/axe.min.js ] || \
	{ mkdir -p .axe && cd .axe && npm pack --silent $(subst core-,core@,$(AXE)) && tar xzf $(AXE).tgz; }

frameworks: parts
	mkdir -p .parts/frameworks; cd .parts/frameworks; for one in $(FRAMEWORKS); do \
		name=$${one%@*}; [ -f $$name/package.json ] && continue; \
		npm pack --silent $$one && mkdir -p $$name && tar xzf $$name-$${one#*@}.tgz --strip-components 1 -C $$name || exit 1; \
	done

# robots.txt files of 4,231 real sites. They belong to the sites, so the repository has their hashes alone.
corpus: $(VENV)/dev.stamp
	[ -d .parts/robots ] || \
	{ mkdir -p .parts/sdist && $(BIN)/python -m pip download -q --no-deps --no-binary :all: -d .parts/sdist protego==0.7.0 && \
	tar xzf .parts/sdist/protego-0.7.0.tar.gz -C .parts/sdist && mv .parts/sdist/protego-0.7.0/tests/test_data .parts/robots; }

# Not in the environment of the other tests: where pandas is installed, pyarrow loads it in every crawl.
pandas: $(VENV)/dev.stamp
	[ -d .parts/pandas/pandas ] || $(BIN)/python -m pip install -q --no-deps --target .parts/pandas pandas==3.1.1

check: $(VENV)/dev.stamp  ## the fast inner loop: format, lint, types, import contracts, spelling, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	sh .ci/in-memory $(BIN)/python -m pytest -q $(PARALLEL)

format: $(VENV)/dev.stamp  ## lay out the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/run.stamp  ## write the pages that are made from the code and its tests, manual pages too
	$(BIN)/gossamer config schema --markdown > docs/reference/configuration.md.new
	mv docs/reference/configuration.md.new docs/reference/configuration.md
	$(BIN)/python -m tests.promises
	$(BIN)/python -m tests.manual
	$(BIN)/python -m tests.tables

site: $(VENV)/docs.stamp  ## build the documentation site in site/; a broken link stops it
	$(BIN)/zensical build --clean --strict

publish: $(VENV)/docs.stamp  ## build the site of this version into FOLDER, shown at URL, beside other versions
	$(BIN)/python -m tests.publish "$(FOLDER)" "$(URL)"

pictures: $(VENV)/dev.stamp  ## make the pictures of the documentation: a real crawl, in a terminal and in Chromium
	$(BIN)/python benchmarks/pictures.py

bench: $(VENV)/bench.stamp  ## measure; one benchmark at a time
	set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

# WCXB is the folder `dev` of the benchmark of main text; without it that figure is left out.
ROUNDS ?= 3
league: $(VENV)/dev.stamp parts  ## measure Gossamer beside other crawlers: .parts/league/league.html
	[ -x /usr/bin/wget2 ] || $(APT) install -y -qq --no-install-recommends wget2 || echo "wget2 is left out"
	[ -x .parts/league/python/bin/crawlee ] || { sh .ci/make-venv "$(PYTHON)" .parts/league/python && \
		.parts/league/python/bin/python -m pip -q install 'scrapy>=2.14' 'crawlee[parsel]>=1' selectolax uvloop aiohttp; } || \
		echo "Scrapy and crawlee (Python) are left out"
	[ -d .parts/league/node/node_modules/@crawlee ] || \
		npm install --silent --no-audit --no-fund --prefix .parts/league/node @crawlee/cheerio@3 || echo "crawlee (Node) is left out"
	$(BIN)/python benchmarks/league/league.py --rounds $(ROUNDS) $(if $(WCXB),--wcxb "$(WCXB)")

TRIALS ?= 1000
faults: $(VENV)/dev.stamp  ## crawl TRIALS simulated worlds with kills, and look for broken promises
	$(BIN)/python -m gossamer.lab.faults.trial --trials $(TRIALS)
	$(BIN)/python -m gossamer.lab.faults.trial --several --trials $(TRIALS)

dst: faults  ## the same: deterministic simulation testing

SECONDS ?= 120
fuzz: $(VENV)/dev.stamp  ## fuzz what reads bytes, for SECONDS
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

COUNT ?= 300
SEED ?= 1
mutants: $(VENV)/dev.stamp  ## change COUNT places in the decisions of a crawl, one at a time, and say which no test finds
	[ -d .parts/mutation ] || $(PIP) install --no-deps --target .parts/mutation \
		cosmic-ray==8.7.0 coverage==7.17.4 parso==0.8.7 stevedore==5.10.0
	PYTHONPATH=.parts/mutation sh .ci/in-memory $(BIN)/python -m tests.mutation --seed $(SEED) --count $(COUNT)

chaos: SECONDS = 3600
chaos: $(VENV)/dev.stamp parts  ## crawl real servers under faults of processes, disk, network and clock, for SECONDS
	$(BIN)/python -m tests.acceptance.chaos --seconds $(SECONDS)

nightly: export GOSSAMER_EVERY = 1
nightly: acceptance  ## all long checks, and three hours of fault trials, their mutants, fuzzing and chaos
	$(BIN)/python -m gossamer.lab.faults.trial --first $$(date +%s) --trials 8000
	$(BIN)/python -m gossamer.lab.faults.trial --several --first $$(date +%s) --trials 3000
	$(BIN)/python -m tests.lab.mutants --trials 60
	$(BIN)/python -m tests.fuzz --seconds 1800
	$(BIN)/python -m tests.acceptance.chaos --seconds 3600

figures: $(VENV)/run.stamp  ## print the figures of the code's structure, and of a page's way through it
	@$(BIN)/python benchmarks/figures.py
	@$(BIN)/python benchmarks/page_way.py

dist: $(VENV)/dev.stamp  ## build wheel and sdist in dist/; the same commit and SOURCE_DATE_EPOCH make the same bytes
	$(BIN)/python -m hatchling build --clean

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock: $(VENV)/release.stamp  ## write the versions for CI and for the container; those that still fit are kept
	$(COMPILE) pyproject.toml --extra all --extra dev --extra docs --output-file .ci/requirements.txt
	$(COMPILE) pyproject.toml --extra all --constraints .ci/requirements.txt --output-file deploy/requirements.txt

sbom: $(VENV)/release.stamp  ## write the bill of materials of what the container installs: dist/gossamer.cdx.json
	sh .ci/make-venv "$(PYTHON)" build/locked
	build/locked/bin/python -m pip --quiet install --require-hashes --requirement deploy/requirements.txt
	build/locked/bin/python -m pip --quiet install --no-deps .
	mkdir -p dist
	$(BIN)/cyclonedx-py environment build/locked --pyproject pyproject.toml --output-reproducible --validate \
		--output-file dist/gossamer.cdx.json
	rm -rf build/locked

clean:  ## remove what was made here: environment, caches, the demo's output
	rm -rf $(VENV) $(REPLAY) $(VENV_DEBIAN) demo build dist site .cache .parts .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Parts that are still missing after this make their checks fail: nothing is skipped in silence.
.PHONY: parts
parts:
	@missing=; for part in $(PARTS); do [ -e "$${part#*:}" ] || missing="$$missing $${part%%:*}"; done; \
	if [ -n "$$missing" ]; then \
		echo "installing$$missing"; \
		$(APT) update -qq && DEBIAN_FRONTEND=noninteractive $(APT) install -y -qq --no-install-recommends $$missing; \
	fi

# One recipe for all: each set holds the ones before it.
$(VENV)/run.stamp: EXTRA :=
$(VENV)/dev.stamp: EXTRA := [dev]
$(VENV)/bench.stamp: EXTRA := [dev,bench]
$(VENV)/docs.stamp: EXTRA := [dev,docs]
$(VENV)/release.stamp: EXTRA := [dev,release]
# What is locked is compiled where it is imported: pip compiles all of it, one file after another.
$(VENV)/%.stamp: $(VENV)/bin/python pyproject.toml
	@echo "installing gossamer$(EXTRA) into $(VENV)"
	@if [ -z "$(LOCK)" ]; then $(PIP) install --editable '.$(EXTRA)'; else \
		$(PIP) install --no-compile --require-hashes --requirement "$(LOCK)" && \
		$(PIP) install --no-deps --no-build-isolation --editable .; \
	fi
	@touch $@

$(REPLAY)/pywb.stamp: $(REPLAY)/bin/python
	@echo "installing pywb into $(REPLAY)"
	@$(REPLAY)/bin/python -m pip --quiet --disable-pip-version-check install 'pywb>=2.10,<3' 'setuptools<81'
	@touch $@

$(REPLAY)/bin/python:
	@sh .ci/make-venv "$(PYTHON)" "$(REPLAY)"

.PRECIOUS: $(REPLAY)/bin/python $(VENV)/bin/python $(VENV)/%.stamp
$(VENV)/bin/python:
	@sh .ci/make-venv "$(PYTHON)" "$(VENV)"
