"""The brokers of one test run, on one event loop: a broker alone, or a cluster over a metadata tree in memory.

Law
    KT11 A cluster that loses a broker has its internal topics, as one in production has: the first group or
         transaction after the loss has a coordinator. They cannot be created with too few brokers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from rota.coordinator.config.presets import PRESETS
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.runtime.routing import shard_of
from rota.testing.hosted_broker import HostedBroker, NotRunning
from rota.testing.reply_rules import ReplyRules

WAIT_S: Final = 20.0
POLL_S: Final = 0.002
REPLICAS_MAX: Final = 3
PROPERTIES: Final = {
    **PRESETS["dev"],
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "log.retention.ms": "-1",  # the clock may be days ahead of the clients that stamp records
    # a member of the consumer protocol learns of a rebalance with its next heartbeat, and has its interval from here
    "group.consumer.min.heartbeat.interval.ms": "1",
    "group.consumer.min.session.timeout.ms": "1",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


class Host:
    """`count` brokers with the ids 1, 2, … (a broker alone keeps Kafka's default id)."""

    def __init__(
        self, properties: Mapping[str, str] | None = None, *, count: int = 1, data: Path | None = None, seed: int = 0
    ) -> None:
        """`data` keeps the logs in that folder. `seed` draws which replies a fault with a probability applies to."""
        self.rules = ReplyRules(seed)
        self._tree = SharedTree() if count > 1 else None
        self._brokers: dict[int, HostedBroker] = {}
        for broker_id in range(1, count + 1):
            own = self._own_properties(broker_id, count) if count > 1 else {}
            folder = None if data is None else data / f"broker-{broker_id}" if count > 1 else data
            hosted = HostedBroker(
                {**PROPERTIES, **own, **(properties or {}), **_folder(folder)},
                rules=self.rules,
                data=folder,
                tree=self._tree,
            )
            self._brokers[hosted.broker_id] = hosted

    def __iter__(self) -> Iterator[HostedBroker]:
        return iter(self._brokers.values())

    async def start(self) -> None:
        """Start the brokers; in a cluster wait until each knows all. Raises what `Broker.start` raises."""
        try:
            for hosted in self:
                await hosted.start()
            if self._tree is not None:
                await until(self._all_see_each_other, "the brokers did not find each other")
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop the brokers in order and forget what they kept in memory."""
        for hosted in self:
            await hosted.stop()
            hosted.discard()
        if self._tree is not None:
            await self._tree.close()

    @property
    def bootstrap(self) -> str:
        """HOST:PORT,... of all brokers, also of those that are not running."""
        return ",".join(hosted.address for hosted in self)

    def get(self, broker_id: int | None = None) -> HostedBroker:
        """Return the broker of that id; None names the only one. Raises NotRunning for an unknown id."""
        if broker_id is None and len(self._brokers) == 1:
            return next(iter(self))
        hosted = self._brokers.get(broker_id or 0)
        if hosted is None:
            raise NotRunning(f"no broker {broker_id}; there are {', '.join(map(str, self._brokers))}")
        return hosted

    def running(self) -> HostedBroker:
        """Return a broker that runs. Raises NotRunning."""
        hosted = next((each for each in self if each.is_running), None)
        if hosted is None:
            raise NotRunning("no broker is running")
        return hosted

    def leader(self, topic: str, index: int) -> HostedBroker | None:
        """Return the broker that leads the partition, as the running ones know it; None when none does."""
        for each in self:
            state = each.broker.topics.partition(topic, index) if each.is_running else None
            leader = None if state is None else self._brokers.get(state.leader)
            if leader is not None and leader.is_running:
                return leader
        return None

    async def ensure_internal_topics(self) -> None:
        """KT11. Create those of a cluster, if all of its brokers run."""
        if self._tree is not None and all(each.is_running for each in self):
            broker = self.running().broker
            await broker.groups.ensure_topic()
            await broker.transactions.ensure_topic()

    def offsets_partition(self, group_id: str) -> int:
        """Return the partition of the offsets topic that the group belongs to."""
        return shard_of(group_id, len(self.running().broker.groups.shards))

    def coordinator(self, group_id: str) -> HostedBroker | None:
        """Return the broker that coordinates the group; None while none does."""
        return self.leader(CONSUMER_OFFSETS, self.offsets_partition(group_id))

    def _all_see_each_other(self) -> bool:
        from rota.coordinator.cluster import Cluster  # a broker alone does not pay for it

        return all(
            set(hosted.broker.topics.brokers) == set(self._brokers)
            and isinstance(cluster := hosted.broker.metadata, Cluster)
            and cluster.has_received_from_all
            for hosted in self
        )

    @staticmethod
    def _own_properties(broker_id: int, count: int) -> dict[str, str]:
        copies = str(min(count, REPLICAS_MAX))
        return {
            "node.id": str(broker_id),
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": copies,
            "default.replication.factor": copies,
        }


async def until(condition: Callable[[], bool], why: str, within_s: float = WAIT_S) -> None:
    """Wait until the condition holds. Raises TimeoutError with `why`."""
    try:
        async with asyncio.timeout(within_s):
            while not condition():
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise TimeoutError(why) from None


def _folder(data: Path | None) -> dict[str, str]:
    return {} if data is None else {"log.dirs": str(data)}
