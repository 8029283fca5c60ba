"""One broker under test on the running event loop: started, stopped, killed and started again at its address.

Law
    KT10 No other process gets the port of a broker that is down. It is reserved by sockets that are bound and never
         listen: connections are refused, and a client that connects again and again cannot connect to itself.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import Store, StoreFailed
from rota.coordinator.metadata.tree_session import TreeSession
from rota.coordinator.network.listener import open_sockets
from rota.coordinator.storage import Disk, Memory
from rota.testing.clock import AdjustableClock
from rota.testing.reply_faults import ReplyFaults
from rota.testing.reply_rules import ReplyRules
from rota.testing.storage import FaultyDisk, KeptMemory


class NotRunning(RuntimeError):
    """The broker was killed or stopped, and a call needs it to run."""


class HostedBroker:
    """`data` keeps the logs in that folder; None keeps them in memory, from which a restarted broker reads them."""

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        rules: ReplyRules,
        data: Path | None = None,
        tree: SharedTree | None = None,
    ) -> None:
        """`tree` is the metadata store of a cluster; None for a broker that is alone."""
        self._config, self._tree, self.clock = BrokerConfig(dict(properties)), tree, AdjustableClock()
        self._session: TreeSession | None = None
        self._memory = KeptMemory(alone=tree is None) if data is None else None
        self._data = data
        self._broker: Broker | None = None
        self._reserved: list[socket.socket] = []
        self.disk = FaultyDisk()
        self.faults = ReplyFaults(rules)
        self.address = ""
        self.is_frozen = False

    @property
    def broker_id(self) -> int:
        return self._config.node_id

    @property
    def is_running(self) -> bool:
        return self._broker is not None

    @property
    def is_in_memory(self) -> bool:
        return self._memory is not None

    @property
    def broker(self) -> Broker:
        """Raises NotRunning."""
        if self._broker is None:
            raise NotRunning(f"broker {self.broker_id} is not running")
        return self._broker

    async def start(self) -> None:
        """Start, at the address of the first start. Raises what `Broker.start` raises."""
        if self._broker is not None:
            return
        if self._session is not None:
            await self._session.expire()
        self._reserve_port()
        broker = Broker(self._config, memory=True, clock=self.clock, open_store=self._opener())
        broker.storage = self._storage(broker)
        host, port = await broker.start()
        self.faults.install(broker.listener.connections)
        self.address, self._broker = f"{host}:{port}", broker

    async def stop(self) -> None:
        """Stop in order, as SIGTERM does. A broker whose disk failed stops as if it were killed."""
        if self._broker is not None:
            self.thaw()
            broker, self._broker = self._broker, None
            try:
                await broker.stop()
            except (StorageFailed, StoreFailed):
                broker.storage.abandon()

    async def kill(self) -> None:
        """End as SIGKILL does: sockets close, acknowledged records stay, the cluster notices by itself."""
        if self._broker is not None:
            self.thaw()
            broker, self._broker = self._broker, None
            if self._session is not None:
                self._session.suspend()
            await broker.listener.stop_accepting()
            await broker.abandon()

    def freeze(self) -> None:
        """Serve nothing until `thaw`: requests are received and wait, and elapsed time stands still here.

        In a cluster the failure detector still answers: the others do not take the broker for dead.
        """
        self.broker.listener.connections.suspend()
        self.clock.pause()
        self.is_frozen = True

    def thaw(self) -> None:
        """Serve what waited, and go on."""
        if self.is_frozen:
            self.is_frozen = False
            self.clock.resume()
            self.broker.listener.connections.resume()

    def discard(self) -> None:
        """Remove what a stopped broker keeps outside memory, and give up its port."""
        for reserved in self._reserved:
            reserved.close()
        self._reserved.clear()
        if self._memory is not None:
            self._memory.discard()

    def _reserve_port(self) -> None:
        """KT10. Replace port 0 of the first listener by a free port, once. Raises CannotListen."""
        first, *others = self._config.listens
        if self._reserved:
            return
        self._reserved = open_sockets(first)
        first = replace(first, port=self._reserved[0].getsockname()[1])
        self._config = self._config.changed({"listeners": ",".join(map(str, (first, *others)))})

    def _storage(self, broker: Broker) -> Disk | Memory:
        if self._memory is not None:
            return self._memory
        assert self._data is not None
        return Disk(self._data, node_id=self.broker_id, wall_ms=broker.wall_ms, system=self.disk)

    def _opener(self) -> Callable[[], Awaitable[Store]] | None:
        if self._tree is None:
            return None
        tree = self._tree

        async def open_store() -> Store:
            session = self._session = TreeSession(tree)
            return session

        return open_store
