"""Produce, key 0, versions 3-13 (0-2 are advertised for librdkafka, and refused as in Kafka 4).

v3 magic 2, transactional id · v5 log start offset · v7 zstd (KIP-110) · v8 refused records (KIP-467) · v9 flexible
v10 current leader (KIP-951) · v13 topic ids (KIP-516)
v11 TRANSACTION_ABORTABLE (KIP-890) · v12 the leader adds the partition to the transaction (KIP-890)
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from rota.coordinator.api.node import Call, CloseConnection, Node
from rota.coordinator.api.repeats import REPEATS_MAX, Repeats
from rota.coordinator.api.throttling import throttle_produce
from rota.coordinator.api.transaction_verification import NOT_VERIFIED, Verified, is_of_transaction, verify
from rota.coordinator.log.contract import Appended, AppendRefused, StorageFailed
from rota.coordinator.log.producers import Verification
from rota.coordinator.metadata.topic import INTERNAL
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partition_lookup import PartitionLookup
from rota.coordinator.replica.produce_validation import (
    check_times,
    only_batch,
    recompress,
    records_without_key,
    with_create_time,
)
from rota.coordinator.replica.state import Role
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from rota.protocol.records.batch import read_max_timestamp

TOPIC_IDS_SINCE: Final = 13
ALL: Final = -1
ACKS: Final = frozenset({ALL, 0, 1})
ADMIN_CLIENT: Final = "__admin_client"  # the one client that may write to internal topics, as in Kafka
NOT_WRITTEN: Final = -1
_LEADER: Final = Role.LEADER  # bound once: the check of each batch reads it
# Kafka sends no log start offset with these errors.
_WITHOUT_START: Final = frozenset(
    {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR}
)


def produce(node: Node, call: Call, request: ProduceRequest) -> ProduceResponse | DelayedReply[ProduceResponse] | None:
    """Append each partition's batch. Delayed until it is committed (acks=all) or flushed (acks=1); None for acks=0.

    A transaction's first batch in a partition waits for the transaction's coordinator; with acks=0 it is refused.
    Raises CloseConnection when an append failed and the client expects no response.
    """
    operation = _Produce(node, call, request)
    if is_of_transaction(request):
        reply = _produce_in_transaction(node, call, request, operation)
    else:
        reply = _appended(operation, request)
    return reply if node.client_throttle is None else throttle_produce(node.client_throttle, call, request, reply)


def _appended(operation: _Produce, request: ProduceRequest) -> ProduceResponse | DelayedReply[ProduceResponse] | None:
    if _has_many_partitions(request):
        operation.repeats = Repeats()
    response = ProduceResponse(responses=tuple(operation.topic(topic) for topic in request.topic_data))
    if request.acks == 0:
        _close_on_error(response)
        return None
    return operation.reply(response)


def _produce_in_transaction(
    node: Node, call: Call, request: ProduceRequest, operation: _Produce
) -> ProduceResponse | DelayedReply[ProduceResponse] | None:
    verification = verify(node, operation.partition_lookup, request, call.version)
    if verification.answered or request.acks == 0:
        operation.verified = verification.result() or NOT_VERIFIED
        return _appended(operation, request)
    reply = DelayedReply[ProduceResponse](mutes=True)  # what the producer sends next needs this transaction

    def append(verified: Verified) -> None:
        operation.verified = verified
        response = _appended(operation, request)
        if isinstance(response, DelayedReply):
            response.then(reply.answer)
        elif response is not None:
            reply.answer(response)

    verification.then(append)
    return reply


class _Produce:
    """The handling of one request. It counts the partitions whose records are not committed yet."""

    __slots__ = (
        "_acks",
        "_admin",
        "_counters",
        "_delayed_reply",
        "_node",
        "_pending",
        "_response",
        "_timeout_ms",
        "_version",
        "partition_lookup",
        "repeats",
        "verified",
    )

    def __init__(self, node: Node, call: Call, request: ProduceRequest) -> None:
        self._node, self._version, self._acks = node, call.version, request.acks
        self._admin = call.client_id == ADMIN_CLIENT
        self._counters = call.counters
        self.partition_lookup = PartitionLookup(node.topics, node.partitions)
        self.verified = NOT_VERIFIED  # of the transaction
        self.repeats: Repeats | None = None  # of a request with many partitions
        self._pending, self._timeout_ms = 0, request.timeout_ms
        self._delayed_reply: DelayedReply[ProduceResponse] | None = None
        self._response: ProduceResponse | None = None

    def reply(self, response: ProduceResponse) -> ProduceResponse | DelayedReply[ProduceResponse]:
        if not self._pending:
            return response
        self._response, self._delayed_reply = response, DelayedReply()
        return self._delayed_reply

    def topic(self, topic: TopicProduceData) -> TopicProduceResponse:
        name: str | bytes = topic.topic_id if self._version >= TOPIC_IDS_SINCE else topic.name
        responses = tuple(self._partition(name, data) for data in topic.partition_data)
        for response in responses:
            if response.error_code:
                self._counters.add_error(response.error_code)
        return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=responses)

    def _partition(self, name: str | bytes, data: PartitionProduceData) -> PartitionProduceResponse:
        key = name, data.index
        if self.repeats is not None and self.repeats.is_refused(key):
            return _refused(data.index, ErrorCode.INVALID_REQUEST)
        partition = self.partition_lookup.find(key)
        if partition is None:
            return _refused(data.index, self.partition_lookup.missing(key))
        if partition.state.role is not _LEADER:
            return _refused(data.index, partition.state.role_error())
        try:
            records = only_batch(data.records if data.records is not None else b"", self._version)
        except AppendRefused as refusal:
            return _refused(data.index, refusal.code, str(refusal) or None)
        error = self._forbidden(partition)
        if error:
            return _refused(data.index, error)
        verified = self.verified
        if verified is NOT_VERIFIED:
            return self._append(partition, records, None)
        if key in verified.errors:
            return _refused(data.index, verified.errors[key], verified.messages.get(key))
        return self._append(partition, records, verified.verifications.get(key))

    def _forbidden(self, partition: Partition) -> ErrorCode:
        if self._acks not in ACKS:
            return ErrorCode.INVALID_REQUIRED_ACKS
        if partition.topic in INTERNAL and not self._admin:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        return ErrorCode.NONE

    def _append(
        self, partition: Partition, records: bytes | memoryview, verification: Verification | None
    ) -> PartitionProduceResponse:
        try:
            wall_ms, config = self._node.wall_ms(), partition.log.config
            check_times(records, config, wall_ms)
            if self._acks == ALL and not partition.state.has_min_isr:
                return _refused(partition.index, ErrorCode.NOT_ENOUGH_REPLICAS)
            batch = recompress(with_create_time(records), config.codec, config.codec_level)
            appended = partition.append(batch, wall_ms, verification)
            response = _written(partition, appended, records)
            if self._acks:
                self._await(partition, response, appended.last_offset + 1)
            return response
        except AppendRefused as refusal:
            return _refused_by_log(partition, _explained(partition, records, refusal))
        except StorageFailed:
            return _refused(partition.index, ErrorCode.KAFKA_STORAGE_ERROR)

    def _await(self, partition: Partition, response: PartitionProduceResponse, offset: int) -> None:
        """Count the partition as pending until the batch is committed (acks=all) or on the leader's medium (acks=1)."""
        is_all = self._acks == ALL
        state = partition.state
        if (state.committed_error(offset) if is_all else state.flushed_error(offset)) is ErrorCode.NONE:
            return  # always so on a single broker that does not flush

        def done(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                response.error_code, response.base_offset = error, NOT_WRITTEN
                self._counters.add_error(error)
            self._committed()

        self._pending += 1
        wait = partition.when_committed if is_all else partition.when_flushed
        wait(offset, self._node.now_ms() + self._timeout_ms, done)

    def _committed(self) -> None:
        self._pending -= 1
        if not self._pending and self._delayed_reply is not None and self._response is not None:
            self._delayed_reply.answer(self._response)


def _has_many_partitions(request: ProduceRequest) -> bool:
    topics = request.topic_data
    return len(topics) > REPEATS_MAX or any(len(topic.partition_data) > REPEATS_MAX for topic in topics)


def _written(partition: Partition, appended: Appended, records: bytes | memoryview) -> PartitionProduceResponse:
    """Return the response to a written batch. A duplicate counts as written at the time of its records, as in Kafka."""
    append_time_ms = appended.append_time_ms
    if appended.duplicate and append_time_ms == -1:
        append_time_ms = read_max_timestamp(records)
    return PartitionProduceResponse(
        index=partition.index,
        base_offset=appended.base_offset,
        log_append_time_ms=append_time_ms,
        log_start_offset=partition.log_start_offset,
    )


def _refused(index: int, error: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=error, base_offset=NOT_WRITTEN, error_message=message)


def _explained(partition: Partition, records: bytes | memoryview, refusal: AppendRefused) -> AppendRefused:
    """Return the refusal; for a batch that a compacted topic refused, with the indexes of the records without a key."""
    if refusal.code is ErrorCode.INVALID_RECORD and not refusal.records and partition.log.config.compact:
        with suppress(AppendRefused):  # its header is what is invalid, and its records may be unreadable
            return records_without_key(records, f"{partition.topic}-{partition.index}") or refusal
    return refusal


def _refused_by_log(partition: Partition, refusal: AppendRefused) -> PartitionProduceResponse:
    response = _refused(partition.index, refusal.code)
    if refusal.code not in _WITHOUT_START:
        response.log_start_offset = partition.log_start_offset
    if refusal.records:
        response.record_errors = tuple(
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in refusal.records
        )
        response.error_message = str(refusal)
    return response


def _close_on_error(response: ProduceResponse) -> None:
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise CloseConnection(f"produce with acks 0 failed: {ErrorCode.of(partition.error_code).name}")
