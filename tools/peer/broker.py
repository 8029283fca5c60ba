"""One Kafka broker in KRaft mode: settings, start, stop."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tools.peer.jars import QUICK, Missing, fetch, home, java
from tools.ports import free_port

CLUSTER_ID = "cm90YS1wZWVyLWNsdXN0ZX"
START_S = 60.0
STOP_S = 20.0
HEAP = "1G"

# the settings that the interop tests give to Rota: no initial rebalance delay, short sessions
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "0",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",  # for groups whose configs ask for it
    "num.partitions": "4",
    "log.retention.check.interval.ms": "86400000",  # records of tests have any time, and are kept until they are read
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # until a test creates ACLs
}


def start(port: int | None = None, *, options: Sequence[str] = ()) -> str:
    """Start with empty data; returns HOST:PORT when it accepts connections. Raises Missing or TimeoutError.

    `options` are for Java: benchmarks run it as it is, tests with QUICK.
    """
    if pid() is not None:
        raise Missing("a Kafka broker is running already: python -m tools.peer stop")
    fetch()
    port = port or free_port()
    config = _write_config(port)
    with (home() / "format.log").open("wb") as log:
        formatted = java(*QUICK, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config))
        subprocess.run(formatted, check=True, stdout=log, stderr=log)
    with (home() / "broker.log").open("wb") as log:
        heap = os.environ.get("ROTA_PEER_HEAP", HEAP)
        command = java(*options, "kafka.Kafka", str(config), heap=heap, quiet="warn")
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    _pid_file().write_text(str(process.pid))
    wait_until_it_listens(port, process)
    return f"127.0.0.1:{port}"


def stop() -> None:
    """Stop the broker that `start` started and wait for its end; SIGKILL after STOP_S."""
    running = pid()
    if running is not None:
        os.kill(running, signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        while pid() is not None and time.monotonic() < deadline:
            time.sleep(0.05)
        if pid() is not None:
            os.kill(running, signal.SIGKILL)
    _pid_file().unlink(missing_ok=True)


def pid() -> int | None:
    """The process id of the running broker; None when none runs."""
    try:
        number = int(_pid_file().read_text())
        command = Path(f"/proc/{number}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return number if b"kafka.Kafka" in command else None


def _pid_file() -> Path:
    return home() / "broker.pid"


def _write_config(port: int) -> Path:
    """Make an empty data folder; returns the path of the settings file."""
    data = home() / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    control = free_port()
    own = {
        "controller.quorum.voters": f"0@127.0.0.1:{control}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(data),
    }
    config = home() / "server.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in {**SETTINGS, **own}.items()))
    return config


def wait_until_it_listens(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Missing(f"Kafka ended with {process.returncode}: see {home() / 'broker.log'}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"Kafka did not listen within {START_S} s: see {home() / 'broker.log'}")
