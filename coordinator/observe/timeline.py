"""The timeline of each group in memory: the last events, encoded as in their topic.

Laws
    Events per group, groups, and the bytes of all groups are bounded. The group without new events for the longest time
    is forgotten first.
    A GroupTimeline is a machine of the runtime: a record is one slot, so that replaying the log gives what was in it.
    TL8 A record that cannot be decoded, or is in a slot of another sequence, is passed over.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from rota.coordinator.runtime.contract import Append, Effect, Encoded, Hosting, Note, RecordType
from rota.protocol.dataclass import dataclass
from rota.protocol.group_timeline import (
    EVENTS_PER_GROUP_MAX,
    EventType,
    GroupEvent,
    decode_key,
    decode_value,
    encode_value,
    key_lead_writer,
    pack_slot,
    sequence_of,
    slot_of,
)
from rota.protocol.wire import DecodeError

GROUPS_MAX: Final = 10_000
BYTES_MAX: Final = 64 * 1024 * 1024  # of the events of all groups
SEQUENCE_MAX: Final = 1 << 62  # what leaves room for as many again
SLOT_OVERHEAD_BYTES: Final = 100  # of an event in memory, beside its bytes
Mistake = tuple[str, Exception]  # a group, and why an event of it was lost


@dataclass(slots=True)
class TimelineRecord:
    """One slot of a group's timeline: an encoded event. None: the slot is empty."""

    group_id: str
    slot: int
    value: bytes | None


@dataclass(slots=True)
class Forget:
    """The event that removes the events with a sequence below `before`, or all."""

    before: int | None = None


class GroupTimeline:
    """The last events of one group."""

    __slots__ = ("_slots", "group_id", "next_sequence", "size_bytes")

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self._slots: dict[int, bytes] = {}
        self.next_sequence = 0
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def machine_id(self) -> str:
        return self.group_id

    @property
    def is_vacant(self) -> bool:
        return not self._slots

    def step(self, event: GroupEvent | Forget, now_ms: int, wall_ms: int) -> list[Effect]:
        """Add an event, which gets its sequence here, or forget events."""
        if not isinstance(event, Forget):
            return [Append(self.add(event))]
        before = event.before
        removed = [slot for slot, value in self._slots.items() if before is None or sequence_of(value) < before]
        records = [TimelineRecord(self.group_id, slot, None) for slot in removed]
        for record in records:
            self.replay(record)
        return [Append(record) for record in records]

    def add(self, event: GroupEvent) -> TimelineRecord:
        """Give an event its sequence and take it in; return its record."""
        sequence = event.sequence = self.next_sequence
        value = encode_value(event)
        record = TimelineRecord(self.group_id, slot_of(sequence), value)
        self._store(record.slot, value, sequence)
        return record

    def replay(self, record: TimelineRecord) -> None:
        """Take one slot in."""
        if record.value is None:
            self.size_bytes -= _size_bytes(self._slots.pop(record.slot, None))
        else:
            self._store(record.slot, record.value, sequence_of(record.value))

    def _store(self, slot: int, value: bytes, sequence: int) -> None:
        old = self._slots.pop(slot, None)  # the newest event comes last
        self._slots[slot] = value
        self.size_bytes += _size_bytes(value) - (0 if old is None else _size_bytes(old))
        if sequence >= self.next_sequence:
            self.next_sequence = sequence + 1

    def loaded(self, now_ms: int, wall_ms: int) -> list[Effect]:
        """Return the note that reports a timeline that was read to the runtime's owner."""
        return [Note("Loaded timeline", {"bytes": self.size_bytes})]

    def encoded(self) -> tuple[bytes, ...]:
        """Return the bytes of the events."""
        return tuple(self._slots.values())

    def describe(self) -> tuple[GroupEvent, ...]:
        """Return the events, oldest first."""
        return decoded(EncodedEvents(self.encoded()))


class EncodedEvents(NamedTuple):
    """The events of a group: those that were written, in any order, then those that wait, oldest first."""

    written: tuple[bytes, ...] = ()
    waiting: tuple[bytes, ...] = ()


def decoded(events: EncodedEvents) -> tuple[GroupEvent, ...]:
    """Return the events, oldest first; those that wait get the next sequences. Of a large group it takes 0.1 s."""
    found: list[GroupEvent] = []
    for value in events.written:
        with suppress(DecodeError):
            found.append(decode_value(value))
    found.sort(key=lambda event: event.sequence)
    for value in events.waiting:
        event = decode_value(value)
        event.sequence = found[-1].sequence + 1 if found else 0
        found.append(event)
    return tuple(found)


def decoded_since(events: EncodedEvents, event_type: EventType) -> tuple[GroupEvent, ...]:
    """Return the events from the last one of that type on; all when there is none. The others are not decoded."""
    found: deque[GroupEvent] = deque()
    for value in reversed([*sorted(events.written, key=sequence_of), *events.waiting]):
        with suppress(DecodeError):
            found.appendleft(decode_value(value))
            if found[0].type == event_type:
                break
    return tuple(found)


