"""The brokers that stand side by side: started, timed until the first answered ApiVersions, weighed."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.ports import free_port

from benchmarks.joining import broker_pids
from benchmarks.wire import Wire
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

START_S = 60.0
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.replication.factor": "1",
}


@dataclass(slots=True)
class Running:
    """One broker: where it is, what it is, how long it took."""

    address: str
    pid: int
    started_s: float

    def __post_init__(self) -> None:
        broker_pids[self.address] = self.pid

    def memory_mb(self) -> float:
        """Resident memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
        return int(line.split()[1]) / 1024


def first_answer(address: str, began: float) -> float:
    """Seconds from `began` until it answers ApiVersions."""
    while time.perf_counter() - began < START_S:
        try:
            wire = Wire(address)
            wire.send_request(ApiVersionsRequest(), 0, ApiVersionsResponse)
            wire.close()
            return time.perf_counter() - began
        except OSError:
            time.sleep(0.002)
    raise TimeoutError(f"{address} did not answer")


def allow_open_files() -> None:
    """Raise this process's limit of open files as far as it may be; brokers that are started inherit it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextlib.contextmanager
def rota(
    *options: str, packages: Path | None = None, address: str | None = None, listen: bool = True
) -> Iterator[Running]:
    """Rota on a disk, in a fresh folder. `packages` is the folder of another release; None: this one.

    Without `listen` the options name the listeners; one of them, in plain text, is at `address`.
    """
    allow_open_files()
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        address = address or f"127.0.0.1:{free_port()}"
        command = [str(Path(sys.executable).with_name("rota")), "serve", "--data", folder]
        command += ["--listen", address] if listen else []
        environment = {**os.environ, **({} if packages is None else {"PYTHONPATH": str(packages)})}
        for name, value in PROPERTIES.items():
            command += ["--set", f"{name}={value}"]
        began = time.perf_counter()
        with open(os.devnull, "wb") as nowhere:
            process = subprocess.Popen([*command, *options], stderr=nowhere, stdout=nowhere, env=environment)
        try:
            yield Running(address, process.pid, first_answer(address, began))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def has_kafka() -> bool:
    """Java, and Maven to fetch it with."""
    return shutil.which("java") is not None and shutil.which("mvn") is not None


@contextlib.contextmanager
def kafka() -> Iterator[Running]:
    """Apache Kafka, started by the project's own tool."""
    from tools.peer import broker, jars

    jars.fetch()
    address = broker.start()
    pid = broker.pid()
    assert pid is not None
    try:
        first_answer(address, time.perf_counter())
        yield Running(address, pid, age_s(pid))
    finally:
        broker.stop()


def age_s(pid: int) -> float:
    """How long that process has been running: what came before it, such as formatting its disk, does not count."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    return uptime_s - ticks / os.sysconf("SC_CLK_TCK")
