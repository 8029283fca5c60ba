"""The offsets that groups have committed: read, set, deleted.

Laws
    Topics are named by their names here, never by id: the names are what was asked for.
    Nothing committed is None, never an offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rota.client.admin.asking import Deadline, settle, settle_where
from rota.client.admin.groups import coordinator, of_group
from rota.client.admin.outcomes import UNKNOWN, Answer, Asked, Outcomes, Place
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Coordinator
from rota.client.types import OffsetAndMetadata, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rota.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

NAMES_UNTIL: Final = 9  # the last version of OffsetCommit and OffsetFetch that names topics by their names
EVERYTHING_VERSION: Final = 2  # of OffsetFetch: all that a group has
REMEDIES: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has members: stop them, or remove them with remove_members().",
    ErrorCode.REBALANCE_IN_PROGRESS: "The group has members: stop them, or remove them with remove_members().",
    ErrorCode.NON_EMPTY_GROUP: "Stop its members, or remove them with remove_members().",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Members subscribe to this topic: stop them, or remove them.",
    ErrorCode.GROUP_ID_NOT_FOUND: "Check the name against list_groups().",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check topic and partition against describe_topics().",
}
Offsets = dict[TopicPartition, OffsetAndMetadata | None]


async def list_group_offsets(
    cluster: Cluster, groups: Mapping[str, Iterable[TopicPartition] | None], deadline: Deadline
) -> dict[str, Offsets]:
    """For each group the given partitions (None where nothing is committed), or all that it has (None). Many groups in
    one request where the broker can do that (KIP-709). Raises AdminFailed."""
    wanted = {group: None if given is None else tuple(dict.fromkeys(given)) for group, given in groups.items()}
    outcomes = Outcomes[str, Offsets]("reading committed offsets", 9, wanted, of_group, remedies=REMEDIES)

    def build(names: Sequence[str]) -> OffsetFetchRequest:
        return _fetch_request({name: wanted[name] for name in names})

    def read(asked: Asked[str], answer: OffsetFetchResponse) -> Iterable[Answer[str, Offsets]]:
        parts: list[tuple[str, Any]] = [(one.group_id, one) for one in answer.groups]
        for name, one in parts or [(asked.keys[0], answer)]:  # before v8 the whole answer is about one group
            told = dict(_parts(one.topics))
            worst = next((part.error_code for part in told.values() if part.error_code), 0)
            yield Answer(name, one.error_code or worst, dict.fromkeys(wanted.get(name) or ()) | _committed(told))

    await settle_where(
        cluster,
        coordinator(cluster, deadline),
        Coordinator,
        outcomes,
        build,
        read,
        deadline,
        oldest=EVERYTHING_VERSION,
        newest=NAMES_UNTIL,
    )
    return outcomes.results()


async def alter_group_offsets(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], deadline: Deadline
) -> None:
    """As a committer outside of group management: the group must have no members. Raises AdminFailed."""
    outcomes = Outcomes[TopicPartition, None](
        "setting offsets", 8, offsets, _of(group), final=UNKNOWN, remedies=REMEDIES
    )

    def build(keys: Sequence[TopicPartition]) -> OffsetCommitRequest:
        topics = tuple(
            OffsetCommitRequestTopic(name=name, partitions=tuple(_commit(one, offsets[one]) for one in ones))
            for name, ones in _by_topic(keys).items()
        )
        return OffsetCommitRequest(group_id=group, topics=topics)

    if offsets:
        await settle(cluster, Coordinator(group), outcomes, build, _set, deadline, newest=NAMES_UNTIL)
    outcomes.results()


async def delete_group_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition], deadline: Deadline
) -> None:
    """Of topics that no member subscribes to (KIP-496). Raises AdminFailed."""
    outcomes = Outcomes[TopicPartition, None]("deleting offsets", 47, partitions, _of(group), remedies=REMEDIES)

    def build(keys: Sequence[TopicPartition]) -> OffsetDeleteRequest:
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=one.partition) for one in ones),
            )
            for name, ones in _by_topic(keys).items()
        )
        return OffsetDeleteRequest(group_id=group, topics=topics)

    def read(asked: Asked[TopicPartition], answer: OffsetDeleteResponse) -> Iterable[Answer[TopicPartition, None]]:
        for key in asked.keys if answer.error_code else ():
            yield Answer(key, answer.error_code, None)
        for key, one in _parts(answer.topics):
            yield Answer(key, one.error_code, None)

    if outcomes.open():
        await settle(cluster, Coordinator(group), outcomes, build, read, deadline)
    outcomes.results()


# ---- how requests and answers read


def _of(group: str) -> Callable[[TopicPartition], Place]:
    return lambda key: Place(key.topic, key.partition, group)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for one in partitions:
        found.setdefault(one.topic, []).append(one)
    return found


def _fetch_request(wanted: Mapping[str, tuple[TopicPartition, ...] | None]) -> OffsetFetchRequest:
    """In both shapes: versions that know only one group take the first, which is the only one then."""
    group, given = next(iter(wanted.items()))
    return OffsetFetchRequest(
        group_id=group,
        topics=None if given is None else tuple(OffsetFetchRequestTopic(**one) for one in _named(given)),
        groups=tuple(
            OffsetFetchRequestGroup(
                group_id=name,
                topics=None if asked is None else tuple(OffsetFetchRequestTopics(**one) for one in _named(asked)),
            )
            for name, asked in wanted.items()
        ),
    )


def _named(partitions: Iterable[TopicPartition]) -> Iterator[dict[str, Any]]:
    for name, ones in _by_topic(partitions).items():
        yield {"name": name, "partition_indexes": tuple(one.partition for one in ones)}


def _parts(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    for topic in topics:
        for one in topic.partitions:
            yield TopicPartition(topic.name, one.partition_index), one


def _committed(told: Mapping[TopicPartition, Any]) -> Offsets:
    return {
        key: OffsetAndMetadata(one.committed_offset, one.metadata or "", one.committed_leader_epoch)
        for key, one in sorted(told.items())
        if one.committed_offset >= 0
    }


def _commit(partition: TopicPartition, at: int | OffsetAndMetadata) -> OffsetCommitRequestPartition:
    given = OffsetAndMetadata(at) if isinstance(at, int) else at
    return OffsetCommitRequestPartition(
        partition_index=partition.partition,
        committed_offset=given.offset,
        committed_leader_epoch=given.leader_epoch,
        committed_metadata=given.metadata,
    )


def _set(_: Asked[TopicPartition], answer: OffsetCommitResponse) -> Iterable[Answer[TopicPartition, None]]:
    return (Answer(key, one.error_code, None) for key, one in _parts(answer.topics))
