"""Exit codes, messages and the ends of a command."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from argparse import Namespace

import pytest

from rota.cli.main import run
from rota.cli.session import EXIT_CODES, Session, as_plain, exit_code_of, require_listener, run_command
from rota.cli.settings import UsageError
from rota.client.errors import AdminFailed, BrokerError, ConfigError, KafkaError, TimedOut, UnknownTopic, Unreachable
from rota.protocol.errors import ErrorCode
from rota.testing import running_broker

UNKNOWN = UnknownTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "describing topics", topic="t")
OPTIONS = Namespace(json=False, verbose=False)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (UsageError("x"), 2),
        (ConfigError("x"), 2),
        (UNKNOWN, 1),
        (KafkaError("x"), 1),
        (Unreachable("x"), 3),
        (TimedOut("x"), 4),
        (AdminFailed("listing groups", {}, {"1": Unreachable("x")}), 3),
        (AdminFailed("listing groups", {"0": None}, {"1": Unreachable("x")}), 1),
        (AdminFailed("listing groups", {}, {"0": TimedOut("x"), "1": Unreachable("x")}), 1),
    ],
)
def test_each_failure_has_its_exit_code(failure: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    async def fails(_: Session) -> None:
        raise failure

    assert exit_code_of(failure) == code
    assert run_command(fails, OPTIONS) == code
    assert run_command(fails, Namespace(json=True, verbose=False)) == code
    text, document = capsys.readouterr().err.strip().rsplit("\n", 1)
    assert text.startswith("rota: ")
    assert json.loads(document)["error"]["exit_code"] == code
    assert code in EXIT_CODES


def test_failures_of_tasks_are_reported_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    async def fails(_: Session) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_raise())

    async def _raise() -> None:
        raise Unreachable("nobody")

    assert run_command(fails, OPTIONS) == 3
    assert capsys.readouterr().err == "rota: nobody\n"


def test_the_advice_names_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    async def fails(_: Session) -> None:
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, "x", remedy="Check the name against list_groups().")

    run_command(fails, OPTIONS)
    assert "`rota groups list`" in capsys.readouterr().err


def test_a_fault_of_rota_keeps_its_traceback() -> None:
    async def fails(_: Session) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_command(fails, OPTIONS)


async def test_refused_addresses_are_named_with_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unreachable, match=rf"127\.0\.0\.1:{port}: Connection refused.*--bootstrap-server") as failed:
        await require_listener((("127.0.0.1", port), ("no-such-host.invalid", 9092)))
    assert "no-such-host.invalid:9092" in str(failed.value)


async def test_one_listener_among_dead_addresses_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        dead = taken.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await require_listener((("127.0.0.1", dead), listener.getsockname()))


def test_an_unreachable_broker_is_exit_code_3() -> None:
    done = rota("topics", "list", "--bootstrap-server", "127.0.0.1:1", "--json")
    assert (done.returncode, done.stdout) == (3, "")
    assert "127.0.0.1:1: Connection refused" in json.loads(done.stderr)["error"]["message"]


def test_a_listener_that_does_not_answer_is_exit_code_3_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = rota("topics", "list", "--timeout", "0.5", "--bootstrap-server", address)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{address} has not answered" in done.stderr


def test_a_closed_pipe_ends_the_command_silently() -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reads, writes = os.pipe()
    os.close(reads)
    with running_broker() as running:
        address = running.bootstrap_servers
        command = [sys.executable, "-m", "rota", "topics", "list", "--internal", "--bootstrap-server", address]
        done = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, check=False, timeout=60, env=buffered)
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, b"")


def test_ctrl_c_ends_the_command_silently() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "rota", "topics", "list", "--bootstrap-server", address]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            silent.accept()[0].close()  # the look whether something listens
            connection, _ = silent.accept()
            connection.recv(1)
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60)[1] == b""
            connection.close()
    assert process.returncode == 130


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_command_in_order(number: signal.Signals, code: int) -> None:
    """Law CL13; a terminal that is closed may say SIGHUP twice, under nohup it changes nothing."""
    ended = []

    async def member(_: Session) -> None:
        os.kill(os.getpid(), number)
        try:
            await asyncio.sleep(60)
        finally:
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.01)
            ended.append("left the group")

    assert run_command(member, OPTIONS) == code
    assert ended == ["left the group"]
    assert code in EXIT_CODES


def test_under_nohup_a_terminal_that_is_closed_ends_nothing() -> None:
    async def hung_up(_: Session) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run_command(hung_up, OPTIONS) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def rota(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rota", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_ids_are_printed_as_kafka_does() -> None:
    assert as_plain(bytes(16)) == "A" * 22
    assert as_plain((1, 2)) == [1, 2]
    assert as_plain(None) is None


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["topics", "describe", "\udcff"], "topics"),
        (["topics", "create", "t", "--config", "a=\udcff"], "config"),
        (["groups", "describe", "\udcff"], "groups"),
        (["configs", "alter", "topic", "t", "--set", "a=\udcff"], "set"),
        (["configs", "describe", "topic", "\udcff"], "name"),
        (["configs", "describe", "topic", "t", "--key", "\udcff"], "key"),
        (["produce", "\udcff", "--value", "v"], "topic"),
        (["consume", "\udcff"], "topic"),
        (["cluster", "--command-property", "client.id=\udcff"], "command-property"),
    ],
)
def test_an_argument_that_is_not_utf_8_is_refused(
    arguments: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"rota: {name}")
    assert err.endswith("is not UTF-8\n")


def test_a_variable_that_is_not_utf_8_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROTA_CLIENT_CLIENT_ID", "\udcff")
    assert run(["cluster"]) == 2
    assert capsys.readouterr().err == "rota: the setting client.id: '\\udcff' is not UTF-8\n"


@pytest.mark.parametrize("host", [".", "a" * 80])
async def test_an_invalid_host_name_is_unreachable(host: str) -> None:
    with pytest.raises(Unreachable, match=f"no broker answers: {re.escape(host)}:9092: not a name of a host"):
        await require_listener(((host, 9092),))
