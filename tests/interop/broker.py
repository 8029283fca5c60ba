"""The broker under test: a Rota broker that the tests start, or the broker at ROTA_BOOTSTRAP."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

START_S = 20.0
STOP_S = 10.0

# what the tests count on; a broker named by ROTA_BOOTSTRAP is expected to have the same
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",  # for groups whose configs ask for it
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "log.retention.check.interval.ms": "86400000",  # records of tests have any time, and are kept until they are read
}


@contextmanager
def broker(folder: Path, properties: Mapping[str, str] | None = None) -> Iterator[str]:
    """HOST:PORT of a broker that answers; one that is started here has `properties` too, and is stopped in the end."""
    given = os.environ.get("ROTA_BOOTSTRAP")
    if given:
        yield given
        return
    with started(folder, {**PROPERTIES, **(properties or {})}) as bootstrap:
        yield bootstrap


@contextmanager
def started(folder: Path, properties: Mapping[str, str]) -> Iterator[str]:
    """HOST:PORT of a Rota broker with these properties; stops it in the end."""
    config = folder / "server.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    read_fd, write_fd = os.pipe()
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen(
            [_rota(), "serve", "--memory", "--listen", "127.0.0.1:0", "--config", config, "--ready-fd", str(write_fd)],
            pass_fds=[write_fd],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    os.close(write_fd)
    try:
        yield _ready(read_fd, folder / "broker.log")
    finally:
        os.close(read_fd)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert process.returncode == 0, f"the broker ended with {process.returncode}: {_tail(folder / 'broker.log')}"


def _rota() -> Path:
    return Path(sys.executable).with_name("rota")


def _ready(read_fd: int, log: Path) -> str:
    """The address that the broker writes when it listens."""
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([read_fd], [], [], START_S)
        more = os.read(read_fd, 1024) if readable else b""
        if not more:
            break
        line += more
    address = next((word for word in line.decode().split() if word.rpartition(":")[2].isdigit()), "")
    assert address, f"the broker did not become ready: {line!r} {_tail(log)}"
    return address


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:]
