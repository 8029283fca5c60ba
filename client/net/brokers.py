"""Links to all brokers, by node and purpose; bootstrap addresses are nodes with negative numbers.

Laws
    A broker that has another address now gets another connection.
    Whoever has least to do is asked: connected before not connected, and one that just failed last of all.
    When no known broker answers, the bootstrap addresses are asked again (KIP-899).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from rota.client.config import ClientConfig
from rota.client.errors import KafkaError, TimedOut, Unreachable
from rota.client.net.connection import Connection
from rota.client.net.link import Link
from rota.client.net.metadata import BrokerInfo, Metadata


class Brokers:
    """`open(node, lane)` is the connection; `close()` ends them all."""

    def __init__(self, config: ClientConfig, known: Callable[[], Metadata]) -> None:
        self._config = config
        self._known = known
        self._bootstrap = {-1 - at: BrokerInfo(-1 - at, host, port) for at, (host, port) in enumerate(config.bootstrap)}
        self._links: dict[tuple[int, str], Link] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self, node: int, lane: str = "") -> Connection:
        """Raises Unreachable, TimedOut."""
        link = self._links.get((node, lane))
        if link is not None and link.is_open and link.connection is not None:
            return link.connection
        return await self._link(node, lane).open()

    def least_busy(self) -> int:
        """The node to ask when any will do."""
        return self._by_load(self._known().brokers or self._bootstrap)[0]

    async def ask_any(self, request: Any) -> Any:
        """One answer from whoever gives one. Raises Unreachable that names every address."""
        failures: list[str] = []
        nodes = self._by_load(self._known().brokers)
        if not nodes or self._config.metadata_recovery_strategy == "rebootstrap":
            nodes += self._by_load(self._bootstrap)
        for node in nodes:
            try:
                connection = await self.open(node)
                return await connection.ask(request, self._config.request_timeout_ms / 1000)
            except (Unreachable, TimedOut) as why:
                failures.append(str(why))
        raise Unreachable("; ".join(failures))

    async def close(self) -> None:
        self._closed = True
        links, self._links = list(self._links.values()), {}
        await asyncio.gather(*(link.close("the client was closed") for link in links), *self._leaving)

    def _by_load(self, brokers: dict[int, BrokerInfo]) -> list[int]:
        nodes = list(brokers)
        random.shuffle(nodes)
        return sorted(nodes, key=self._load)

    def _load(self, node: int) -> tuple[bool, bool, int]:
        links = [link for (of, _), link in self._links.items() if of == node]
        rests = any(link.rests for link in links)
        return rests, not any(link.is_open for link in links), sum(link.in_flight for link in links)

    def _link(self, node: int, lane: str) -> Link:
        if self._closed:
            raise Unreachable("the client is closed")
        broker = self._bootstrap.get(node) or self._known().brokers.get(node)
        if broker is None:
            raise Unreachable(f"no broker {node} is known in the cluster")
        link = self._links.get((node, lane))
        if link is None or (link.broker.host, link.broker.port) != (broker.host, broker.port):
            if link is not None:
                self._leave(link)
            link = self._links[node, lane] = Link(self._config, broker, lambda _: None)
        return link

    def _leave(self, link: Link) -> None:
        task = asyncio.get_running_loop().create_task(link.close(f"broker {link.broker} has another address now"))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


__all__ = ["Brokers", "KafkaError"]
