"""Brokers of one cluster as processes on this machine, Rota's or Kafka's: started, killed and frozen one by one.

`BrokerProcesses` is what benchmarks and chaos tests know of a cluster. Its subclasses say how a broker starts and where
the cluster keeps its metadata: `tools.cluster.Cluster` in ZooKeeper, `tools.peer.cluster.KafkaCluster` in KRaft.
"""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import time
from abc import ABC, abstractmethod
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

T = TypeVar("T")

START_S_MAX: Final = 90.0  # of a machine that other work keeps busy
STOP_S_MAX: Final = 30.0
ANSWER_S_MAX: Final = 2.0
POLL_S: Final = 0.01


class BrokerProcesses(ABC):
    """`with … as cluster: cluster.bootstrap`. `ports` are those of the brokers that may run, by broker id."""

    def __init__(self, folder: Path, ports: Mapping[int, int]) -> None:
        self.folder = folder
        self.ports = dict(ports)
        self.brokers = list(self.ports)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @abstractmethod
    def _command(self, broker: int) -> list[str]:
        """Write what the broker needs to start; return its command line."""

    @abstractmethod
    def start_metadata(self) -> None:
        """Start the processes that keep the cluster's metadata, if they are others than the brokers."""

    @abstractmethod
    def kill_metadata(self) -> None: ...

    @abstractmethod
    def pause_metadata(self) -> None:
        """SIGSTOP: connections stay open, and nothing answers."""

    @abstractmethod
    def resume_metadata(self) -> None: ...

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def running(self) -> set[int]:
        """The brokers that were started and neither stopped nor killed."""
        return set(self._processes)

    @property
    def pids(self) -> list[int]:
        """The process ids of the brokers that run."""
        return [process.pid for process in self._processes.values()]

    def __enter__(self) -> Self:
        """Raises Missing, TimeoutError."""
        try:
            self.start_metadata()
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
        self.kill_metadata()

    # ---- one broker

    def start(self, broker: int, *, wait: bool = True) -> None:
        """Start it; with `wait`, return when it is a live broker of the cluster. Raises TimeoutError."""
        command = self._command(broker)
        with self._log_file(broker).open("ab") as log:
            self._processes[broker] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
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
        raise TimeoutError(f"broker {broker} did not start: {self.log(broker)[-3000:]}")

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
        return self._log_file(broker).read_text(errors="replace")

    def _log_file(self, broker: int) -> Path:
        return self.folder / f"broker-{broker}.log"

    # ---- what the cluster says

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads; -1 for none."""
        return self._partition(topic, partition).leader_id

    def leader_epoch(self, topic: str, partition: int = 0) -> int:
        return self._partition(topic, partition).leader_epoch

    def isr(self, topic: str, partition: int = 0, *, seen_by: int | None = None) -> set[int]:
        """The replicas in sync, as that broker knows them, or any that runs."""
        return set(self._partition(topic, partition, seen_by).isr_nodes)

    def coordinator(self, group: str) -> int:
        """The broker that coordinates the group; -1 while there is none."""
        return self._coordinator(0, group)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates the transactional id; -1 while there is none."""
        return self._coordinator(1, transactional_id)

    def _coordinator(self, key_type: int, key: str) -> int:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
        response = self._send_request(request, 4, FindCoordinatorResponse)
        return response.coordinators[0].node_id

    def _seen_by(self, broker: int) -> set[int]:
        """The live brokers, as that one knows them. Raises OSError."""
        address = ("127.0.0.1", self.ports[broker])
        return {
            item.broker_id
            for item in send_request(address, DescribeClusterRequest(), 1, DescribeClusterResponse).brokers
        }

    def _partition(self, topic: str, partition: int, seen_by: int | None = None) -> MetadataResponsePartition:
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
        (described,) = self._send_request(request, 12, MetadataResponse, seen_by).topics
        found = [item for item in described.partitions if item.partition_index == partition]
        return found[0] if found else MetadataResponsePartition(partition_index=partition, leader_id=-1)

    def _send_request(self, request: Any, version: int, response: type[T], only: int | None = None) -> T:
        """The answer of `only`, or of any broker that runs. Raises ConnectionError."""
        for broker in self._processes if only is None else (only,):
            try:
                return send_request(("127.0.0.1", self.ports[broker]), request, version, response)
            except OSError:
                continue
        raise ConnectionError("no broker answers")


def send_request(address: tuple[str, int], request: Any, version: int, response: type[T]) -> T:
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
