"""A broker alone: the embedded metadata store, and this broker as the only one, the controller and every leader."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

import structlog

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.registration import Registration, claim_controller, register
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.network.connections import Connections
from rota.coordinator.replica.partitions import Partition, Partitions

log = structlog.get_logger("rota.metadata")

ID_BYTES: Final = 16


class Standalone:
    """The metadata of one broker in a journal file, or in memory."""

    has_strays = False  # a journal that was lost would make all logs strays

    def __init__(self, config: BrokerConfig, journal: Path | None, cluster_id: str | None) -> None:
        """`cluster_id` is that of the log folder; None or "" for a new one. Raises StoreFailed."""
        self._config = config
        self._store = EmbeddedStore(journal)
        self.topics = Topics(
            self._store, broker_id=config.node_id, fresh_uuid=lambda: os.urandom(ID_BYTES), cluster_id=cluster_id
        )

    async def open(
        self,
        *,
        was_clean: bool,
        has_possible_data_loss: bool = False,
        failed_logs: Collection[tuple[str, int]] = (),
        registered_epoch: int = -1,
        note_registered: Callable[[int], None] | None = None,
    ) -> None:
        """Load the topics. After a crash every partition gets a new leader epoch. Raises StoreFailed."""
        await self.topics.load()
        if not was_clean:
            await self.topics.bump_leader_epochs()

    async def stop_following(self) -> None:
        """There is no other broker to follow."""

    async def import_journal(self, journal: Path | None) -> None:
        """The journal is this broker's own."""

    async def join(self, endpoints: Sequence[Endpoint], wall_ms: int) -> None:
        """Register the broker, for tools that read the store. Raises StoreFailed."""
        config = self._config
        registration = Registration(endpoints, rack=config.broker_rack)
        await register(self._store, config.node_id, registration, wall_ms=wall_ms)
        await claim_controller(self._store, config.node_id, wall_ms=wall_ms)

    @staticmethod
    def reachable(endpoint: Endpoint) -> Endpoint:
        """EP1. Each client gets the address that it used."""
        return endpoint

    isr_writer = None  # the ISR of every partition is this broker
    lost_brokers = None  # there is no other broker
    leader_throttle = None  # there is no follower

    def host(self, partitions: Partitions) -> None:
        """Do nothing: a broker alone replicates nothing."""

    def storage_changed(self, partition: Partition) -> None:
        """Do nothing: a broker alone replicates nothing."""

    def reconfigure(self) -> None:
        """Do nothing: a broker alone replicates nothing."""

    async def hand_over(
        self, name: str, index: int, *, lost_records: bool = False, cannot_recover: bool = False
    ) -> None:
        """There is no other broker to hand over to."""

    def guard(self, connections: Connections) -> None:
        """A single broker is never declared dead."""

    async def leave(self) -> None:
        """There is no other broker to hand over to."""

    async def close(self) -> None:
        """Close the store. Raises StoreFailed if it has failed: the content of the medium is not known."""
        await self._store.close()
        if self._store.failed is not None:
            raise StoreFailed(self._store.failed)

    async def crash(self) -> None:
        """Close the journal, which holds every change that was acknowledged."""
        await self._store.close()

    async def abandon(self) -> None:
        """Close the store of a broker that could not start."""
        await self._store.close()

    def replicas_for(self, configured: int) -> int:
        """The replicas of an internal topic: as many as there are brokers, whatever the replication factor says."""
        live = len(self.topics.brokers)
        if configured > live:
            log.info("Offsets topic gets fewer replicas than configured", replicas=live, configured=configured)
        return min(configured, live)
