"""A worker of Kafka Connect (distributed) as a process, with its REST API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from tests.interop.java_kit import JavaProgram
from tests.interop.kit import until
from tools.peer.jars import lib
from tools.ports import free_port

MAIN: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
STRINGS: Final = "org.apache.kafka.connect.storage.StringConverter"
START_S, ANSWER_S = 60, 30
STARTING, REBALANCING = 404, 409

# exactly-once sources; a dead worker is noticed after 1.5 s, and its work is given to others at once
SETTINGS: Final = {
    "key.converter": STRINGS,
    "value.converter": STRINGS,
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.storage.partitions": "2",
    "status.storage.partitions": "1",
    "exactly.once.source.support": "enabled",
    "scheduled.rebalance.max.delay.ms": "0",
    "session.timeout.ms": "1500",
    "heartbeat.interval.ms": "300",
    "offset.flush.interval.ms": "500",
    "plugin.discovery": "service_load",
    "connector.client.config.override.policy": "All",
}


class Worker(JavaProgram):
    """`with Worker(bootstrap, cluster, folder) as worker: worker.send("GET", "/connectors")`."""

    def __init__(self, bootstrap: str, cluster: str, folder: Path) -> None:
        self.port = free_port()
        topics = {f"{kind}.storage.topic": f"{cluster}-{kind}" for kind in ("config", "offset", "status")}
        own = {
            "bootstrap.servers": bootstrap,
            "group.id": cluster,
            "listeners": f"http://127.0.0.1:{self.port}",
            "plugin.path": str(lib()),
        }
        config = folder / f"worker-{self.port}.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in {**SETTINGS, **topics, **own}.items()))
        super().__init__(MAIN, str(config))

    def send(self, method: str, path: str, body: object = None) -> Any:
        """What the worker answers, repeated while it starts or rebalances. Raises HTTPError for another refusal."""
        answers: list[Any] = []

        def answered() -> bool:
            try:
                answers.append(self._request(method, path, body))
            except urllib.error.HTTPError as refused:
                if refused.code not in (STARTING, REBALANCING):
                    raise
                return False
            except OSError:  # it does not listen yet
                return False
            return True

        until(answered, f"{method} {path}", seconds=START_S)
        return answers[0]

    def _request(self, method: str, path: str, body: object) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            return json.loads(answer.read() or b"null")

    def status(self, connector: str) -> dict[str, Any]:
        """The state of the connector and of its tasks, with their workers."""
        return self.send("GET", f"/connectors/{connector}/status")  # type: ignore[no-any-return]
