"""A cluster of processes whose network can be cut, and whose machines can lose their power."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self

from rota.coordinator.log.boot import BOOT_FILE
from rota.protocol.records.batch import headers
from tools import fault_network, zookeeper
from tools.cluster import Cluster
from tools.fault_network import FaultNetwork, Ports, host_of
from tools.ports import free_port
from tools.zookeeper import ZooKeeperServer

FULL_BYTES: Final = 4_096  # of a file, while the disk is full: checkpoints can be written, logs cannot


def missing() -> str | None:
    """Why there can be no such cluster here; None when there can."""
    return zookeeper.missing() or fault_network.missing()


class NetworkedCluster(Cluster):
    """Its brokers reach each other and ZooKeeper through `network` only; clients reach them without it."""

    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        server = ZooKeeperServer(folder / "zookeeper", free_port())
        super().__init__(folder, properties=properties, zookeeper=server)
        ports = {broker: Ports(free_port(), free_port(), free_port()) for broker in self.brokers}
        self.network = FaultNetwork(ports, server.port)

    def __enter__(self) -> Self:
        self.network.__enter__()
        try:
            return super().__enter__()
        except BaseException as error:
            self.network.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.network.__exit__(kind, error, trace)

    def _config(self, broker: int) -> dict[str, str]:
        ports, own = self.network.ports[broker], f"PLAINTEXT://127.0.0.1:{self.ports[broker]}"
        return {
            **super()._config(broker),
            "listeners": f"{own},INTERNAL://127.0.0.1:{ports.tcp}",
            "advertised.listeners": f"{own},INTERNAL://{host_of(broker)}:{ports.tcp}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "rota.swim.port": str(ports.udp),
            "zookeeper.connect": f"{host_of(broker)}:{ports.zookeeper}",
        }

    @contextmanager
    def full_disk(self, broker: int) -> Iterator[None]:
        """No file of that broker grows beyond `FULL_BYTES`."""
        process = self._processes[broker]
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (FULL_BYTES, hard))
        try:
            yield
        finally:
            if process.poll() is None:
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))

    def lose_power(self, broker: int, topic: str, ends: Mapping[int, int], random: Random) -> None:
        """Do to the folder of a killed broker what a power cut does: cut the logs anywhere behind these ends.

        `ends` are by partition the first offset that no client was told of. Its next start is one of another boot.
        """
        folder = self.folder / f"data-{broker}"
        (folder / BOOT_FILE).write_text("before the machine lost its power")
        for partition, end in ends.items():
            for path in (folder / f"{topic}-{partition}").glob("*.log"):
                data = path.read_bytes()
                positions = [position for position, header in headers(data, cut=True) if header.next_offset > end]
                first = min(positions, default=len(data))
                with path.open("r+b") as log:
                    log.truncate(random.choice((first, random.randint(first, len(data)))))
