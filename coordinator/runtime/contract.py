"""What the runtime requires of a state machine, and what a machine's step may return.

The runtime hosts machines by id. It feeds them events, performs the effects of each step in their order, writes their
records to one partition and replays those records when it loads or follows that partition. Consumer groups are such
machines, and transactional ids are.

Laws
    G1  A machine's durable state is written by `replay` alone, in normal work as on loading.
    G5  A record is the whole value of its key, so that compaction may drop every older one.
    XL6 Records of a transaction change nothing that a machine shows before their marker is applied, by the same calls
        in normal work, on a standby and on loading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Generic, NewType, Protocol, TypeVar

from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    Token = NewType("Token", int)  # identifies one request that waits for its reply; the runtime draws it
else:
    Token = int  # a call of a NewType is a call of a Python function, once for each request
Encoded = tuple[bytes | None, bytes | None]  # key and value of a record; a value of None is a tombstone
Refusal = Callable[[ErrorCode], Any]  # builds the reply that carries this error code

BATCH_RECORD_BYTES_MAX: Final = 512 * 1024  # further records are written as another batch

# ---- events


class Request(Protocol):
    """An event with a reply: exactly one Reply with its token, in this step or in a later one."""

    token: Token


@dataclass(slots=True)
class TimerFired:
    """A timer that the machine set with Arm has reached its time."""

    key: str


# ---- effects


@dataclass(slots=True)
class Append:
    """Write this record. Later replies wait until it is committed."""

    record: Any


@dataclass(slots=True)
class Reply:
    """Answer a request. `when_durable=False` is for refusals, which do not depend on uncommitted records."""

    token: Token
    body: Any
    when_durable: bool = True


@dataclass(slots=True)
class AppendAndReply:
    """An Append of each of these records (there may be none), then the Reply, as one effect."""

    records: Sequence[Any]
    token: Token
    body: Any
    when_durable: bool = True


@dataclass(slots=True)
class AppendInTransaction:
    """An AppendAndReply of records that count when the transaction of this producer commits."""

    records: Sequence[Any]
    producer_id: int
    producer_epoch: int
    token: Token
    body: Any
    when_durable: bool = True


@dataclass(slots=True)
class Arm:
    """Set (or move) the machine's timer `key` to `at_ms`. Keys are the machine's own: the runtime adds its id."""

    key: str
    at_ms: int


@dataclass(slots=True)
class Disarm:
    """Cancel the machine's timer `key`, if it is set."""

    key: str


@dataclass(slots=True)
class Note:
    """An event of the machine's timeline and a line of the log: Kafka's message in `event`, details in `fields` (R27).

    `timeline` has the fields for the timeline only, such as lists that are too long for a log line.
    """

    event: str
    fields: dict[str, object] = field(default_factory=dict)
    timeline: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Send:
    """Give this message to the coordinator's `send`, when the records that were decided before are committed.

    A shard that is abandoned before that sends nothing: the machine repeats the effect after its load.
    """

    message: Any


Effect = Append | AppendAndReply | AppendInTransaction | Reply | Arm | Disarm | Note | Send

# ---- machines


class StateMachine(Protocol):
    """One group or one transactional id. Pure: times are arguments, and all actions are returned as effects.

    `now_ms` is elapsed time, for deadlines; `wall_ms` is milliseconds since the epoch, for what is stored.
    """

    @property
    def machine_id(self) -> str:
        """The id under which the runtime hosts this machine."""

    @property
    def is_vacant(self) -> bool:
        """Return True if the machine has no state: the runtime then removes it."""

    def step(self, event: Any, now_ms: int, wall_ms: int) -> list[Effect]:
        """Handle one event and return its effects."""

    def replay(self, record: Any) -> None:
        """Apply one record to the durable state."""

    def loaded(self, now_ms: int, wall_ms: int) -> list[Effect]:
        """Rebuild what is not durable. Called once, after the replay and before the first step."""

    def describe(self) -> Any:
        """Return the machine's state for Describe requests."""


M = TypeVar("M", bound=StateMachine)


class Record(Protocol):
    """A record as machines know it. A `value` of None removes its key."""

    @property
    def value(self) -> Any: ...


class Codec(Protocol):
    """Translates records to bytes and back."""

    def encode(self, records: Iterable[Any]) -> list[Encoded]:
        """Return key and value of each record."""

    def decode(self, key: bytes, value: bytes | None) -> Record | None:
        """Return the record, or None for a kind that this release does not know. Raises DecodeError."""


@dataclass(frozen=True, slots=True)
class RecordType(Generic[M]):
    """Maps the records of one class to their machine."""

    machine_id: Callable[[Any], str]  # from the record
    create: Callable[[str], M]  # from the id, when no machine of that id is hosted


class TransactionalMachine(Protocol):
    """A machine with records that belong to transactions."""

    def replay_in_transaction(self, producer_id: int, records: Iterable[Any]) -> None:
        """Apply records that count when the transaction of this producer commits."""

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply the end of the producer's transaction."""


@dataclass(frozen=True, slots=True)
class Hosting(Generic[M]):
    """What one runtime hosts: `name` (of its timers), the codec of its topic, and its record types by class.

    `transactional` returns the machine as one with records of transactions; None: there are none in this topic.
    `decode_many` is a faster `codec.decode` of keys and values in a row; a record of its result may stand for several.
    `encode_batch` is a faster `codec.encode` of records in a row, at least one: their bytes in a batch and how many
    they are; None if the pairs of `encode` have to be written.
    """

    name: str
    codec: Codec
    record_types: Mapping[type[Any], RecordType[M]]
    transactional: Callable[[M], TransactionalMachine] | None = None
    decode_many: Callable[[list[tuple[bytes, bytes | None]]], Iterable[Any]] | None = None
    encode_batch: Callable[[list[Any]], tuple[bytes, int] | None] | None = None
