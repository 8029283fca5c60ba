# Everything a developer runs. `make demo` and `make test` work on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
SEED ?= 1

.PHONY: demo test lint types interop bench sim docs clean

$(VENV)/.ready: pyproject.toml setup.py constraints.txt protocol/records/fast.py protocol/records/consumed.py protocol/records/columns.py
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[test,spark]'
	@touch $@

demo: $(VENV)/.ready
	$(PY) -m tools.demo

test: $(VENV)/.ready lint types
	$(PY) -m tools.gate -n 2 --dist loadgroup

lint: $(VENV)/.ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/.ready
	$(VENV)/bin/mypy src/rota tools benchmarks
	$(VENV)/bin/lint-imports

# the differential test, the strangers' suites and the client's own tests, on Rota and on a live Apache Kafka
interop: $(VENV)/.ready
	ROTA_STRANGERS=all ROTA_SEEDS="2 3 4 0" $(PY) -m tools.gate tests/interop tests/client -n 2 --dist loadgroup

bench: $(VENV)/.ready
	$(PY) -m benchmarks
	$(PY) -m benchmarks.spark

sim: $(VENV)/.ready
	$(PY) -m pytest tests/simulation -q --rota-seed $(SEED)

docs: $(VENV)/.ready
	$(PY) -m rota.protocol.registry > docs/APIS.md
	$(PY) -m rota.coordinator.group.states > docs/GROUP_STATES.md
	$(PY) -m rota.coordinator.config.page > docs/SETTINGS.md
	$(PY) -m rota.client.config_page > docs/CLIENT_SETTINGS.md
	$(PY) -m rota.client.network.error_actions_page > docs/CLIENT_ERRORS.md
	$(PY) -m rota.client.group.states > docs/CLIENT_STATES.md

clean:
	rm -rf $(VENV) build dist *.egg-info
