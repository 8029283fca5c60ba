"""One partition's batches that wait, and what is known of where they go. Pure."""

from __future__ import annotations

from collections import deque

from rota.client.producer.batch import Batch
from rota.client.producer.sequences import Numbering
from rota.client.types import TopicPartition


class Queue:
    """`open` is the last of `batches` while it takes records; `on_wire` counts the batches in requests under way."""

    __slots__ = ("batches", "leader", "leader_epoch", "numbering", "on_wire", "open", "partition")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.batches: deque[Batch] = deque()
        self.open: Batch | None = None
        self.on_wire = 0
        self.leader: int | None = None
        self.leader_epoch = -1
        self.numbering = Numbering()

    def lead(self, leader: int | None, epoch: int) -> None:
        """Who leads, as of that leader epoch. What is older than what is known changes nothing (KIP-320, KIP-951)."""
        if epoch >= self.leader_epoch or epoch < 0:
            self.leader, self.leader_epoch = leader, max(epoch, self.leader_epoch)

    def put_back(self, batch: Batch) -> None:
        """A batch that is to be sent again goes before all that were numbered, or came, after it."""
        if not batch.is_numbered:
            self.batches.appendleft(batch)
            return
        earlier = self.numbering.before(batch)
        place = sum(1 for waiting in self.batches if waiting in earlier)
        self.batches.insert(place, batch)

    def take(self) -> Batch:
        """The first one; it takes no more records."""
        batch = self.batches.popleft()
        if batch is self.open:
            self.open = None
        return batch
