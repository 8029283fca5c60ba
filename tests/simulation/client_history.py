"""The record of what producers and consumers did, and the checks of the laws on it. Pure.

Laws
    An acknowledged record is at its offset, and the group receives it at least once.
    Records of an idempotent producer are in each partition in the order of sending, each once.
    C1  The client commits only records that an earlier call has returned.
    Within one generation a partition has one owner, which receives its records in order and without gaps.
    A partition is assigned to another member after its owner has been told that it is revoked.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

from rota.client.types import ConsumerRecord, GroupMetadata, TopicPartition


@dataclass(slots=True)
class Written:
    """What one producer was told of its records: number -> (partition, offset). `sent` counts all."""

    name: str
    is_idempotent: bool
    sent: int = 0
    acked: dict[int, tuple[TopicPartition, int]] = field(default_factory=dict)
    lost: dict[int, bool] = field(default_factory=dict)  # number -> whether it may have been written

    def value(self, number: int) -> bytes:
        return f"{self.name}/{number}".encode()


class ClientHistory:
    """One for a world."""

    def __init__(self, *, generations_begin_again: bool = False) -> None:
        """`generations_begin_again`: a generation may have other members later, so that it says nothing of owners."""
        self._generations_begin_again = generations_begin_again
        self.writers: list[Written] = []
        self.handed: dict[TopicPartition, set[int]] = defaultdict(set)  # to anybody
        self.done: dict[TopicPartition, set[int]] = defaultdict(set)  # and worked through
        self.values: dict[tuple[TopicPartition, int], bytes | None] = {}
        self.committed: dict[TopicPartition, int] = defaultdict(int)  # the furthest that was asked for
        self.owners: dict[tuple[int, TopicPartition], str] = {}
        self.holders: dict[TopicPartition, str] = {}  # who was assigned it last
        self.commits = self.rebalances = 0

    # ---- consumers

    def owns(self, group: GroupMetadata, partitions: frozenset[TopicPartition]) -> None:
        """A member was assigned these. A static one keeps what it had when it comes back under another member id."""
        self.rebalances += 1
        if self._generations_begin_again:
            return
        name = group.group_instance_id or group.member_id
        for partition in partitions:
            owner = self.owners.setdefault((group.generation_id, partition), name)
            assert owner == name, f"{partition} belongs to {owner} and to {name} in generation {group.generation_id}"

    def takes(self, who: str, partitions: tuple[TopicPartition, ...]) -> None:
        """A member begins with these."""
        self.holders.update(dict.fromkeys(partitions, who))

    def gives_up(self, who: str, partitions: tuple[TopicPartition, ...]) -> None:
        """A member that goes on has these revoked: nobody else has begun with them."""
        for partition in partitions:
            holder = self.holders.get(partition)
            assert holder == who, f"{who} has {partition} revoked after {holder} was assigned it"

    def hands(self, records: list[ConsumerRecord]) -> None:
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            self.handed[partition].add(record.offset)
            before = self.values.setdefault((partition, record.offset), record.value)
            assert before == record.value, f"{partition}@{record.offset} was {before!r}, is {record.value!r}"

    def finishes(self, records: list[ConsumerRecord]) -> None:
        for record in records:
            self.done[TopicPartition(record.topic, record.partition)].add(record.offset)

    def commit(self, partition: TopicPartition, offset: int, who: str) -> None:
        """C1: a commit is asked for."""
        self.commits += 1
        for at in range(self.committed[partition], offset):
            assert at in self.done[partition], (
                f"{who} commits {partition} up to {offset}, though nobody is done with {at} "
                f"({'handed out' if at in self.handed[partition] else 'never handed out'})"
            )
        self.committed[partition] = max(self.committed[partition], offset)

    # ---- the end

    def unread(self) -> list[str]:
        """What was acknowledged and not handed to anybody."""
        return [
            f"{writer.value(number).decode()} at {partition}@{offset}"
            for writer in self.writers
            for number, (partition, offset) in writer.acked.items()
            if offset >= 0 and offset not in self.handed[partition]
        ]

    def check_log(self, log: dict[TopicPartition, dict[int, bytes]]) -> None:
        """`log` is what lies in the partitions."""
        for writer in self.writers:
            for number, (partition, offset) in writer.acked.items():
                if offset >= 0:
                    found = log[partition].get(offset)
                    assert found == writer.value(number), (
                        f"{writer.name}/{number} should be {partition}@{offset}, where {found!r} is"
                    )
        for (partition, offset), value in self.values.items():
            assert log[partition][offset] == value
        for partition, records in log.items():
            for writer in self.writers:
                self._check_order(writer, partition, records)

    @staticmethod
    def _check_order(writer: Written, partition: TopicPartition, records: dict[int, bytes]) -> None:
        mine = f"{writer.name}/".encode()
        numbers = [int(value[len(mine) :]) for value in records.values() if value.startswith(mine)]
        if writer.is_idempotent:
            assert numbers == sorted(set(numbers)), f"{writer.name} in {partition}: {_disorder(numbers)}"
        known = set(numbers)
        refuted = [n for n, maybe in writer.lost.items() if not maybe and n in known]
        assert not refuted, f"{writer.name} in {partition}: said not to be written, and there: {refuted}"


def _disorder(numbers: list[int]) -> str:
    bad = [(a, b) for a, b in pairwise(numbers) if b <= a]
    return f"out of order or twice: {bad}"
