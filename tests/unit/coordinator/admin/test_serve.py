"""One broker's life in this process, with a real broker behind it or one that cannot start."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
from tests.unit.coordinator.network.test_open_files import open_files

from rota.coordinator.admin.check import check
from rota.coordinator.admin.options import ServeOptions
from rota.coordinator.admin.serve import EXIT_CANNOT_START, EXIT_UNCLEAN_STOP, cannot_start, report_ready, run, serve
from rota.coordinator.admin.supervisor import _folder
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.metadata.store import StoreFailed

PATIENCE_S = 20.0


class Broker:
    """Starts as it is told, and remembers that it was stopped."""

    console_url = ""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails, self.stopped = fails, False

    async def start(self) -> tuple[str, int]:
        if self.fails is not None:
            raise self.fails
        return "127.0.0.1", 9092

    async def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_the_address_is_written_when_ready_and_a_signal_stops_the_broker(number: signal.Signals) -> None:
    if number == signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)  # the tests themselves may run under nohup
    reads, writes = os.pipe()
    broker = Broker()
    served = asyncio.ensure_future(serve(broker, BrokerConfig(), writes))
    standard_error = await asyncio.to_thread(_all_of, reads)
    assert standard_error == b"127.0.0.1:9092\n"
    os.kill(os.getpid(), number)
    assert await served == 0
    assert broker.stopped


async def test_a_stop_that_cannot_write_is_reported_and_fails() -> None:
    class Full(Broker):
        async def stop(self) -> None:
            raise StorageFailed("no space left on device")

    reads, writes = os.pipe()
    with structlog.testing.capture_logs() as logs:
        served = asyncio.ensure_future(serve(Full(), BrokerConfig(), writes))
        await asyncio.to_thread(_all_of, reads)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await served == EXIT_UNCLEAN_STOP
    assert [line["reason"] for line in logs if line["log_level"] == "error"] == ["no space left on device"]


def test_an_unread_log_pipe_delays_neither_clients_nor_the_stop() -> None:
    """Law LG1, with a real process whose stderr is a full pipe."""
    ready, writes = os.pipe()
    command = [sys.executable, "-m", "rota.coordinator", "serve", "--memory", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--ready-fd", str(writes), "--log-format", "json"],
        pass_fds=[writes],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    os.close(writes)
    try:
        address = _all_of(ready).decode().strip()
        host, _, port = address.rpartition(":")
        for _ in range(1_000):  # each is a warning of some 150 bytes, and a pipe holds 64 KiB
            with socket.create_connection((host, int(port)), PATIENCE_S) as client:
                client.sendall(b"GET / HTTP/1.1\r\n\r\n")
                assert client.recv(1) == b""
        assert check(address, PATIENCE_S) > 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()


def _full_pipe() -> tuple[int, int]:
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writes, bytes(4096))
    os.set_blocking(writes, True)
    return reads, writes


@pytest.mark.parametrize("address", ["{}", "no-port"])
def test_a_failed_start_ends_although_its_output_is_not_read(address: str) -> None:
    """Law LG1: before the log is set up, and after it."""
    reads, writes = _full_pipe()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = address.format(f"127.0.0.1:{taken.getsockname()[1]}")
        command = [sys.executable, "-m", "rota.coordinator", "serve", "--memory", "--listen", listen]
        process = subprocess.Popen(command, stderr=writes)
        try:
            assert process.wait(PATIENCE_S) == EXIT_CANNOT_START
        finally:
            process.kill()
            os.close(reads)
            os.close(writes)


def test_an_internal_error_ends_the_process_although_its_output_is_not_read() -> None:
    """Law LG1: the interpreter does not print the traceback."""
    program = """
import sys
from rota.coordinator import broker
from rota.coordinator.admin.options import ServeOptions
from rota.coordinator.admin.serve import run

async def fails(self):
    raise RuntimeError("unforeseen")

broker.Broker.start = fails
sys.exit(run(ServeOptions(memory=True)))
"""
    reads, writes = _full_pipe()
    process = subprocess.Popen([sys.executable, "-c", program], stderr=writes)
    try:
        assert process.wait(PATIENCE_S) == EXIT_UNCLEAN_STOP
    finally:
        process.kill()
        os.close(reads)
        os.close(writes)


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_it_serves_and_stops_without_standard_streams(closed: str) -> None:
    ready, writes = os.pipe()
    command = [sys.executable, "-m", "rota.coordinator", "serve", "--memory", "--listen", "127.0.0.1:0"]
    with open_files(200):
        process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *command, "--ready-fd", str(writes)], pass_fds=[writes]
        )
    os.close(writes)
    try:
        assert check(_all_of(ready).decode().strip(), PATIENCE_S) > 0
        soft, highest = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        assert soft == highest  # N13: it has raised the limit
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


def _all_of(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


STUCK = """
import asyncio, signal, sys
from rota.coordinator.admin.serve import serve
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.observe.logs import configure
configure()
class Stuck:
    console_url = ""
    async def start(self):
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: print("here", flush=True))
        return "h", 1
    async def stop(self):
        print("stopping", flush=True)
        await asyncio.Event().wait()
