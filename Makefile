# Two commands matter: `make demo` and `make test`. Each installs what it needs into .venv first.

PYTHON ?= python3
PIP = .venv/bin/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test format bench lock clean

demo: .venv/run.stamp
	.venv/bin/discreet demo --output out

test: .venv/dev.stamp
	.venv/bin/ruff format --check src tests bench docs/theory/*.py
	.venv/bin/ruff check src tests bench docs/theory/*.py
	.venv/bin/mypy
	.venv/bin/pytest -n 2 --dist loadfile

format: .venv/dev.stamp
	.venv/bin/ruff format src tests bench docs/theory/*.py
	.venv/bin/ruff check --fix src tests bench docs/theory/*.py

bench: .venv/dev.stamp
	.venv/bin/python -m bench

lock: .venv/dev.stamp
	$(PIP) pip-tools
	cd requirements && for part in run dev; do \
		../.venv/bin/pip-compile --quiet --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
			--no-annotate --strip-extras --generate-hashes --output-file $$part.txt $$part.in; done

clean:
	rm -rf .venv out dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/run.stamp: requirements/run.txt pyproject.toml | .venv/bin/python
	$(PIP) -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

.venv/dev.stamp: requirements/dev.txt .venv/run.stamp
	$(PIP) -r requirements/dev.txt
	touch $@
