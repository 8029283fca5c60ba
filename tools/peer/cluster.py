"""Three Kafka brokers and a KRaft controller as processes, to compare a cluster with.

The controller is a process of its own, as ZooKeeper is for Rota: brokers die without it, and it is paused without them.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.broker_processes import BrokerProcesses
from tools.peer.broker import CLUSTER_ID, HEAP, SETTINGS, wait_until_it_listens
from tools.peer.jars import QUICK, fetch, java
from tools.ports import free_port

SIZE: Final = 3
CONTROLLER: Final = 100  # its node id
REPLICATED: Final = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")


class KafkaCluster(BrokerProcesses):
    """`with KafkaCluster(folder) as cluster: cluster.bootstrap`. Broker ids are 1, 2, 3. Needs Java and Maven."""

    def __init__(self, folder: Path, *, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, {broker: free_port() for broker in range(1, SIZE + 1)})
        self._controller_port = free_port()
        self._controller: subprocess.Popen[bytes] | None = None
        self._properties = dict(properties or {})

    def start_metadata(self) -> None:
        """Raises Missing, TimeoutError."""
        fetch()
        command = self._command(CONTROLLER)
        with self._log_file(CONTROLLER).open("ab") as log:
            self._controller = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until_it_listens(self._controller_port, self._controller)

    def kill_metadata(self) -> None:
        process, self._controller = self._controller, None
        if process is not None:
            process.kill()
            process.wait()

    def pause_metadata(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume_metadata(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._controller is not None, "the controller does not run"
        self._controller.send_signal(number)

    def _command(self, broker: int) -> list[str]:
        config = self.folder / f"kafka-{broker}.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self.settings(broker).items()))
        if not (self._data(broker) / "meta.properties").exists():
            with self._log_file(broker).open("ab") as log:
                formatted = java(*QUICK, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config))
                subprocess.run(formatted, check=True, stdout=log, stderr=log)
        return java("kafka.Kafka", str(config), heap=os.environ.get("ROTA_PEER_HEAP", HEAP), quiet="warn")

    def _log_file(self, broker: int) -> Path:
        return self.folder / f"kafka-{broker}.log"

    def _data(self, broker: int) -> Path:
        return self.folder / f"kafka-data-{broker}"

    def settings(self, broker: int) -> dict[str, str]:
        """Its properties, by name; those of the controller by CONTROLLER."""
        return {
            **SETTINGS,
            **{f"{topic}.replication.factor": str(SIZE) for topic in REPLICATED},
            **self._properties,
            "node.id": str(broker),
            "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{self._controller_port}",
            "log.dirs": str(self._data(broker)),
            **(self._controller_role() if broker == CONTROLLER else self._broker_role(broker)),
        }

    def _controller_role(self) -> dict[str, str]:
        return {"process.roles": "controller", "listeners": f"CONTROLLER://127.0.0.1:{self._controller_port}"}

    def _broker_role(self, broker: int) -> dict[str, str]:
        at = f"PLAINTEXT://127.0.0.1:{self.ports[broker]}"
        return {"process.roles": "broker", "broker.rack": f"rack{broker}", "listeners": at, "advertised.listeners": at}
