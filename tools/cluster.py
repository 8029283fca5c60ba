"""A cluster of three brokers and ZooKeeper as processes on this machine, for benchmarks, chaos tests and people.

`python -m tools.cluster` runs one on ports 9092 to 9094 with its data in `.cluster` until it is interrupted.
"""

from __future__ import annotations

import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from rota.protocol.compiler import codec
from rota.protocol.header import read_response_header, request_header
from rota.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from tools.ports import free_port
from tools.zookeeper import Missing, ZooKeeperEnsemble, ZooKeeperServer

T = TypeVar("T")

START_S_MAX: Final = 90.0  # of a machine that other work keeps busy
STOP_S_MAX: Final = 30.0
ANSWER_S_MAX: Final = 2.0
POLL_S: Final = 0.01
SIZE: Final = 3


class Cluster:
    """`with Cluster(folder) as cluster: cluster.bootstrap`. Broker ids are `first_id` and those that follow it."""

    def __init__(
        self,
        folder: Path,
        size: int = SIZE,
        *,
        first_id: int = 1,
        ports: tuple[int, ...] = (),
        properties: Mapping[str, str] | None = None,
        zookeeper: ZooKeeperServer | ZooKeeperEnsemble | None = None,
    ) -> None:
        self.folder = folder
        self.zookeeper = zookeeper or ZooKeeperServer(folder / "zookeeper")
        self.brokers = list(range(first_id, first_id + size))
        self.ports = dict(zip(self.brokers, ports or (free_port() for _ in self.brokers), strict=True))
        self._properties = dict(properties or {})
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def pids(self) -> list[int]:
        """The process ids of the brokers that run."""
        return [process.pid for process in self._processes.values()]

    def __enter__(self) -> Self:
        (self.folder / "zookeeper").mkdir(parents=True, exist_ok=True)
        self.zookeeper.start()
        try:
            for broker in self.brokers:
                self.start(broker, wait=False)
            for broker in self.brokers:
                self.wait(broker)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Kill everything."""
        for broker in list(self._processes):
            self.kill(broker)
        self.zookeeper.kill()

    # ---- one broker

    def start(self, broker: int, *, wait: bool = True) -> None:
        """Start it; with `wait`, return when it is a live broker of the cluster. Raises TimeoutError."""
        config = self.folder / f"broker-{broker}.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self._config(broker).items()))
        rota = Path(sys.executable).with_name("rota")
        command = [str(rota)] if rota.exists() else [shutil.which("rota") or "rota"]
        with (self.folder / f"broker-{broker}.log").open("ab") as log:
            self._processes[broker] = subprocess.Popen(
                [*command, "serve", "--config", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        if wait:
            self.wait(broker)

    def wait(self, broker: int) -> None:
        """Return when every broker that runs sees it in the cluster. Raises TimeoutError."""
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            if self._processes[broker].poll() is not None:
                break
            with suppress(OSError):
                if all(broker in self._seen_by(other) for other in self._processes):
                    return
            time.sleep(POLL_S)
        log = (self.folder / f"broker-{broker}.log").read_text(errors="replace")
        raise TimeoutError(f"broker {broker} did not start: {log[-3000:]}")

    def kill(self, broker: int) -> None:
        """SIGKILL, also a frozen one."""
        process = self._processes.pop(broker)
        process.kill()
        process.wait()

    def stop(self, broker: int) -> int:
        """SIGTERM; return its exit code when it has ended. Raises TimeoutExpired."""
        process = self._processes.pop(broker)
        process.terminate()
        return process.wait(STOP_S_MAX)

    def freeze(self, broker: int) -> None:
        self._processes[broker].send_signal(signal.SIGSTOP)

    def thaw(self, broker: int) -> None:
        self._processes[broker].send_signal(signal.SIGCONT)

    def log(self, broker: int) -> str:
        return (self.folder / f"broker-{broker}.log").read_text(errors="replace")

    def _config(self, broker: int) -> dict[str, str]:
        data = self.folder / f"data-{broker}"
        data.mkdir(exist_ok=True)
        return {
            "node.id": str(broker),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker]}",
            "log.dirs": str(data),
            "broker.rack": f"rack{broker}",
            "zookeeper.connect": self.zookeeper.address,
            "group.initial.rebalance.delay.ms": "0",
            **self._properties,
        }

    # ---- what the cluster says

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads; -1 for none."""
        return self._partition(topic, partition).leader_id

    def leader_epoch(self, topic: str, partition: int = 0) -> int:
        return self._partition(topic, partition).leader_epoch

    def isr(self, topic: str, partition: int = 0) -> set[int]:
        """The replicas in sync."""
        return set(self._partition(topic, partition).isr_nodes)

    def coordinator(self, group: str) -> int:
        """The broker that coordinates the group; -1 while there is none."""
        return self._coordinator(0, group)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates the transactional id; -1 while there is none."""
        return self._coordinator(1, transactional_id)

    def _coordinator(self, key_type: int, key: str) -> int:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
        response = self._ask(request, 4, FindCoordinatorResponse)
        return response.coordinators[0].node_id

    def _seen_by(self, broker: int) -> set[int]:
        """The live brokers, as that one knows them. Raises OSError."""
        address = ("127.0.0.1", self.ports[broker])
        return {item.broker_id for item in ask(address, DescribeClusterRequest(), 1, DescribeClusterResponse).brokers}

    def _partition(self, topic: str, partition: int) -> MetadataResponsePartition:
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
        (described,) = self._ask(request, 12, MetadataResponse).topics
        found = [item for item in described.partitions if item.partition_index == partition]
        return found[0] if found else MetadataResponsePartition(partition_index=partition, leader_id=-1)

    def _ask(self, request: Any, version: int, response: type[T]) -> T:
        """The answer of any broker that runs. Raises ConnectionError."""
        for broker in self._processes:
            try:
                return ask(("127.0.0.1", self.ports[broker]), request, version, response)
            except OSError:
                continue
        raise ConnectionError("no broker answers")


def ask(address: tuple[str, int], request: Any, version: int, response: type[T]) -> T:
    """One request on a connection of its own. Raises OSError."""
    body = request_header(request.KEY, version, 1, "tools") + codec(type(request), version).encode(request)
    with socket.create_connection(address, timeout=ANSWER_S_MAX) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        stream = connection.makefile("rb")
        frame = stream.read(int.from_bytes(stream.read(4), "big"))
    if not frame:
        raise ConnectionError("the broker closed the connection")
    _, at = read_response_header(frame, request.KEY, version)
    return codec(response, version).decode(frame, at)[0]


def main() -> int:
    folder = Path(".cluster")
    try:
        with Cluster(folder, ports=(9092, 9093, 9094)) as cluster:
            print(f"bootstrap.servers={cluster.bootstrap}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    except (Missing, TimeoutError) as failure:
        print(f"cluster: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
