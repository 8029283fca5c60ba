"""Links to all brokers, by node and purpose; bootstrap addresses are nodes with negative numbers.

Laws
    A broker that has another address now gets another connection.
    Whoever has least to do is asked: connected before not connected, and one that failed just now last of all.
    When no known broker answers, the bootstrap addresses are asked again (KIP-899).
    A bootstrap connection becomes that of the broker which listens at its address, or is closed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

from rota.client.config import ClientConfig
from rota.client.errors import TimedOut, Unreachable
from rota.client.network.broker_connection import Link
from rota.client.network.connection import Connection
from rota.client.network.metadata import BrokerInfo, Metadata


class Brokers:
    """`open(node, lane)` gives the connection; `close()` ends them all. `broke()` is called when one is lost."""

    def __init__(self, config: ClientConfig, known: Callable[[], Metadata], broke: Callable[[], None]) -> None:
        self._config = config
        self._known = known
        self._broke = broke
        self._bootstrap = {-1 - at: BrokerInfo(-1 - at, host, port) for at, (host, port) in enumerate(config.bootstrap)}
        self._links: dict[tuple[int, str], Link] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    def ready(self, node: int, lane: str) -> Connection | None:
        """The connection, when there is one."""
        link = self._links.get((node, lane))
        found = link.connection if link is not None else None
        return found if found is not None and found.is_open else None

    async def open(self, node: int, lane: str = "") -> Connection:
        """The connection, dialled when there is none. Raises Unreachable, TimedOut."""
        return self.ready(node, lane) or await self._link(node, lane).open()

    async def any_lane(self, node: int) -> Connection:
        """A connection to that broker, whatever for. Raises Unreachable, TimedOut."""
        opened = (link.connection for (of, _), link in self._links.items() if of == node and link.is_open)
        return next((one for one in opened if one is not None), None) or await self.open(node)

    def least_busy(self) -> int:
        """The node to ask when any will do."""
        return self._by_load(self._known().brokers or self._bootstrap)[0]

    async def ask_any(self, request: Any, refused: Callable[[Any], str | None] = lambda _: None) -> Any:
        """One answer from whoever gives one that is not `refused`. Raises Unreachable that names every address."""
        failures: list[str] = []
        nodes = self._by_load(self._known().brokers)
        if not nodes or self._config.metadata_recovery_strategy == "rebootstrap":
            nodes += self._by_load(self._bootstrap)
        for node in nodes:
            try:
                connection = await self.open(node)
                answer = await connection.ask(request, self._config.request_timeout_ms / 1000)
            except (Unreachable, TimedOut) as why:
                failures.append(str(why))
                continue
            told = refused(answer)
            if told is None:
                return answer
            failures.append(f"broker {connection.peer} said {told}")
        raise Unreachable("; ".join(failures))

    def told(self) -> str:
        """What is wrong with each broker that does not answer, for people."""
        troubles = [trouble for link in self._links.values() if (trouble := link.trouble) is not None]
        tried = {node for node, _ in self._links}
        if not self._known().brokers:
            troubles += [
                f"broker {one} was not tried yet" for node, one in self._bootstrap.items() if node not in tried
            ]
        return "; ".join(troubles)

    def learned(self) -> None:
        """The cluster has told its brokers: bootstrap connections are theirs now."""
        here = {(broker.host, broker.port): broker for broker in self._known().brokers.values()}
        for (node, lane), link in list(self._links.items()):
            if node >= 0:
                continue
            broker = here.get((link.broker.host, link.broker.port))
            if broker is not None and link.is_open and (broker.id, lane) not in self._links:
                link.renamed(broker)
                self._links[broker.id, lane] = self._links.pop((node, lane))
            elif here and not link.in_flight:
                self._leave(self._links.pop((node, lane)), "only its address was needed")

    async def close(self) -> None:
        """Every connection; who waits gets Unreachable."""
        self._closed = True
        links, self._links = list(self._links.values()), {}
        await asyncio.gather(*(link.close("the client was closed") for link in links), *self._leaving)

    def _by_load(self, brokers: Iterable[int]) -> list[int]:
        nodes = list(brokers)
        random.shuffle(nodes)
        return sorted(nodes, key=self._load)

    def _load(self, node: int) -> tuple[bool, bool, int]:
        links = [link for (of, _), link in self._links.items() if of == node]
        return (
            any(link.rests for link in links),
            not any(link.is_open for link in links),
            sum(link.in_flight for link in links),
        )

    def _link(self, node: int, lane: str) -> Link:
        if self._closed:
            raise Unreachable("the client is closed")
        known = self._known().brokers
        broker = self._bootstrap.get(node) or known.get(node)
        if broker is None:
            names = ", ".join(map(str, known.values())) or "none"
            raise Unreachable(f"no broker {node} is known in the cluster; known are: {names}")
        link = self._links.get((node, lane))
        if link is None or (link.broker.host, link.broker.port) != (broker.host, broker.port):
            if link is not None:
                self._leave(link, f"broker {node} has another address now")
            link = self._links[node, lane] = Link(self._config, broker, lambda _: self._broke())
        return link

    def _leave(self, link: Link, why: str) -> None:
        task = asyncio.get_running_loop().create_task(link.close(why))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
