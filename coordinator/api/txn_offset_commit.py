"""TxnOffsetCommit, key 28, versions 0-5.

v2 leader epoch (KIP-320) · v3 flexible, member and generation (KIP-447) · v4 TRANSACTION_ABORTABLE (KIP-890)
v5 adds the offsets partition to the transaction by itself (KIP-890)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from rota.coordinator.api.committed_partitions import WHOLE_TOPIC, Refused, answered, is_metadata_too_long
from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.offset_commit import can_be_one_batch
from rota.coordinator.api.transaction_verification import AGAIN_MAX
from rota.coordinator.group.events import InstanceId, MemberId, OffsetRecord, OffsetValue, TransactionalCommit
from rota.coordinator.group_coordinator import OFFSETS_TOPIC, GroupShard
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.producers import Producers
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ADDS_SINCE: Final = 5  # the group coordinator adds the offsets partition to the transaction; before, the producer has
ABORTABLE_SINCE: Final = 4
NO_SEQUENCE: Final = -1
_E: Final = ErrorCode
_UNAVAILABLE: Final = frozenset(
    {
        _E.COORDINATOR_LOAD_IN_PROGRESS,
        _E.COORDINATOR_NOT_AVAILABLE,
        _E.NOT_COORDINATOR,
        _E.NETWORK_EXCEPTION,
        _E.REQUEST_TIMED_OUT,
    }
)
Reply = TxnOffsetCommitResponse | DelayedReply[TxnOffsetCommitResponse]


def txn_offset_commit(
    node: Node, call: Call, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | DelayedReply[TxnOffsetCommitResponse]:
    """Append the offsets to the group's partition: they count when the producer's transaction commits.

    The first commit of a transaction waits for the transaction's coordinator (KIP-890). TXC17: Metadata that is too
    long is found last; its partition has the error of the transaction or the group, if there is one.
    """
    refused: Refused = {}
    records = _records(node, request, refused)
    respond = partial(_response, request, refused)
    if not records and _E.OFFSET_METADATA_TOO_LARGE not in refused.values():
        return respond(_E.NONE)
    if not can_be_one_batch(node, request.group_id, records):
        return respond(_E.UNKNOWN_SERVER_ERROR)
    shard = node.groups.ready(request.group_id)
    if isinstance(shard, ErrorCode):
        return respond(shard)
    producers = _producers(node, shard)
    if producers is None:
        return respond(_E.NOT_COORDINATOR)
    write = partial(_write, node, request, records, respond)
    if producers.has_open_transaction(request.producer_id, request.producer_epoch):
        return write(shard)
    if not producers.has_room_for(request.producer_id):
        return respond(_E.COORDINATOR_LOAD_IN_PROGRESS)  # XL8: retried until another transaction has ended
    reply = DelayedReply[TxnOffsetCommitResponse](mutes=True)
    attempts = AGAIN_MAX if call.version >= ADDS_SINCE else 0
    _verify(node, call, request, shard, producers, _Answer(respond, write, reply, attempts))
    return reply


@dataclass(frozen=True, slots=True)
class _Answer:
    """How a commit is answered that waits for the transaction's coordinator. `attempts` are further questions."""

    respond: Callable[[ErrorCode], TxnOffsetCommitResponse]
    write: Callable[[GroupShard], Reply]
    reply: DelayedReply[TxnOffsetCommitResponse]
    attempts: int


def _verify(
    node: Node, call: Call, request: TxnOffsetCommitRequest, shard: GroupShard, producers: Producers, answer: _Answer
) -> None:
    """Verify with the coordinator, then write. XL7: it verifies again if a marker was written meanwhile."""
    producer = request.producer_id, request.producer_epoch
    adds = call.version >= ADDS_SINCE
    verification = producers.begin_verification(*producer, NO_SEQUENCE, node.wall_ms(), is_v2=adds)
    verified = node.verify_transaction(request.transactional_id, *producer, [(OFFSETS_TOPIC, shard.index)], adds=adds)

    def finish(errors: Mapping[tuple[str, int], ErrorCode]) -> None:
        error = commit_error(next(iter(errors.values()), _E.NONE), call.version)
        shard = node.groups.ready(request.group_id)
        if error is _E.NONE and isinstance(shard, ErrorCode):
            error = shard
        if error is not _E.NONE or isinstance(shard, ErrorCode):
            answer.reply.answer(answer.respond(error))
            return
        producers = _producers(node, shard)
        if producers is None:
            answer.reply.answer(answer.respond(_E.NOT_COORDINATOR))
        elif producers.is_current(verification) or producers.has_open_transaction(*producer):
            _answer_later(answer.write(shard), answer.reply)
        elif answer.attempts:
            _verify(node, call, request, shard, producers, replace(answer, attempts=answer.attempts - 1))
        else:
            answer.reply.answer(answer.respond(_E.INVALID_TXN_STATE))

    verified.then(finish)


