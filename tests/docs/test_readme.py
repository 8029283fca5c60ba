"""Every command and every example of the README, run as a reader would."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.coordinator.testing import running_broker

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    shlex.split(line, comments=True) for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if line
]
EXAMPLES = [text for kind, text in BLOCKS if kind == "python"]
START_S, STOP_S = 20, 20

# what runs each command; a command that is not here fails the test below
HELD_BY = {
    "make demo": "test_the_demo_ends_well",
    "make test": "this very run: .ci/run calls it",
    "make bench": "test_the_benchmarks_run",
    "pip install": "tests/packaging/test_wheel.py",
    "rota serve": "test_rota_serves_as_the_readme_says",
    "docker compose": "test_the_compose_file_is_right",
}


def name(command: list[str]) -> str:
    return " ".join(command[:2])


def test_every_command_of_the_readme_is_run_by_a_test() -> None:
    assert {name(command) for command in COMMANDS} == set(HELD_BY)


def test_the_demo_ends_well() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.demo"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "was consumed at least once" in " ".join(done.stdout.split())


@pytest.mark.parametrize("command", [one for one in COMMANDS if name(one) == "rota serve"], ids=" ".join)
def test_rota_serves_as_the_readme_says(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("num.partitions=2\n")
    read, write = os.pipe()
    # the same command on a free port, so that it disturbs nobody
    free = [*(word if word != "127.0.0.1:9092" else "127.0.0.1:0" for word in command), "--ready-fd", str(write)]
    if "--listen" not in free:
        free += ["--listen", "127.0.0.1:0"]
    rota = str(Path(sys.executable).with_name("rota"))
    process = subprocess.Popen([rota, *free[1:]], cwd=tmp_path, pass_fds=[write], stderr=subprocess.PIPE, text=True)
    os.close(write)
    with os.fdopen(read) as ready:
        address = ready.readline()
    process.terminate()
    _, told = process.communicate(timeout=STOP_S)
    assert address.startswith("127.0.0.1:"), told
    assert process.returncode == 0, told


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with running_broker() as address:
        yield address


def test_the_examples_run(broker: str, capsys: pytest.CaptureFixture[str]) -> None:
    clients, _, fixture = EXAMPLES
    exec(compile(clients.replace("127.0.0.1:9092", broker), "README", "exec"), {"__name__": "readme"})  # noqa: S102
    assert "b'hello'" in capsys.readouterr().out
    assert "running_broker" in fixture


def test_what_it_shows_of_spark_is_run_with_its_page() -> None:
    assert EXAMPLES[1].strip() in (ROOT / "docs" / "SPARK.md").read_text(), "tests/docs/test_spark_page.py runs it"


def test_the_fixture_of_the_readme_works(tmp_path: Path) -> None:
    uses_it = "\n\ndef test_it(bootstrap):\n    assert bootstrap.startswith('127.0.0.1:')\n"
    (tmp_path / "test_mine.py").write_text(textwrap.dedent(EXAMPLES[2]) + uses_it)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_benchmarks_run() -> None:
    """One quick row on Rota alone: that they run, not how fast."""
    command = [sys.executable, "-m", "benchmarks", "--rota-only", "--seconds", "0.2", "heartbeats, 4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "heartbeats" in done.stdout


def test_the_compose_file_is_right(need_docker: None) -> None:
    subprocess.run(["docker", "compose", "config", "--quiet"], cwd=ROOT, check=True, timeout=60)
    subprocess.run(["docker", "compose", "build"], cwd=ROOT, check=True, timeout=600)


@pytest.fixture
def need_docker() -> None:
    """A Docker client is not enough: the engine has to answer."""
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no Docker engine answers: docker compose up is not run")
