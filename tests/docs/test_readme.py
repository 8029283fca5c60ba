"""Every command and every example of the README, run as a reader would."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.test_client_page import delete_all_records

from rota.testing import running_broker

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    shlex.split(line, comments=True) for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if line
]
EXAMPLES = [text for kind, text in BLOCKS if kind == "python"]
ADDRESS = "127.0.0.1:9092"
ROTA = str(Path(sys.executable).with_name("rota"))
STOP_S = 20

# the test that runs each command; a command that is missing here fails the first test
HELD_BY = {
    "make demo": "test_make_demo_shows_the_story",
    "make test": "this run: .ci/run calls it",
    "make lint": "make test, which runs it first",
    "make types": "make test, which runs it first",
    "make site": "tests/docs/test_site.py",
    "make bench": "test_the_benchmarks_run",
    "pip install": "tests/packaging/test_wheel.py",
    "rota serve": "test_the_serve_command_of_the_readme_works",
    "rota check": "test_rota_check_finds_a_broker",
    "rota demo": "tests/packaging/test_wheel.py",
    "rota version": "tests/packaging/test_wheel.py",
    "rota topics": "tests/cli/test_topics.py",
    "rota groups": "tests/cli/test_groups.py",
    "rota produce": "tests/cli/test_produce.py",
    "rota consume": "tests/cli/test_produce.py",
    "rota sniff": "tests/cli/test_sniff.py",
    "docker compose": "tests/packaging/test_containers.py",
}


def name(command: list[str]) -> str:
    return " ".join(command[:2])


def recipe(target: str) -> str:
    """What make would run for the target, without running it."""
    command = ["make", "--no-print-directory", "--dry-run", "--always-make", target]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_every_command_of_the_readme_is_run_by_a_test() -> None:
    assert {name(command) for command in COMMANDS} == set(HELD_BY)


def test_make_test_runs_lint_types_and_the_tests() -> None:
    commands = recipe("test")
    for part in ("ruff check", "ruff format --check", "mypy", "lint-imports", "tools.gate"):
        assert part in commands


@pytest.mark.parametrize("setting", ["", "PIP_INDEX_URL", "PIP_NO_INDEX", "PIP_PROXY"])
def test_make_uses_pip_where_its_settings_say_from_where(setting: str) -> None:
    step = next(line for line in recipe("demo").splitlines() if "--extra demo" in line)
    condition = step.partition(" && ")[0].replace(".venv/bin/python", sys.executable)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    given = {"PIP_CONFIG_FILE": os.devnull, **({setting: "1"} if setting else {})}
    done = subprocess.run(["sh", "-c", condition], cwd=ROOT, env=kept | given, check=False)
    assert (done.returncode == 0) == (not setting), "whether uv is used"


def test_make_demo_installs_neither_spark_nor_the_packages_of_the_tests() -> None:
    commands = recipe("demo")
    assert "rota[demo]" in commands
    assert "rota[test]" not in commands
    assert "rota[spark]" not in commands


def test_make_site_takes_warnings_as_errors() -> None:
    assert recipe("site").splitlines()[-1].endswith("mkdocs build --strict")


def test_make_demo_shows_the_story() -> None:
    last = recipe("demo").splitlines()[-1].split()
    assert last[1:] == ["-m", "rota.demo"]
    done = subprocess.run(
        [sys.executable, *last[1:]], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert re.search(r"^Every one of [\d,]+ lines was consumed at least once", done.stdout, re.MULTILINE)
    assert "killed" in done.stdout
    assert "Not installed" not in done.stdout, "make demo installs every client"


@pytest.mark.parametrize("command", [item for item in COMMANDS if name(item) == "rota serve"], ids=" ".join)
def test_the_serve_command_of_the_readme_works(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("num.partitions=2\n")
    read, write = os.pipe()
    # the same command on a free port
    on_free_port = [*(word.replace(ADDRESS, "127.0.0.1:0") for word in command), "--ready-fd", str(write)]
    if "--listen" not in on_free_port:
        on_free_port += ["--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [ROTA, *on_free_port[1:]], cwd=tmp_path, pass_fds=[write], stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    with os.fdopen(read) as ready:
        address = ready.readline()
    process.terminate()
    _, log = process.communicate(timeout=STOP_S)
    assert address.startswith("127.0.0.1:"), log
    assert process.returncode == 0, log


def test_rota_check_finds_a_broker(broker: str) -> None:
    (command,) = [item for item in COMMANDS if name(item) == "rota check"]
    arguments = [word.replace(ADDRESS, broker) for word in command[1:]]
    assert subprocess.run([ROTA, *arguments], timeout=STOP_S, capture_output=True, check=False).returncode == 0


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with running_broker() as running:
        address = running.bootstrap_servers
        yield address


def test_the_examples_run(broker: str, capsys: pytest.CaptureFixture[str]) -> None:
    clients, _, fixture = EXAMPLES
    exec(compile(clients.replace(ADDRESS, broker), "README", "exec"), {"__name__": "readme"})  # noqa: S102
    assert "topic1 0 0 b'hello'" in capsys.readouterr().out
    asyncio.run(delete_all_records(broker))
    exec(compile(clients.replace(ADDRESS, broker), "README", "exec"), {"__name__": "readme"})  # noqa: S102
    assert "topic1 0 1 b'hello'" in capsys.readouterr().out
    assert "rota_broker" in fixture


def test_the_spark_example_is_that_of_the_spark_page() -> None:
    assert EXAMPLES[1].strip() in (ROOT / "docs" / "SPARK.md").read_text(), "tests/docs/test_spark_page.py runs it"


def test_the_test_of_the_readme_passes(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(EXAMPLES[2])
    options = ["-q", "-p", "rota.testing.plugin", "-p", "no:cacheprovider", "-p", "no:randomly"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_benchmarks_run() -> None:
    """One quick row on Rota alone: that they run, not how fast."""
    command = [sys.executable, "-m", "benchmarks", "--rota-only", "--rounds", "1", "--seconds", "0.2", "heartbeats, 4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "heartbeats" in done.stdout
    assert "missing" not in done.stdout, "Kafka was not asked for"
