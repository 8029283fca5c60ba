# Everything a developer runs. `make demo` and `make test` work on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
SEED ?= 1
SUITES ?=
MYPY_OPTIONS ?=

# the tests start hundreds of Python processes: without bytecode each of them compiles what it imports
export PYTHONDONTWRITEBYTECODE :=

.PHONY: audit demo test tests soak lint types interop bench bench-check sim docs site clean

# One environment that grows: each step installs only what it adds. The packages of the demo need no compiler; the
# tests compile the record codecs where there is one.
# uv takes a tenth of pip's time; pip where uv does not find the packages. uv reads no settings of pip: where they name an
# index or a proxy, as in a company, it would ask another index, or wait for one for minutes
CODECS := $(addprefix protocol/records/,fast.py consumed.py columns.py produced.py offset_columns.py)
PIP := $(PY) -m pip --disable-pip-version-check install -q --no-compile -c constraints.txt
UV := ! $(PY) -m pip config list | grep -E '(index|index-url|proxy)=' >/dev/null && $(VENV)/bin/uv pip install -q --python $(PY) -c constraints.txt
TESTED := $(VENV)/.test $(VENV)/.spark $(VENV)/.compiled

$(VENV)/.core: export ROTA_COMPILE := 0
$(VENV)/.core: pyproject.toml setup.py constraints.txt
	@"$(PYTHON)" -c 'import sys; old = "make needs Python 3.11 or newer, and this is %d.%d; give another, as in: make demo PYTHON=python3.12"; sys.exit(old % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	"$(PYTHON)" -m venv $(VENV)
	$(PIP) uv "setuptools>=80" || $(PIP) "setuptools>=80"
	$(UV) --no-build-isolation -e . || $(PIP) --no-build-isolation -e .
	@touch $@

$(VENV)/.demo: $(VENV)/.core
	$(UV) -r pyproject.toml --extra demo || $(PIP) 'rota[demo]'
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	$(UV) -r pyproject.toml --extra test || $(PIP) 'rota[test]'
	@touch $@

$(VENV)/.spark: $(VENV)/.test
	$(PIP) 'rota[pyspark]'
	@touch $@

$(VENV)/.compiled: $(VENV)/.test $(CODECS)
	$(PY) setup.py -q build_ext --inplace
	@touch $@

demo: $(VENV)/.demo
	$(PY) -m rota.demo

# the packages of Spark are fetched while the codecs are compiled. In a fresh clone a quarter of mypy's time would go into
# its cache: `make types` writes it
test:
	@$(MAKE) --no-print-directory -j2 $(TESTED)
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory -j2 types tests $(if $(wildcard .mypy_cache),,MYPY_OPTIONS=--cache-dir=/dev/null)

tests: $(TESTED)
	$(PY) -m tools.gate --whole -n 4 --durations=40 --durations-min=4

# what takes longer than `make test` may; its latest result is in docs/SOAK.md
soak: $(TESTED)
	$(PY) -m tools.soak $(SUITES)

# known vulnerabilities of the pinned packages; fails when the data cannot be had
audit:
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/pip --disable-pip-version-check install -q pip-audit==2.9.0
	$(PYTHON) -m tools.audit $(VENV)/audit/bin/pip-audit

lint: $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/.test
	nice $(VENV)/bin/mypy $(MYPY_OPTIONS) src/rota tools benchmarks
	nice $(VENV)/bin/lint-imports

# the differential test, other clients' suites and the client's own tests, on Rota and on a live Apache Kafka
interop: $(TESTED)
	ROTA_TEST_SUITES=all ROTA_SEEDS="2 3 4 0" $(PY) -m tools.gate tests/interop tests/client -n 2

bench: $(TESTED)
	$(PY) -m benchmarks
	$(PY) -m benchmarks.command_start
	$(PY) -m benchmarks.memory
	$(PY) -m benchmarks.tls
	$(PY) -m benchmarks.failover
	$(PY) -m benchmarks.spark

# fails if a row is slower than in an earlier release by more than a tenth: make bench-check AGAINST=WHEEL-OR-COMMIT
bench-check: $(TESTED)
	$(PY) -m benchmarks.check $(AGAINST)

sim: $(TESTED)
	PYTHONHASHSEED=0 $(PY) -m pytest tests/simulation -q --rota-seed $(SEED)

docs: $(TESTED)
	$(PY) -m rota.protocol.registry > docs/APIS.md
	$(PY) -m rota.coordinator.group.transitions > docs/GROUP_STATES.md
	$(PY) -m rota.coordinator.transaction.transitions > docs/TRANSACTION_STATES.md
	$(PY) -m rota.coordinator.config.page > docs/SETTINGS.md
	$(PY) -m rota.cli.page > docs/COMMANDS.md
	$(PY) -m rota.client.config_page > docs/CLIENT_SETTINGS.md
	$(PY) -m rota.client.network.error_actions_page > docs/CLIENT_ERRORS.md
	$(PY) -m rota.client.group.states > docs/CLIENT_STATES.md
	ROTA_PICTURE_SECONDS=2 $(PY) -m pytest tests/browser/test_pictures.py -q  # docs/images; needs chromium
	ROTA_DEMO_PICTURE=docs/demo.svg $(PY) -m pytest tests/docs/test_demo_picture.py -q

site: $(TESTED)
	$(VENV)/bin/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site *.egg-info
