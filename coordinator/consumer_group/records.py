"""The records of a consumer group: key and value as they are in `__consumer_offsets`, and what is made from them.

Laws
    CG5 Keys and values are byte-equal to Apache Kafka's; partitions and topics are in ascending order, where Kafka has
        the order of its hash tables.
    A record has the whole value of its key, so that compaction may drop every older one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from rota.coordinator.consumer_group.member import ClassicMember, Member, MemberState, Owned, Partitions
from rota.coordinator.runtime.contract import Encoded
from rota.protocol import consumer_group_records as wire
from rota.protocol.dataclass import dataclass

BATCH_OVERHEAD_BYTES: Final = 100  # more than the headers of a batch and of a record


@dataclass(slots=True)
class ConsumerRecord:
    """`key` and `value` are those of `protocol/consumer_group_records.py`; a value of None is a tombstone."""

    key: Any
    value: Any

    @property
    def group_id(self) -> str:
        group_id: str = self.key.group
        return group_id


def encode(record: ConsumerRecord) -> Encoded:
    """Return key and value as bytes."""
    return wire.encode_key(record.key), None if record.value is None else wire.encode_value(record.value)


def can_fit_in_batch(record: ConsumerRecord, bytes_max: int) -> bool:
    """Return whether a batch with this record alone has at most `bytes_max` bytes."""
    key, value = encode(record)
    return len(key or b"") + len(value or b"") + BATCH_OVERHEAD_BYTES <= bytes_max


def decode(key: bytes, value: bytes | None) -> ConsumerRecord | None:
    """Return the record in these bytes; None for one that is not a consumer group's. Raises DecodeError."""
    read = wire.decode_key(key)
    if read is None:
        return None
    return ConsumerRecord(read, None if value is None else wire.decode_value(read, value))


# ---- from the state to records


def epoch(group_id: str, number: int, metadata_hash: int) -> ConsumerRecord:
    return ConsumerRecord(wire.EpochKey(group=group_id), wire.EpochValue(epoch=number, metadata_hash=metadata_hash))


def target_epoch(group_id: str, number: int, wall_ms: int) -> ConsumerRecord:
    value = wire.TargetEpochValue(assignment_epoch=number, assignment_timestamp=wall_ms)
    return ConsumerRecord(wire.TargetEpochKey(group=group_id), value)


def member(group_id: str, of: Member) -> ConsumerRecord:
    value = wire.MemberValue(
        instance_id=of.instance_id,
        rack_id=of.rack_id,
        client_id=of.client_id,
        client_host=of.client_host,
        subscribed_topic_names=tuple(sorted(of.topic_names)),
        subscribed_topic_regex=of.regex,
        rebalance_timeout_ms=of.rebalance_ms,
        server_assignor=of.assignor,
        classic_member_metadata=None if of.classic is None else _classic(of.classic),
    )
    return ConsumerRecord(wire.MemberKey(group=group_id, member_id=of.member_id), value)


def _classic(of: ClassicMember) -> wire.ClassicMemberMetadata:
    protocols = tuple(wire.ClassicProtocol(name=name, metadata=metadata) for name, metadata in of.protocols)
    return wire.ClassicMemberMetadata(session_timeout_ms=of.session_ms, supported_protocols=protocols)


def target(group_id: str, member_id: str, partitions: Partitions) -> ConsumerRecord:
    value = wire.TargetMemberValue(
        topic_partitions=tuple(
            wire.TargetPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes)))
            for topic_id, indexes in sorted(partitions.items())
        )
    )
    return ConsumerRecord(wire.TargetMemberKey(group=group_id, member_id=member_id), value)


def current(group_id: str, of: Member) -> ConsumerRecord:
    value = wire.CurrentAssignmentValue(
        member_epoch=of.epoch,
        previous_member_epoch=of.previous_epoch,
        state=of.state,
        assigned_partitions=_owned(of.assigned),
        partitions_pending_revocation=_owned(of.pending),
    )
    return ConsumerRecord(wire.CurrentAssignmentKey(group=group_id, member_id=of.member_id), value)


def _owned(owned: Owned) -> tuple[wire.CurrentPartitions, ...]:
    return tuple(
        wire.CurrentPartitions(
            topic_id=topic_id,
            partitions=tuple(sorted(epochs)),
            assignment_epochs=tuple(epochs[index] for index in sorted(epochs)),
        )
        for topic_id, epochs in sorted(owned.items())
    )


def removed_member(group_id: str, member_id: str) -> tuple[ConsumerRecord, ...]:
    """The tombstones of a member, in Kafka's order."""
    keys = wire.CurrentAssignmentKey, wire.TargetMemberKey, wire.MemberKey
    return tuple(ConsumerRecord(key(group=group_id, member_id=member_id), None) for key in keys)


def regex(group_id: str, expression: str, topics: frozenset[str], version: int, wall_ms: int) -> ConsumerRecord:
    value = wire.RegularExpressionValue(topics=tuple(sorted(topics)), version=version, timestamp=wall_ms)
    return ConsumerRecord(wire.RegularExpressionKey(group=group_id, regular_expression=expression), value)


def removed_regex(group_id: str, expression: str) -> ConsumerRecord:
    return ConsumerRecord(wire.RegularExpressionKey(group=group_id, regular_expression=expression), None)


def removed_partition_metadata(group_id: str) -> ConsumerRecord:
    return ConsumerRecord(wire.PartitionMetadataKey(group=group_id), None)


def removed_target_epoch(group_id: str) -> ConsumerRecord:
    return ConsumerRecord(wire.TargetEpochKey(group=group_id), None)


def removed_epoch(group_id: str) -> ConsumerRecord:
    return ConsumerRecord(wire.EpochKey(group=group_id), None)


# ---- from records to the state


def with_metadata(of: Member, value: wire.MemberValue) -> Member:
    """Return the member with what its record says."""
    return replace(
        of,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_ms=value.rebalance_timeout_ms,
        topic_names=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        assignor=value.server_assignor,
        classic=None if value.classic_member_metadata is None else _read_classic(value.classic_member_metadata),
    )


def _read_classic(value: wire.ClassicMemberMetadata) -> ClassicMember:
    protocols = tuple((protocol.name, protocol.metadata) for protocol in value.supported_protocols)
    return ClassicMember(value.session_timeout_ms, protocols)


def with_current(of: Member, value: wire.CurrentAssignmentValue) -> Member:
    """Return the member with the current assignment of its record."""
    known = value.state in MemberState._value2member_map_
    return replace(
        of,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=_read_owned(value.assigned_partitions, value.member_epoch),
        pending=_read_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def _read_owned(partitions: tuple[wire.CurrentPartitions, ...], member_epoch: int) -> Owned:
    """Records of Kafka 4.2 and before have no assignment epochs: the member's own stands for them."""
    owned = {}
    for topic in partitions:
        epochs = topic.assignment_epochs or (member_epoch,) * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=False))
    return owned


def read_target(value: wire.TargetMemberValue) -> Partitions:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
