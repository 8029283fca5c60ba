"""Everything that the client raises. One root, `KafkaError`; a class for each thing that a caller may want to handle.

Laws
    A message says what was wrong, what was expected and what to do, and names topic, partition, group and broker where
    there are any.
    `retriable` is true if the same call may succeed when it is repeated without any change by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.transport.errors import AuthenticationFailed, KafkaError, TimedOut, TlsFailed, Unreachable, Unsupported

__all__ = [
    "AdminFailed",
    "AssignmentFailed",
    "AuthenticationFailed",
    "BrokerError",
    "BufferFull",
    "CommitFailed",
    "CommitOutcomeUnknown",
    "ConfigError",
    "CorruptRecords",
    "DeliveryFailed",
    "FencedInstance",
    "IllegalArgument",
    "IllegalUse",
    "KafkaError",
    "LogTruncated",
    "NoOffset",
    "OffsetOutOfRange",
    "ProducerFenced",
    "RebalanceInProgress",
    "RebalancedError",
    "RecordTooLarge",
    "TimedOut",
    "TlsFailed",
    "TransactionAbortable",
    "TransactionAborted",
    "TransactionError",
    "TransactionFailed",
    "UnknownTopic",
    "Unreachable",
    "Unsupported",
]

GRANT_READ_ON_TOPIC: Final = "Have READ on the topic granted to this client."
GRANT_READ_ON_GROUP: Final = "Have READ on the group granted to this client."
FAILURES_IN_MESSAGE_MAX: Final = 5  # in the message of one error; all of them are in its fields


class ConfigError(KafkaError, ValueError):
    """A setting that is not known, not of its type, out of its range or at odds with another one."""


class IllegalUse(KafkaError, RuntimeError):
    """A call that does not fit the state of the object: closed, not subscribed, not assigned, both subscribed and
    assigned."""


class IllegalArgument(KafkaError, TypeError):
    """An argument of the wrong type: one name where a call takes several."""


class BrokerError(KafkaError):
    """A broker answered with an error code. `code` is the code; topic, partition, group, broker as far as known."""

    def __init__(
        self,
        code: int,
        what: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        broker: str | None = None,
        detail: str | None = None,
        remedy: str = "",
    ) -> None:
        self.code = ErrorCode.of(code)
        self.topic, self.partition, self.group, self.broker, self.detail = topic, partition, group, broker, detail
        place = [f"{topic}-{partition}" if partition is not None else topic] if topic is not None else []
        place += [f"group {group}"] if group is not None else []
        place += [f"broker {broker}"] if broker is not None else []
        reason = detail or self.code.text
        text = f"{what}{' (' + ', '.join(place) + ')' if place else ''}: {self.code.name} ({int(self.code)}): {reason}"
        super().__init__(f"{text.rstrip('.')}. {remedy}" if remedy else text)

    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed later, as Kafka classifies the code."""
        return self.code.retriable


class UnknownTopic(BrokerError):
    """The topic or partition is not there, and did not appear in the time that was given."""


class RebalancedError(KafkaError):
    """The base class of the errors of a commit during or after a rebalance."""


class CommitFailed(RebalancedError):
    """The member is no longer part of the group's generation: its partitions may belong to another member by now, which
    starts at the last committed offsets. Records since then are delivered again. Poll on, the member joins again; when
    it happens often, process fewer records between polls (`max_poll_records`) or raise `max_poll_interval_ms`."""

    def __init__(self, message: str, partitions: Iterable[TopicPartition] = ()) -> None:
        super().__init__(message)
        self.partitions = tuple(partitions)


class RebalanceInProgress(RebalancedError):
    """The group is rebalancing and the member has not joined yet: poll, then commit again."""

    retriable = True


class FencedInstance(KafkaError):
    """Another member with the same `group_instance_id` has joined: this one must stop."""


class NoOffset(KafkaError):
    """There is no position to start from and `auto_offset_reset` is `none`: seek, or choose another policy."""

    def __init__(self, message: str, partitions: Iterable[TopicPartition]) -> None:
        super().__init__(message)
        self.partitions = tuple(partitions)


