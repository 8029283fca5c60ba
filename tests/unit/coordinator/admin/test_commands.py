"""The commands of a broker as people see them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rota.cli.main import run
from rota.cli.main import run as command_line
from rota.coordinator.admin.commands import run_check
from rota.coordinator.admin.options import FLAGS
from rota.coordinator.admin.version import version_line
from rota.testing import running_broker

ROTA = (sys.executable, "-m", "rota.coordinator")


def help_of(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as ended:
        run([command, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_help_of_serve_explains_every_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = help_of("serve", capsys, monkeypatch)
    for flag in (*FLAGS, "--memory"):
        assert flag in text
    for word in ("127.0.0.1:9092", "rota-data", "HOST:PORT", "authentication"):
        assert word in text


@pytest.mark.parametrize("command", ["check", "demo", "version"])
def test_each_command_has_a_help(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"usage: rota {command}" in help_of(command, capsys, monkeypatch)


def test_version_prints_the_line_of_version_py(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == 0
    assert capsys.readouterr().out == f"{version_line()}\n"


def test_version_prints_its_parts_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"version", "compiled_codecs", "python", "uvloop"}
    assert document["version"] in version_line()


@pytest.mark.parametrize(
    ("arguments", "error_text"),
    [
        (("serve", "--what"), "unrecognized arguments: --what"),
        (("serve", "--ready-fd", "x"), "--ready-fd"),
        (("check", "a", "b"), "more values than the command takes"),
        (("sevre",), "did you mean `rota serve`?"),
        (("serve", "--set", "num.partition=1"), "num.partition"),
    ],
)
def test_a_wrong_command_line_is_explained(arguments: tuple[str, ...], error_text: str) -> None:
    done = subprocess.run([*ROTA, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert error_text in done.stderr


def test_check_exits_with_0_if_a_broker_responds_and_1_otherwise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_broker() as running:
        address = running.bootstrap_servers
        assert run_check(address) == 0
        assert f"a broker answers at {address}" in capsys.readouterr().out
        monkeypatch.setenv("ROTA_BOOTSTRAP_SERVER", f"127.0.0.1:1, {address}")
        assert command_line(["check", "--json"]) == 0, "as the commands that talk to a cluster"
    found = json.loads(capsys.readouterr().out)
    assert found["address"] == address
    assert found["apis"] > 0
    assert command_line(["check"]) == 1
    failure = capsys.readouterr().err
    assert "at 127.0.0.1:1" in failure
    assert f"at {address}" in failure
    assert run_check(address) == 1
    assert "no broker answers" in capsys.readouterr().err
    assert run_check(address, as_json=True) == 1
    printed = capsys.readouterr()
    error = json.loads(printed.err)["error"]
    assert (printed.out, error["exit_code"], error["codes"]) == ("", 1, [])
    assert "no broker answers" in error["message"]
