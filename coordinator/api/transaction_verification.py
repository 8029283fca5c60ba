"""Produce's part of the verification of transactions (KIP-890): a transaction's first batch waits for its coordinator.

Law
    XL4  The first batch of a transaction in a partition is written only if the transaction's coordinator has the
         partition in the transaction, and no marker was written since the request to it.
    XL13 As in Kafka a batch of a transaction without a producer id is a plain one: it is not verified.
    XL11 A refusal whose code does not name its cause has it as a text, in Kafka's words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Final

from rota.coordinator.api.node import Node
from rota.coordinator.log.errors import StorageFailed
from rota.coordinator.log.producers import Verification
from rota.coordinator.replica.partition_lookup import Key, PartitionLookup
from rota.coordinator.replica.produce_validation import is_transactional
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.produce import ProduceRequest
from rota.protocol.records.batch import BatchHeader, read_header
from rota.protocol.records.errors import CorruptBatch

TOPIC_IDS_SINCE: Final = 13
ADDS_SINCE: Final = 12  # the leader adds the partition to the transaction; before, the producer has added it
ABORTABLE_SINCE: Final = 11
AGAIN_MAX: Final = 2  # further questions when a marker was written during one; older producers add partitions first
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
Producer = tuple[int, int]  # id and epoch
Names = Mapping[Key, tuple[str, int]]  # of partitions: topic and index


@dataclass(slots=True)
class Verified:
    """The verifications of one request's partitions, and the partitions that were refused, some with a text."""

    verifications: dict[Key, Verification] = field(default_factory=dict)
    errors: dict[Key, ErrorCode] = field(default_factory=dict)
    messages: dict[Key, str] = field(default_factory=dict)

    def refuse(self, key: Key, error: ErrorCode, message: str | None) -> None:
        self.errors[key] = error
        if message is not None:
            self.messages[key] = message


NOT_VERIFIED: Final = Verified()


def verify(node: Node, lookup: PartitionLookup, request: ProduceRequest, version: int) -> DelayedReply[Verified]:
    """Ask the coordinator of the request's transaction about the partitions where the transaction begins."""
    verified, reply = Verified(), DelayedReply[Verified](mutes=True)
    batches = dict(_batches(request, version))
    transactional_id = request.transactional_id
    if transactional_id is not None:
        batches = {key: header for key, header in batches.items() if header.producer_id >= 0}  # XL13
    producers = {(header.producer_id, header.producer_epoch) for header in batches.values()}
    error, message = _refusal(transactional_id, producers)
    if error is not _E.NONE or transactional_id is None:
        for key in batches:
            verified.refuse(key, error, message)
        reply.answer(verified)
        return reply
    names = _begin(node, lookup, batches, verified, is_v2=version >= ADDS_SINCE)
    if not names:
        reply.answer(verified)
        return reply

    ((producer_id, epoch),) = producers

    def send_request(names: Names, attempts: int) -> None:
        verified = node.verify_transaction(
            transactional_id, producer_id, epoch, list(names.values()), adds=version >= ADDS_SINCE
        )
        verified.then(lambda errors: answer(names, errors, attempts))

    def answer(names: Names, errors: Mapping[tuple[str, int], ErrorCode], attempts: int) -> None:
        refused = {key: errors[name] for key, name in names.items() if errors.get(name)}
        for key, error in refused.items():
            verified.refuse(key, code := produce_error(error, version), _message(code, error))
        overtaken = {key: batches[key] for key in names.keys() - refused if _is_overtaken(lookup, key, verified)}
        again = _begin(node, lookup, overtaken, verified, is_v2=version >= ADDS_SINCE) if attempts else {}
        if again:
            send_request(again, attempts - 1)
        else:
            reply.answer(verified)

    send_request(names, AGAIN_MAX if version >= ADDS_SINCE else 0)
    return reply


def _is_overtaken(lookup: PartitionLookup, key: Key, verified: Verified) -> bool:
    """XL7. Return whether the marker of the transaction before was written during the request to the coordinator."""
    partition = lookup.find(key)
    try:
        return partition is not None and not partition.log.producers.is_current(verified.verifications[key])
    except StorageFailed:
        return False


def produce_error(error: ErrorCode, version: int) -> ErrorCode:
    """Return a coordinator's error as Produce of this version answers it: older producers do not know each code."""
    if error is _E.PRODUCER_FENCED:
        return _E.INVALID_PRODUCER_EPOCH
    if error is _E.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return _E.INVALID_TXN_STATE
    if error in _UNAVAILABLE or (error is _E.CONCURRENT_TRANSACTIONS and version < ADDS_SINCE):
        return _E.NOT_ENOUGH_REPLICAS
    return error


def _message(code: ErrorCode, error: ErrorCode) -> str | None:
    """Return the text beside the code that a coordinator's error became."""
    if code is _E.NOT_ENOUGH_REPLICAS:
        return f"Unable to verify the partition has been added to the transaction. Underlying error: {error.name}"
    return "Partition was not added to the transaction" if code is _E.INVALID_TXN_STATE else None


def _refusal(transactional_id: str | None, producers: set[Producer]) -> tuple[ErrorCode, str | None]:
    if transactional_id is None:
        return _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None
    if len(producers) <= 1:
        return _E.NONE, None
    return _E.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"


def _batches(request: ProduceRequest, version: int) -> Iterator[tuple[Key, BatchHeader]]:
    """Iterate over the transactional batches of the request."""
    for topic in request.topic_data:
        name: str | bytes = topic.topic_id if version >= TOPIC_IDS_SINCE else topic.name
        for data in topic.partition_data:
            if data.records is not None and is_transactional(data.records):
                try:
                    yield (name, data.index), read_header(data.records)
                except CorruptBatch:
                    continue  # the log refuses it


def _begin(
    node: Node, lookup: PartitionLookup, batches: Mapping[Key, BatchHeader], verified: Verified, *, is_v2: bool
) -> dict[Key, tuple[str, int]]:
    """Begin the verifications of the partitions without an open transaction. Return their names."""
    names: dict[Key, tuple[str, int]] = {}
    for key, header in batches.items():
        partition, producers = lookup.find(key), None
        if partition is not None and partition.is_leader and partition.offline is None:
            with suppress(StorageFailed):
                producers = partition.log.producers
        if partition is None or producers is None:
            verified.errors[key] = _E.NOT_LEADER_OR_FOLLOWER  # unless the append finds a better reason
            continue
        if not producers.has_open_transaction(header.producer_id, header.producer_epoch):
            verified.verifications[key] = producers.begin_verification(
                header.producer_id, header.producer_epoch, header.base_sequence, node.wall_ms(), is_v2=is_v2
            )
            names[key] = partition.topic, partition.index
    return names


def is_of_transaction(request: ProduceRequest) -> bool:
    """Return whether a batch of the request belongs to a transaction."""
    for topic in request.topic_data:  # in loops, because each produce request comes here
        for data in topic.partition_data:
            if is_transactional(data.records):
                return True
    return False