class OffsetOutOfRange(NoOffset):
    """The position is before the log's start or after its end and `auto_offset_reset` is `none`."""

    def __init__(self, message: str, positions: dict[TopicPartition, int]) -> None:
        super().__init__(message, positions)
        self.positions = dict(positions)


class LogTruncated(KafkaError):
    """An unclean election removed records that were already read: records after `offsets` were replaced."""

    def __init__(self, message: str, offsets: dict[TopicPartition, int]) -> None:
        super().__init__(message)
        self.offsets = dict(offsets)


class CorruptRecords(KafkaError):
    """A fetched batch whose bytes are wrong. `partition` and `offset` say where; seek past it to go on."""

    def __init__(self, message: str, partition: TopicPartition, offset: int) -> None:
        super().__init__(message)
        self.partition, self.offset = partition, offset


class AssignmentFailed(KafkaError):
    """An assignor of this member could not assign, or the group has no assignor in common with it."""


class DeliveryFailed(KafkaError):
    """A record that was not written, or may be written (`maybe_written`). `cause` is the reason."""

    def __init__(self, message: str, partition: TopicPartition, *, maybe_written: bool, cause: KafkaError) -> None:
        super().__init__(message)
        self.partition, self.maybe_written, self.cause = partition, maybe_written, cause
        self.__cause__ = cause


class RecordTooLarge(KafkaError, ValueError):
    """A record of more than `max_request_size`, or of more than the whole `buffer_memory`."""


class BufferFull(TimedOut):
    """No memory in `buffer_memory` within `max_block_ms`: records are sent faster than the brokers accept them."""


class TransactionError(KafkaError):
    """The base class of the errors of transactions."""


class TransactionAbortable(TransactionError):
    """The transaction has failed and must be aborted; the producer can then begin another one with the same records.
    Leaving `async with producer.transaction()` has aborted it. `__cause__` is the first failure."""

    retriable = True


class TransactionAborted(TransactionError):
    """The cause of a DeliveryFailed: the record was not delivered because its transaction was aborted."""


class CommitOutcomeUnknown(TimedOut, TransactionError):
    """The coordinator did not answer a commit in time: the transaction may be committed or not. Await
    `commit_transaction()` again, until it returns or raises another error."""


class TransactionFailed(TransactionError):
    """A fatal error: the producer cannot be used any more; close it. A new one may work if the cause is removed."""


class ProducerFenced(TransactionFailed):
    """Another producer with the same `transactional_id` was started, or the coordinator has aborted the transaction
    after `transaction_timeout_ms`. Nothing of the open transaction is committed. Close this producer."""


class AdminFailed(KafkaError):
    """Part of what an Admin's call was about failed. `done`: what worked, with its result, by name; `failed`: the error
    of each other thing, by name, mostly a BrokerError with its `code`. What stands in `done` has happened."""

    def __init__(self, what: str, done: Mapping[Any, Any], failed: Mapping[Any, KafkaError]) -> None:
        self.done, self.failed = dict(done), dict(failed)
        shown = islice(self.failed.items(), FAILURES_IN_MESSAGE_MAX)
        texts = [_named(what, name, f"{error}") for name, error in shown]
        if len(self.failed) + len(self.done) == 1:
            super().__init__(texts[0] if texts[0].startswith(what) else f"{what}: {texts[0]}")
            return
        failures = "; ".join(text.removeprefix(f"{what} ") for text in texts)
        more = "; …" if len(self.failed) > len(texts) else ""
        super().__init__(f"{what}: {len(self.failed)} of {len(self.done) + len(self.failed)} failed: {failures}{more}")

    @property
    def codes(self) -> frozenset[ErrorCode]:
        """The brokers' codes in `failed`."""
        return frozenset(error.code for error in self.failed.values() if isinstance(error, BrokerError))


def _named(what: str, name: Any, text: str) -> str:
    """Return an error's text with what it is about, which a BrokerError of the call has in it."""
    has_name = re.search(rf"(?<![\w.-]){re.escape(str(name))}(?![\w.-])", text)  # not the 1 of 127.0.0.1
    return text if text.startswith(f"{what} ") or has_name else f"{name}: {text}"
