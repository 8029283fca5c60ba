"""The test cluster of sarama's functional tests: brokers behind fault proxies, and `docker compose` for them."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.cluster import Cluster
from tools.ports import free_port

# as in sarama's docker-compose.yml
PROPERTIES = {
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "auto.create.topics.enable": "false",
    "group.min.session.timeout.ms": "1000",
}
# `docker compose start|stop kafka-N` and `docker compose logs … kafka-N`
SCRIPT = """#!{python}
import socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({path!r})
    connection.sendall(" ".join(sys.argv[2:3] + sys.argv[-1:]).encode())
    connection.shutdown(socket.SHUT_WR)
    sys.stdout.write(connection.makefile("rb").read().decode())
"""


class ProxiedCluster(Cluster):
    """Brokers that name their proxies to clients, and reach each other without them."""

    def __init__(self, folder: Path, advertised: Mapping[int, int]) -> None:
        """`advertised` is the port of each broker's proxy; the brokers are 1, 2, ..."""
        super().__init__(folder, len(advertised), properties=PROPERTIES)
        self._advertised = advertised
        self._internal = {broker: free_port() for broker in self.brokers}

    def _config(self, broker: int) -> dict[str, str]:
        internal = f"INTERNAL://127.0.0.1:{self._internal[broker]}"
        return {
            **super()._config(broker),
            "broker.rack": str(broker),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker]},{internal}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._advertised[broker]},{internal}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
        }


@contextmanager
def docker(cluster: Cluster, folder: Path) -> Iterator[str]:
    """A PATH whose `docker` starts and stops brokers of the cluster, and prints their logs."""
    with tempfile.TemporaryDirectory(prefix="rota-") as short, socket.socket(socket.AF_UNIX) as listener:
        path = f"{short}/compose"
        listener.bind(path)
        listener.listen()
        programs = folder / "bin"
        programs.mkdir()
        (programs / "docker").write_text(SCRIPT.format(python=sys.executable, path=path))
        (programs / "docker").chmod(0o755)
        server = threading.Thread(target=_serve, args=(listener, cluster))
        server.start()
        try:
            yield f"{programs}{os.pathsep}{os.environ['PATH']}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.join()


def _serve(listener: socket.socket, cluster: Cluster) -> None:
    """Carry out one command for each connection until the listener is shut down."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            command, container = connection.makefile("rb").read().decode().split()
            connection.sendall(_command(cluster, command, int(container.removeprefix("kafka-"))).encode())


def _command(cluster: Cluster, command: str, broker: int) -> str:
    if command == "start":
        cluster.start(broker)
    elif command == "stop":
        cluster.stop(broker)
    return cluster.log(broker) if command == "logs" else ""