def _size_bytes(value: bytes | None) -> int:
    return 0 if value is None else SLOT_OVERHEAD_BYTES + len(value)


class TimelineCodec:
    """The bytes of `__rota_group_timeline`."""

    def encode(self, records: Iterable[TimelineRecord]) -> list[Encoded]:
        """Return key and value of each record."""
        lead = key_lead_writer()
        return [(lead(record.group_id) + pack_slot(record.slot), record.value) for record in records]

    def decode(self, key: bytes, value: bytes | None) -> TimelineRecord | None:
        """Return the record; None for a key of a newer version, and for one that no broker of this version writes."""
        try:
            decoded = decode_key(key)
            if decoded is None or (value is not None and not _belongs(value, decoded.slot)):
                return None
        except DecodeError:
            return None
        return TimelineRecord(decoded.group, decoded.slot, value)


def _belongs(value: bytes, slot: int) -> bool:
    sequence = sequence_of(value)
    return 0 <= sequence < SEQUENCE_MAX and slot_of(sequence) == slot


def hosting() -> Hosting[GroupTimeline]:
    """Return the hosting of timelines for the runtime."""
    return Hosting("timeline", TimelineCodec(), {TimelineRecord: RecordType(_group_id, GroupTimeline)})


def _group_id(record: TimelineRecord) -> str:
    return record.group_id


class Sizes:
    """The bytes of each group's timeline, in the order of their last events."""

    def __init__(self) -> None:
        self._bytes: OrderedDict[str, int] = OrderedDict()
        self.total_bytes = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._bytes)

    def set(self, group_id: str, size_bytes: int) -> None:
        """Set the size of a timeline that has just changed; 0 removes it."""
        self.total_bytes += size_bytes - self._bytes.pop(group_id, 0)
        if size_bytes:
            self._bytes[group_id] = size_bytes

    def excess(self) -> str | None:
        """Return the group to forget, while there are too many groups or bytes."""
        if len(self._bytes) > GROUPS_MAX or self.total_bytes > BYTES_MAX:
            return next(iter(self._bytes))
        return None


def add_each(add: Callable[[str, GroupEvent], None], events: Iterable[tuple[str, GroupEvent]]) -> list[Mistake]:
    """Add events one by one; see `TimelineStore.add_all`."""
    mistakes: list[Mistake] = []
    for group_id, event in events:
        try:
            add(group_id, event)
        except Exception as mistake:  # noqa: BLE001  # whatever it is: the other events are added
            mistakes.append((group_id, mistake))
    return mistakes


class TimelineStore(Protocol):
    """Where the group coordinator puts events, and others read them."""

    def add(self, group_id: str, event: GroupEvent) -> None:
        """Add an event; it gets its sequence here."""

    def add_all(self, events: Iterable[tuple[str, GroupEvent]]) -> list[Mistake]:
        """Add the events of groups, in their order. Returns the mistakes by which events were lost (TL1)."""

    def forget(self, group_id: str) -> None:
        """Forget a group that was deleted."""

    def of(self, group_id: str) -> tuple[GroupEvent, ...]:
        """Return the group's events, oldest first; none for an unknown group."""

    def encoded(self, group_id: str) -> EncodedEvents:
        """Return the bytes of the group's events, for those who decode them in a thread."""

    def groups(self) -> list[str]:
        """Return the groups that have events."""


class Timelines:
    """Timelines in memory alone: rota.group.timeline.topic.enable=false."""

    def __init__(self) -> None:
        self._timelines: dict[str, GroupTimeline] = {}
        self._sizes = Sizes()

    def add(self, group_id: str, event: GroupEvent) -> None:
        """Add an event."""
        timeline = self._timelines.setdefault(group_id, GroupTimeline(group_id))
        timeline.step(event, 0, 0)
        self._sizes.set(group_id, timeline.size_bytes)
        while (excess := self._sizes.excess()) is not None:
            self.forget(excess)

    def add_all(self, events: Iterable[tuple[str, GroupEvent]]) -> list[Mistake]:
        """Add events."""
        return add_each(self.add, events)

    def forget(self, group_id: str) -> None:
        """Forget a group."""
        self._timelines.pop(group_id, None)
        self._sizes.set(group_id, 0)

    def of(self, group_id: str) -> tuple[GroupEvent, ...]:
        """Return the group's events, oldest first; none for an unknown group."""
        return decoded(self.encoded(group_id))

    def encoded(self, group_id: str) -> EncodedEvents:
        """Return the bytes of the group's events."""
        timeline = self._timelines.get(group_id)
        return EncodedEvents() if timeline is None else EncodedEvents(timeline.encoded())

    def groups(self) -> list[str]:
        """Return the groups that have events."""
        return list(self._timelines)


__all__ = [
    "BYTES_MAX",
    "EVENTS_PER_GROUP_MAX",
    "GROUPS_MAX",
    "EncodedEvents",
    "Forget",
    "GroupTimeline",
    "Mistake",
    "Sizes",
    "TimelineCodec",
    "TimelineRecord",
    "TimelineStore",
    "Timelines",
    "add_each",
    "decoded",
    "decoded_since",
    "hosting",
]
