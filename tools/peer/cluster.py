"""Three Kafka brokers in KRaft mode, each broker and controller, to compare a cluster with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.peer.broker import CLUSTER_ID, HEAP, SETTINGS, STOP_S, wait_until_it_listens
from tools.peer.jars import fetch, java
from tools.ports import free_port

SIZE = 3
REPLICATED = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")


class KafkaCluster:
    """`with KafkaCluster(folder) as cluster: cluster.bootstrap`. Broker ids are 1, 2, 3."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {broker: free_port() for broker in range(1, SIZE + 1)}
        self._control = {broker: free_port() for broker in self.ports}
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def __enter__(self) -> Self:
        """Raises Missing, TimeoutError."""
        fetch()
        try:
            for broker in self.ports:
                self._start(broker)
            for port, process in zip(self.ports.values(), self._processes, strict=True):
                wait_until_it_listens(port, process)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """SIGTERM; SIGKILL for those that have not ended after STOP_S."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, broker: int) -> None:
        config = self.folder / f"kafka-{broker}.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self._settings(broker).items()))
        heap = os.environ.get("ROTA_PEER_HEAP", HEAP)
        with (self.folder / f"kafka-{broker}.log").open("wb") as log:
            formatted = java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config))
            subprocess.run(formatted, check=True, stdout=log, stderr=log)
            command = java("kafka.Kafka", str(config), heap=heap, quiet="warn")
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def _settings(self, broker: int) -> dict[str, str]:
        port, control = self.ports[broker], self._control[broker]
        voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in self._control.items())
        return {
            **SETTINGS,
            **{f"{topic}.replication.factor": str(SIZE) for topic in REPLICATED},
            "node.id": str(broker),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(self.folder / f"kafka-data-{broker}"),
        }