sys.exit(asyncio.run(serve(Stuck(), BrokerConfig(), 1)))
"""


@pytest.mark.parametrize("ignored", [0, signal.SIGHUP], ids=["", "nohup"])
def test_a_second_signal_ends_it_at_once_and_a_closed_terminal_does_not(ignored: int) -> None:
    """`ignored`: a signal that does nothing, as the program that started this one has asked."""
    hangup = "SIG_IGN" if ignored else "SIG_DFL"  # the tests themselves may run under nohup
    command = [sys.executable, "-c", f"import signal\nsignal.signal(signal.SIGHUP, signal.{hangup})\n{STUCK}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None

        def answers(number: signal.Signals, line: str) -> None:
            process.send_signal(number)
            assert process.stdout is not None
            assert process.stdout.readline() == line

        assert process.stdout.readline() == "h:1\n"
        if ignored:
            process.send_signal(signal.SIGHUP)
            answers(signal.SIGUSR1, "here\n")
        answers(signal.SIGTERM if ignored else signal.SIGHUP, "stopping\n")
        process.send_signal(signal.SIGHUP)
        answers(signal.SIGUSR1, "here\n")
        process.send_signal(signal.SIGINT)
    assert process.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize(
    ("fails", "error_text"),
    [
        (
            OSError(98, "cannot listen on PLAINTEXT://:1: Address already in use"),
            "--listen HOST:PORT takes another port",
        ),
        (PermissionError(13, "Permission denied", "/data"), "/data"),
        (StorageFailed("data folder x is in use by process 7"), "data folder x"),
        (StoreFailed("x/metadata.journal is damaged at byte 11"), "damaged at byte 11"),
    ],
)
async def test_a_failed_start_prints_its_reason_in_one_line(
    fails: Exception, error_text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = Broker(fails)
    assert await serve(broker, BrokerConfig(), None) == EXIT_CANNOT_START
    captured = capsys.readouterr().err
    assert captured.startswith("rota: ")
    assert error_text in captured
    assert captured.count("\n") == 1
    assert not broker.stopped


@pytest.mark.parametrize(
    ("options", "error_text"),
    [
        (ServeOptions(settings=("num.partition=1",)), "nearest known name is num.partitions"),
        (ServeOptions(config="/no/such/file"), "cannot read /no/such/file: No such file"),
        (ServeOptions(log_format="xml"), "--log-format xml"),
    ],
)
def test_wrong_settings_are_reported_in_one_line(
    options: ServeOptions, error_text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(options) == EXIT_CANNOT_START
    captured = capsys.readouterr().err
    assert error_text in captured
    assert captured.count("\n") == 1


@pytest.mark.parametrize("brokers", [None, 1])
def test_a_single_broker_does_not_start_on_the_folder_of_a_cluster(
    brokers: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Law CL22. It would show none of its topics, and leave files with which --brokers does not start any more."""
    with _folder(BrokerConfig({"log.dirs": str(tmp_path)})) as journal:
        journal.touch()
    before = {*tmp_path.iterdir()}
    with socket.create_server(("127.0.0.1", 0)) as taken:  # so that it ends in any case
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        assert run(ServeOptions(data=str(tmp_path), listen=listen, brokers=brokers)) == EXIT_CANNOT_START
    assert "has the data of a cluster" in capsys.readouterr().err
    assert {*tmp_path.iterdir()} == before


def test_an_ipv6_host_is_written_in_brackets_and_a_closed_descriptor_stops_no_start(tmp_path: Path) -> None:
    with (tmp_path / "ready").open("wb") as file:
        report_ready(os.dup(file.fileno()), "::1", 5)
    assert (tmp_path / "ready").read_text() == "[::1]:5\n"
    with socket.socket() as listener:
        closed_fd = listener.fileno()
    report_ready(closed_fd, "h", 1)
    report_ready(None, "h", 1)


def test_the_exit_code_of_a_start_that_fails_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cannot_start("because") == 2
    assert capsys.readouterr().err == "rota: because\n"


SETTLES = """
import gc
from rota.coordinator.admin.serve import configure_collector
gc.disable()
configure_collector()
print(gc.isenabled(), gc.get_freeze_count() > 1000, gc.get_threshold()[0] > 10_000)
"""


def test_objects_of_the_start_are_frozen_for_the_garbage_collector() -> None:
    done = subprocess.run([sys.executable, "-c", SETTLES], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 3
