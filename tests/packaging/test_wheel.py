"""The wheel that users install: built once, installed in fresh environments, and used there.

The environments get the versions of constraints.txt: first what the client needs, then the extra `broker` on top.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.packaging.source_tree import COMPILED, ROOT, fresh_environment, outside
from tests.soak import soak_only
from uv import find_uv_bin

CLIENT_PACKAGES = {"construct", "cramjam", "crc32c", "structlog", "rota"}
BROKER_PACKAGES = {"asyncio_dgram", "rich", "uvloop"}
IMPORTS = """
import json, sys
from importlib.metadata import distributions
from rota.client import Admin, AdminConfig, Consumer, ConsumerConfig, PartitionReader, Producer, ProducerConfig
from rota.protocol import records
print(json.dumps({
    "modules": sorted(sys.modules),
    "installed": sorted({item.metadata["Name"].replace("-", "_") for item in distributions()}),
    "file": records.__file__,
}))
"""
ROUND_TRIP = str(ROOT / "tests" / "packaging" / "installed_wheel.py")


@pytest.fixture(scope="module")
def client_only(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel and what it requires without extras."""
    return fresh_environment(tmp_path_factory.mktemp("client_only"), str(wheel))


@pytest.fixture(scope="module")
def with_broker(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the extra `broker`."""
    return fresh_environment(tmp_path_factory.mktemp("with_broker"), f"rota[broker] @ {wheel.as_uri()}")


def run(programs: Path, *command: str, folder: Path) -> str:
    """Standard output of a program of the environment, with a terminal of 120 columns."""
    done = subprocess.run(
        [str(programs / command[0]), *command[1:]],
        cwd=folder,
        env={**outside(), "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_the_packages_their_types_and_the_text_of_the_demo(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for package in ("protocol", "transport", "coordinator", "client", "demo", "spark_connector", "cli", "testing"):
        assert f"rota/{package}/__init__.py" in names
        assert f"rota/{package}/py.typed" in names
    assert "rota/demo/alice.txt" in names
    assert not [name for name in names if not name.startswith("rota") and ".dist-info" not in name]
    assert any(name.endswith("/LICENSE") for name in names)


def test_the_client_alone_needs_no_package_of_the_broker(client_only: Path, tmp_path: Path) -> None:
    found = json.loads(run(client_only, "python", "-c", IMPORTS, folder=tmp_path))
    assert "site-packages" in found["file"]
    assert set(found["installed"]) - {"typing_extensions"} == CLIENT_PACKAGES  # structlog needs it on old Pythons
    assert imported_of_rota(found["modules"]) == {"client", "protocol", "transport"}
    assert not {"protocol", "transport", "client", "coordinator", "demo", "spark_connector", "cli"} & set(
        found["modules"]
    )


def test_the_packages_of_the_client_are_enough_for_a_broker_and_the_demo(client_only: Path, tmp_path: Path) -> None:
    printed = run(client_only, "python", ROUND_TRIP, folder=tmp_path)
    assert "b'hello'\n" in printed
    assert re.search(r"^TOPIC +PARTITIONS +REPLICATION +INTERNAL +ID\nt ", printed, re.MULTILINE)
    version = run(client_only, "rota", "version", folder=tmp_path)
    kind = "compiled" if COMPILED else "interpreted"
    assert re.fullmatch(rf"rota [\d.]+ \({kind} codecs, Python [\d.]+, asyncio's event loop\)\n", version)
    demo = run(client_only, "rota", "demo", folder=tmp_path)
    assert "Not installed: confluent, kafka-python, aiokafka. They come with: pip install 'rota[demo]'\n" in demo
    assert "lines was consumed at least once" in demo


def test_a_wheel_is_built_without_a_compiler_and_says_so(sdist: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*command, str(sdist)], check=True, env=outside() | {"CC": "/bin/false"})
    (wheel,) = tmp_path.glob("*.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]
    programs = fresh_environment(tmp_path / "environment", str(wheel))
    assert "(interpreted codecs, " in run(programs, "rota", "version", folder=tmp_path)


@pytest.fixture(scope="module")
def pipx(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(fresh_environment(tmp_path_factory.mktemp("pipx"), "pipx") / "pipx")


@pytest.mark.parametrize("command", [("uvx", "--from"), pytest.param(("pipx", "run", "--spec"), marks=soak_only)])
def test_the_demo_runs_without_an_installation(
    wheel: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    command: tuple[str, ...],
) -> None:
    for variable in ("UV_TOOL_DIR", "PIPX_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    program = find_uv_bin() if command[0] == "uvx" else request.getfixturevalue("pipx")  # an environment of its own
    printed = run(
        Path(program).parent, *command, str(wheel), "--python", sys.executable, "rota", "demo", folder=tmp_path
    )
    assert "They come with: pip install 'rota[demo]'\n" in printed
    assert "lines was consumed at least once" in printed


def test_the_extra_broker_adds_the_event_loop_and_the_help(with_broker: Path, tmp_path: Path) -> None:
    found = json.loads(run(with_broker, "python", "-c", IMPORTS, folder=tmp_path))
    assert set(found["installed"]) >= CLIENT_PACKAGES | BROKER_PACKAGES
    assert not {"asyncio_dgram", "starlette", "uvloop"} & set(found["modules"]), (
        "of what is installed the client imports its own packages"
    )
    assert ", uvloop " in run(with_broker, "rota", "version", folder=tmp_path)
    assert "--ready-fd" in run(with_broker, "rota", "serve", "--help", folder=tmp_path)


def imported_of_rota(modules: list[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("rota.")}
