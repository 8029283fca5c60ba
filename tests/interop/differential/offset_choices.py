"""From a die to a request about offsets."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tests.interop.differential.choices import Built, generation, group_of_offsets, identity, instance, version
from tests.interop.differential.slots import Circle, Slot

from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

TopicIds = Mapping[str, bytes]
NO_TOPIC_ID = bytes(range(16))
TOO_LONG = "x" * 4097


def commit(dice: Random, circle: Circle, slot: Slot, ids: TopicIds) -> Built:
    chosen = version(dice, OffsetCommitRequest.VERSIONS, since=7)
    simple = dice.random() < 0.08  # a consumer that manages itself
    request = OffsetCommitRequest(
        group_id=group_of_offsets(dice, circle),
        generation_id_or_member_epoch=-1 if simple else generation(dice, slot),
        member_id="" if simple else identity(dice, circle, slot),
        group_instance_id=instance(dice, circle, slot) if chosen >= 7 and not simple else None,
        topics=tuple(committed(dice, circle, name, chosen, ids) for name in topics(dice, circle)),
    )
    return request, chosen


def committed(dice: Random, circle: Circle, name: str, chosen: int, ids: TopicIds) -> OffsetCommitRequestTopic:
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=dice.randint(0, 1_000_000),
            committed_leader_epoch=dice.choice([-1, 0]) if chosen >= 6 else -1,
            committed_metadata=dice.choices(["", "note", None, TOO_LONG], [60, 25, 10, 5])[0],
        )
        for index in partition_indexes(dice)
    )
    if chosen >= 10:
        return OffsetCommitRequestTopic(topic_id=ids.get(name, NO_TOPIC_ID), partitions=partitions)
    return OffsetCommitRequestTopic(name=name, partitions=partitions)


def fetch(dice: Random, circle: Circle, slot: Slot, ids: TopicIds) -> Built:
    chosen = version(dice, OffsetFetchRequest.VERSIONS, since=6)
    everything = chosen >= 2 and dice.random() < 0.3
    names = topics(dice, circle)
    stable = chosen >= 7 and dice.random() < 0.5
    if chosen < 8:
        wanted = tuple(OffsetFetchRequestTopic(name=n, partition_indexes=partition_indexes(dice)) for n in names)
        requests = None if everything else wanted
        return OffsetFetchRequest(
            group_id=group_of_offsets(dice, circle), topics=requests, require_stable=stable
        ), chosen
    groups = [circle.group_id] if dice.random() < 0.8 else [circle.group_id, f"{circle.run}unheard-of"]
    wanted_by_group = tuple(
        OffsetFetchRequestGroup(
            group_id=group_id,
            member_id=identity(dice, circle, slot) if chosen >= 9 and dice.random() < 0.3 else None,
            topics=None if everything else tuple(wanted_topic(dice, name, chosen, ids) for name in names),
        )
        for group_id in groups
    )
    return OffsetFetchRequest(groups=wanted_by_group, require_stable=stable), chosen


def wanted_topic(dice: Random, name: str, chosen: int, ids: TopicIds) -> OffsetFetchRequestTopics:
    indexes = partition_indexes(dice)
    if chosen >= 10:
        return OffsetFetchRequestTopics(topic_id=ids.get(name, NO_TOPIC_ID), partition_indexes=indexes)
    return OffsetFetchRequestTopics(name=name, partition_indexes=indexes)


def drop(dice: Random, circle: Circle) -> Built:
    """OffsetDelete."""
    wanted = tuple(
        OffsetDeleteRequestTopic(
            name=name,
            partitions=tuple(OffsetDeleteRequestPartition(partition_index=i) for i in partition_indexes(dice)),
        )
        for name in topics(dice, circle)
    )
    return OffsetDeleteRequest(group_id=group_of_offsets(dice, circle), topics=wanted), 0


def topics(dice: Random, circle: Circle) -> list[str]:
    names = [f"{circle.run}a", f"{circle.run}b", f"{circle.run}nowhere"]
    return dice.choices([names[:1], names[1:2], names[:2], names[2:]], [50, 20, 25, 5])[0]


def partition_indexes(dice: Random) -> tuple[int, ...]:
    """One to three of four partitions; now and then one that is not there."""
    chosen = dice.sample(range(4), dice.randint(1, 3))
    return tuple(chosen if dice.random() < 0.95 else [*chosen, 99])