def _answer_later(written: Reply, reply: DelayedReply[TxnOffsetCommitResponse]) -> None:
    if isinstance(written, DelayedReply):
        written.then(reply.answer)
    else:
        reply.answer(written)


def commit_error(error: ErrorCode, version: int) -> ErrorCode:
    """Return a transaction coordinator's error as TxnOffsetCommit of this version answers it."""
    if error is _E.PRODUCER_FENCED:
        return _E.INVALID_PRODUCER_EPOCH
    if error is _E.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return _E.INVALID_TXN_STATE
    if error in _UNAVAILABLE or (error is _E.CONCURRENT_TRANSACTIONS and version < ADDS_SINCE):
        return _E.COORDINATOR_LOAD_IN_PROGRESS
    return error


def _producers(node: Node, shard: GroupShard) -> Producers | None:
    """Return the producers of the shard's partition; None while it has no log here."""
    partition = node.partitions.get(OFFSETS_TOPIC, shard.index)
    try:
        return None if partition is None else partition.log.producers
    except StorageFailed:
        return None


def _write(
    node: Node,
    request: TxnOffsetCommitRequest,
    records: list[OffsetRecord],
    respond: Callable[[ErrorCode], TxnOffsetCommitResponse],
    shard: GroupShard,
) -> Reply:
    producers = _producers(node, shard)
    known = None if producers is None else producers.get(request.producer_id)
    if known is not None and known.epoch > request.producer_epoch:
        return respond(_E.INVALID_PRODUCER_EPOCH)
    group = shard.machines.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            return respond(_E.ILLEGAL_GENERATION)
        group = node.groups.group(shard, request.group_id)
    instance_id = request.group_instance_id
    event = TransactionalCommit(
        token=shard.token(),
        member_id=MemberId(request.member_id),
        instance_id=None if instance_id is None else InstanceId(instance_id),
        generation=request.generation_id,
        records=records,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
    )
    return shard.submit(group, event, lambda code: code).map(respond)


def _records(node: Node, request: TxnOffsetCommitRequest, refused: Refused) -> list[OffsetRecord]:
    """Return a record for each valid offset; add an error to `refused` for each other one."""
    wall_ms, records = node.wall_ms(), list[OffsetRecord]()
    for position, requested in enumerate(request.topics):
        topic = node.topics.get(requested.name)
        if topic is None:
            refused[position, WHOLE_TOPIC] = _E.UNKNOWN_TOPIC_OR_PARTITION
        for partition in requested.partitions:
            index, metadata = partition.partition_index, partition.committed_metadata or ""
            if topic is None or not 0 <= index < len(topic.partitions):
                refused[position, index] = _E.UNKNOWN_TOPIC_OR_PARTITION
            elif not request.group_id:
                refused[position, index] = _E.INVALID_GROUP_ID
            elif is_metadata_too_long(metadata, node.config.offset_metadata_max_bytes):
                refused[position, index] = _E.OFFSET_METADATA_TOO_LARGE
            else:
                offset, epoch = partition.committed_offset, partition.committed_leader_epoch
                value = OffsetValue(offset, epoch, metadata, wall_ms, None, topic.topic_id)
                records.append(OffsetRecord(request.group_id, topic.name, index, value))
    return records


def _response(request: TxnOffsetCommitRequest, refused: Refused, code: ErrorCode) -> TxnOffsetCommitResponse:
    requested = [(topic.name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if refused:
        answers = list(answered(requested, refused, code).items())
    else:
        answers = [(name, [(index, code) for index in indexes]) for name, indexes in requested if indexes]
    return TxnOffsetCommitResponse(topics=tuple(_topic(name, of_topic) for name, of_topic in answers))


def _topic(name: str, answers: list[tuple[int, ErrorCode]]) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=name,
        partitions=tuple(
            TxnOffsetCommitResponsePartition(partition_index=index, error_code=code) for index, code in answers
        ),
    )
