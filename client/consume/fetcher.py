"""Fetches from all leaders of the assigned partitions, ahead of the user; a shell around fetch_session.py.

Laws
    What is buffered is bounded: one answer per broker, nothing is fetched for a partition that still has records
    waiting or is paused.
    A record that was taken is never given again, and none is left out, whatever is cancelled when.
"""

from __future__ import annotations

from rota.client.config import ConsumerConfig
from rota.client.consume.positions import Positions
from rota.client.net.cluster import Cluster
from rota.client.types import ConsumerRecord, TopicPartition


class Fetcher:
    """`start()`, then `take` and `wait` in turn; `await close()`."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig, positions: Positions) -> None:
        raise NotImplementedError

    def start(self) -> None:
        """Tasks begin; positions may still be empty."""
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    def take(self, records_max: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """What is there, up to `records_max` records, and the positions moved behind it. Never waits.

        Raises what the fetches met for an assigned partition, once: OffsetOutOfRange and NoOffset (auto_offset_reset=none),
        UnknownTopic, CorruptRecords, LogTruncated, BrokerError. A reset by policy is not an error: it marks the position.
        """
        raise NotImplementedError

    async def wait(self) -> None:
        """Until `take` has something to give or to raise, `wake` was called, or positions are missing."""
        raise NotImplementedError

    def wake(self) -> None:
        """Ends `wait`; positions, pauses or assignments have changed: look again what to fetch."""
        raise NotImplementedError
