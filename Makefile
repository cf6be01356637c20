# Two commands matter: `make demo` and `make test`. Each installs what it needs into .venv first.
# `make test` is what a change can break; `make test-all` is the rest: storms, many draws, pages, a browser, and properties
# with many more examples. `make test ARGS="-k name"` runs some of them.

PYTHON ?= python3
PIP = .venv/bin/python -m pip install --quiet --disable-pip-version-check
# One worker more than there are processors: some tests wait.
PARALLEL = -n $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 8 ] && echo $$((n + 1)) || echo 8) --dist worksteal
PYTEST = .venv/bin/pytest $(PARALLEL)
COVERING = $(addprefix tests/,trusted accounting attacks learning neighbours plan reference selection textbook together)

.PHONY: demo check test test-all asked cov mutants docs format bench lock clean

demo: .venv/run.stamp
	.venv/bin/discreet demo --output out

check: .venv/dev.stamp
	.venv/bin/ruff format --check src tests bench docs/theory/*.py
	.venv/bin/ruff check src tests bench docs/theory/*.py
	.venv/bin/mypy

# Files of tests lie in memory where there is room for them: ledgers then wait for no disk.
test: export PYTEST_DEBUG_TEMPROOT ?= $(shell [ "$$(df --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 4000000 ] \
	2>/dev/null && echo /dev/shm || echo $${TMPDIR:-/tmp})
test: check
	$(PYTEST) -m "not (storm or power or outside)" $(ARGS)

test-all: .venv/dev.stamp
	$(PYTEST) -m "storm or power or outside or hypothesis" --hypothesis-profile thorough $(ARGS)

# Asks the questions of tests/asked, and prints how many are answered as plain SQL answers them.
asked: .venv/dev.stamp
	.venv/bin/python -m tests.asked $(ARGS)

# The tests of the parts that privacy rests on, and how many of the parts' lines they run: 95.8 % when the floor was set.
cov: .venv/dev.stamp
	rm -f build/coverage*
	.venv/bin/python -m coverage run -m pytest $(PARALLEL) -m "not (storm or power or outside)" $(COVERING) $(ARGS)
	.venv/bin/python -m coverage combine --quiet
	.venv/bin/python -m coverage report --fail-under=95

# Changes ring A in one place at a time, and fails where no test notices: `make mutants ONLY=threshold`, a module or several.
mutants: .venv/dev.stamp
	nice -n 19 .venv/bin/python tests/mutants_of_ring_a.py $(ONLY) $(ARGS)

docs: .venv/dev.stamp
	.venv/bin/python tests/lib/reference_pages.py build/docs

format: .venv/dev.stamp
	.venv/bin/ruff format src tests bench docs/theory/*.py
	.venv/bin/ruff check --fix src tests bench docs/theory/*.py

bench: .venv/dev.stamp
	.venv/bin/python -m bench

lock: .venv/dev.stamp
	$(PIP) pip-tools
	cd requirements && for part in run dev server; do \
		../.venv/bin/pip-compile --quiet --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
			--no-annotate --strip-extras --generate-hashes --output-file $$part.txt $$part.in; done

clean:
	rm -rf .venv out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/run.stamp: requirements/run.txt pyproject.toml | .venv/bin/python
	$(PIP) -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

.venv/dev.stamp: requirements/dev.txt tests/lib/axe/package-lock.json .venv/run.stamp
	$(PIP) -r requirements/dev.txt
	npm ci --silent --prefix tests/lib/axe || echo "axe-core is not installed: nothing looks at the accessibility of pages" >&2
	touch $@
