"""The broker under systemd: the tests play systemd with a datagram socket, as sd_notify(3) describes it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import structlog

from rota.coordinator.admin.check import check
from rota.coordinator.admin.serve import serve
from rota.coordinator.admin.service_manager import ServiceManager
from rota.coordinator.config.broker import BrokerConfig

PATIENCE_S = 20.0
WATCHDOG_US = 100_000
SILENCE_S = 4 * WATCHDOG_US / 1_000_000  # eight times the interval of WATCHDOG=1


class Systemd:
    """The datagram socket of systemd, by path or in the abstract namespace."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self.socket.settimeout(PATIENCE_S)

    def receive(self) -> list[str]:
        """Wait for a message; return its lines."""
        return self.socket.recv(4096).decode().split("\n")

    def wait_for(self, line: str) -> list[str]:
        """Wait for a message with that line; return it."""
        while line not in (lines := self.receive()):
            pass
        return lines

    def pending(self) -> list[list[str]]:
        """Return the messages that have arrived."""
        arrived = []
        self.socket.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                arrived.append(self.receive())
        self.socket.settimeout(PATIENCE_S)
        return arrived

    def is_silent(self) -> bool:
        """Return whether nothing arrives in SILENCE_S. The calling thread is blocked for this time."""
        self.pending()
        self.socket.settimeout(SILENCE_S)
        try:
            self.receive()
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(PATIENCE_S)
        return False


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@rota-test-{os.getpid()}-{id(request)}"
    opened = Systemd(address)
    yield opened
    opened.socket.close()


@pytest.mark.parametrize("options", [["--memory"], ["--memory", "--brokers=2"]], ids=["broker", "cluster"])
def test_systemd_receives_ready_watchdog_and_stopping_and_nothing_from_a_stopped_process(
    systemd: Systemd, options: list[str]
) -> None:
    command = [sys.executable, "-m", "rota.coordinator", "serve", "--listen", "127.0.0.1:0", *options]
    variables = {"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": str(WATCHDOG_US)}
    with ExitStack() as undo:
        process = subprocess.Popen(command, env=os.environ | variables, stderr=subprocess.DEVNULL)
        undo.callback(process.wait)
        undo.callback(process.kill)

        (status,) = (line for line in systemd.wait_for("READY=1") if line.startswith("STATUS="))
        addresses = status.removeprefix("STATUS=Listening on ").split(",")
        assert len(addresses) == len(options), "the first READY=1 is that of the service, not of a process it started"
        for address in addresses:
            assert check(address, PATIENCE_S) > 0

        for _ in range(3):
            assert systemd.receive() == ["WATCHDOG=1"]
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        assert systemd.is_silent()
        process.send_signal(signal.SIGCONT)
        assert systemd.receive() == ["WATCHDOG=1"]

        process.send_signal(signal.SIGTERM)
        systemd.wait_for("STOPPING=1")
        assert process.wait(PATIENCE_S) == 0


async def test_a_blocked_loop_sends_no_watchdog_message(systemd: Systemd) -> None:
    manager = ServiceManager(systemd.address, WATCHDOG_US)
    manager.ready("")
    assert "READY=1" in systemd.receive()
    assert await asyncio.to_thread(systemd.receive) == ["WATCHDOG=1"]
    assert systemd.is_silent(), "this thread is that of the loop"
    assert await asyncio.to_thread(systemd.receive) == ["WATCHDOG=1"]
    manager.close()
    await asyncio.sleep(0)
    assert await asyncio.to_thread(systemd.is_silent), "nothing is sent after close"


class SlowBroker:
    """A broker whose start ends when the test says so."""

    console_url = ""

    def __init__(self, systemd: Systemd) -> None:
        self.systemd, self.release, self.seen_by_stop = systemd, asyncio.Event(), list[list[str]]()

    async def start(self) -> tuple[str, int]:
        await self.release.wait()
        return "::1", 9092

    async def stop(self) -> None:
        self.seen_by_stop = self.systemd.pending()


@pytest.mark.parametrize("stops_early", [False, True])
async def test_ready_after_listening_and_stopping_before_the_connections_close(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch, stops_early: bool
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", systemd.address)
    broker = SlowBroker(systemd)
    serving = asyncio.create_task(serve(broker, BrokerConfig(), None))
    assert await asyncio.to_thread(systemd.receive) == ["STATUS=Starting: opening the data"]
    assert systemd.is_silent()
    if stops_early:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.to_thread(systemd.wait_for, "STOPPING=1")
    broker.release.set()
    if not stops_early:
        assert await asyncio.to_thread(systemd.receive) == ["READY=1", "STATUS=Listening on [::1]:9092"]
        os.kill(os.getpid(), signal.SIGTERM)
    assert await serving == 0
    assert [lines[0] for lines in broker.seen_by_stop] == ([] if stops_early else ["STOPPING=1"])
    assert "NOTIFY_SOCKET" not in os.environ


def test_the_variables_are_removed_and_a_watchdog_of_another_process_is_not_fed(systemd: Systemd) -> None:
    async def messages(pid: int) -> list[list[str]]:
        variables = {"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": str(pid), "HOME": "/"}
        manager = ServiceManager.from_environment(variables)
        assert variables == {"HOME": "/"}
        manager.ready("")
        manager.close()
        return systemd.pending()

    assert asyncio.run(messages(os.getpid())) == [["READY=1", "STATUS="], ["WATCHDOG=1"]]
    assert asyncio.run(messages(os.getpid() + 1)) == [["READY=1", "STATUS="]]


async def test_messages_are_sent_again_when_the_socket_queue_was_full(systemd: Systemd) -> None:
    """As while systemd reads its units again."""
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.setblocking(False)
    with filler, suppress(BlockingIOError):
        while True:
            filler.sendto(b"FILL=1", systemd.socket.getsockname())
    manager = ServiceManager(systemd.address, WATCHDOG_US)
    manager.starting()
    manager.ready("up")
    while (lines := await asyncio.to_thread(systemd.receive)) == ["FILL=1"]:
        pass
    assert lines[0].startswith("STATUS=Starting")
    assert await asyncio.to_thread(systemd.receive) == ["READY=1", "STATUS=up"]
    assert await asyncio.to_thread(systemd.receive) == ["WATCHDOG=1"]
    manager.close()


async def test_an_unreachable_service_manager_stops_nothing(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as logs:
        manager = ServiceManager(str(tmp_path / "gone"))
        manager.ready("up")
        manager.stopping()
        manager.close()
    assert {line["reason"] for line in logs} == {"No such file or directory"}


@pytest.mark.parametrize(
    ("variables", "warnings"),
    [
        ({}, 0),
        ({"NOTIFY_SOCKET": "vsock:2:1234"}, 1),
        ({"NOTIFY_SOCKET": "/run/none", "WATCHDOG_USEC": "soon"}, 1),
    ],
)
async def test_invalid_variables_are_ignored_with_a_warning(variables: dict[str, str], warnings: int) -> None:
    with structlog.testing.capture_logs() as logs:
        ServiceManager.from_environment(variables).close()
    assert [line["event"].partition(" ")[2][:10] for line in logs] == ["is ignored"] * warnings
