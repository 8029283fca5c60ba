"""A cluster of three brokers and ZooKeeper as processes on this machine, for benchmarks, chaos tests and people.

`python -m tools.cluster` runs one on ports 9092 to 9094 with its data in `.cluster` until it is interrupted.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.broker_processes import BrokerProcesses
from tools.ports import free_port
from tools.zookeeper import Missing, ZooKeeperEnsemble, ZooKeeperServer

SIZE: Final = 3


class Cluster(BrokerProcesses):
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
        brokers = range(first_id, first_id + size)
        super().__init__(folder, dict(zip(brokers, ports or (free_port() for _ in brokers), strict=True)))
        self.zookeeper = zookeeper or ZooKeeperServer(folder / "zookeeper")
        self._properties = dict(properties or {})

    def start_metadata(self) -> None:
        (self.folder / "zookeeper").mkdir(parents=True, exist_ok=True)
        self.zookeeper.start()

    def kill_metadata(self) -> None:
        self.zookeeper.kill()

    def pause_metadata(self) -> None:
        self.zookeeper.pause()

    def resume_metadata(self) -> None:
        self.zookeeper.resume()

    def _command(self, broker: int) -> list[str]:
        config = self.folder / f"broker-{broker}.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self._config(broker).items()))
        rota = Path(sys.executable).with_name("rota")
        program = str(rota) if rota.exists() else shutil.which("rota") or "rota"
        return [program, "serve", "--config", str(config)]

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
