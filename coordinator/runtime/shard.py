"""The groups of one `__consumer_offsets` partition: steps in, records and replies out.

Laws
    O1  A reply computed from a record leaves when that record is durable, and not before (decide, record, replay).
    G4  Every parked request is answered exactly once, whatever becomes of the shard.
    Records of one loop turn go to the log as one write; the replies that wait for it leave together.
    A failed append throws the shard away: what was decided but not written never happened. There is no undo.
    So does a mistake of ours in a step: what half a step left behind is worth nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from itertools import count
from typing import Any, Protocol, TypeVar, assert_never

from rota.coordinator.group.effects import Append, Arm, Disarm, Effect, Note, OffsetRecord, Reply
from rota.coordinator.group.events import Commit, Event, Expired, InstanceId, MemberId, Token
from rota.coordinator.group.machine import Group
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.runtime.records import Encoded, encode, encode_offsets
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode

_NONE = ErrorCode.NONE

T = TypeVar("T")
Refusal = Callable[[ErrorCode], Any]  # an error code in the shape of the body that cannot be given
Held = list[tuple[DelayedReply[Any], Any, Refusal]]  # replies that wait for one write


class ShardState(Enum):
    """R13. The states of a rebalance belong to each group, not to the shard."""

    DOWN = "Down"
    CATCHING_UP = "CatchUp"
    READY = "Ready"


class Shell(Protocol):
    """What a shard asks of the world."""

    def now_ms(self) -> int:
        """Elapsed milliseconds, for deadlines."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, for what is stored."""

    def dirty(self, shard: Shard) -> None:
        """Call `shard.flush()` at the end of this loop turn."""

    def append(self, shard: Shard, records: list[Encoded], done: Callable[[ErrorCode], None]) -> None:
        """Write the records; call `done` once, when they are committed or cannot be. Raises StorageFailed."""

    def arm(self, key: tuple[str, str], at_ms: int, call: Callable[[], None]) -> None:
        """Set or move a timer."""

    def disarm(self, key: tuple[str, str]) -> None:
        """Forget a timer, if it is there."""

    def emit_event(self, group_id: str, note: Note) -> None:
        """Add a line to the group's timeline and to the log."""

    def failed(self, shard: Shard, cause: StorageFailed) -> None:
        """The shard lost its log and everything it held: load it again."""

    def broken(self, shard: Shard, mistake: Exception) -> None:
        """Our own mistake in a step: throw the shard away and load it again."""


class Shard:
    """The owner of some groups. Synchronous: nothing awaits between reading and writing state; there are no locks."""

    __slots__ = ("_flights", "_records", "_shell", "_term", "_tokens", "_waiting", "groups", "index", "state")

    def __init__(self, index: int, shell: Shell) -> None:
        self.index, self._shell = index, shell
        self.state = ShardState.DOWN
        self.groups: dict[str, Group] = {}
        self._term = 0  # a write of an earlier life must not answer for this one
        self._tokens = count(1)
        self._waiting: dict[Token, tuple[DelayedReply[Any], Refusal]] = {}
        self._records: list[Encoded] = []
        self._flights: deque[Held] = deque()  # the last one is still open while _records is not empty

    # ---- in

    def token(self) -> Token:
        """A name for a request that is about to be stepped."""
        return Token(next(self._tokens))

    def submit(
        self, group: Group, event: Event, token: Token, refusal: Refusal, *, mutes: bool = False
    ) -> DelayedReply[Any]:
        """Step one request; the Parked is answered already when nothing had to be waited for."""
        delayed_reply: DelayedReply[Any] = DelayedReply(mutes=mutes)
        self._waiting[token] = (delayed_reply, refusal)
        self.tell(group, event)
        return delayed_reply

    def commit(
        self,
        group: Group,
        member_id: MemberId,
        instance_id: InstanceId | None,
        generation: int,
        records: Sequence[OffsetRecord],
        shape: Callable[[ErrorCode], T],
    ) -> T | DelayedReply[T]:
        """An OffsetCommit, without event and effects: it waits for nothing but its own write."""
        code = group.commit(member_id, instance_id, generation, records, self._shell.now_ms())
        if code is not _NONE:  # as an event it is refused again, with the note that is due
            event = Commit(
                token=self.token(), member_id=member_id, instance_id=instance_id, generation=generation, offsets=()
            )
            self.submit(group, event, event.token, shape)
            return shape(code)
        if records:
            try:
                self._record(encode_offsets(records))
            except Exception as mistake:  # noqa: BLE001  # as in tell: the group has the offsets already
                self._shell.broken(self, mistake)
                return shape(ErrorCode.NOT_COORDINATOR)
            self.groups.setdefault(group.group_id, group)
        return self.when_settled(shape(_NONE), shape)

    def tell(self, group: Group, event: Event) -> None:
        """Step an event. Our own mistake in it stops the shard, which is then what its log says."""
        try:
            self.perform(group, group.step(event, self._shell.now_ms(), self._shell.wall_ms()))
        except Exception as mistake:  # noqa: BLE001  # whatever it is: half a step must not stay
            self._shell.broken(self, mistake)

    @property
    def settled(self) -> bool:
        """All that was decided here is durable, so that whatever is read here may leave at once."""
        return not self._flights

    def when_settled(self, body: T, refusal: Callable[[ErrorCode], T]) -> T | DelayedReply[T]:
        """A reply computed from this shard's state: at once, or with the write that it was computed from."""
        if not self._flights:
            return body
        delayed_reply: DelayedReply[T] = DelayedReply()
        self._flights[-1].append((delayed_reply, body, refusal))
        return delayed_reply

    # ---- out

    def perform(self, group: Group, effects: Iterable[Effect]) -> None:
        """Carry out what a step decided. Replies leave last: answering may bring in the connection's next request."""
        leaving: Held = []
        for effect in effects:
            match effect:
                case Reply():
                    delayed_reply, refusal = self._waiting.pop(effect.token)
                    waits_for = self._flights[-1] if effect.when_durable and self._flights else leaving
                    waits_for.append((delayed_reply, effect.body, refusal))
                case Append():
                    self._record((encode(effect.record),))
                case Arm():
                    key = effect.key
                    self._shell.arm((group.group_id, key), effect.at_ms, partial(self._ring, group, key))
                case Disarm():
                    self._shell.disarm((group.group_id, effect.key))
                case Note():
                    self._shell.emit_event(group.group_id, effect)
                case _:
                    assert_never(effect)
        self._keep_or_forget(group)
        answer(leaving)

    def _record(self, encoded: Iterable[Encoded]) -> None:
        if not self._records:
            self._flights.append([])
            self._shell.dirty(self)
        self._records.extend(encoded)

    def _ring(self, group: Group, key: str) -> None:
        # a timer of a group that went away with its shard rings for nobody
        if self.groups.get(group.group_id) is group:
            self.tell(group, Expired(key))

    def _keep_or_forget(self, group: Group) -> None:
        if not group.is_vacant:
            self.groups.setdefault(group.group_id, group)
        elif self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]

    # ---- durability

    def flush(self) -> None:
        """Write the records of this loop turn. The shell calls it."""
        records, self._records = self._records, []
        if not records:
            return
        flight, term = self._flights[-1], self._term
        try:
            self._shell.append(self, records, lambda error: self._landed(flight, term, error))
        except StorageFailed as cause:
            self._shell.failed(self, cause)
        except Exception as mistake:  # noqa: BLE001  # other shards are to be flushed in this turn, too
            self._shell.broken(self, mistake)

    def _landed(self, flight: Held, term: int, error: ErrorCode) -> None:
        if term != self._term:
            return
        if error is not _NONE:
            self._shell.failed(self, StorageFailed(f"records of shard {self.index} were not committed: {error.name}"))
            return
        landed = self._flights.popleft()
        assert landed is flight, "writes became durable out of order"
        answer(landed)

    def abandon(self, code: ErrorCode) -> None:
        """The shard goes away (moved, or its log failed): all who wait hear `code` and look for it again."""
        self._term += 1
        self.state = ShardState.DOWN
        flights, waiting = self._flights, self._waiting
        self._records, self._flights, self._waiting, self.groups = [], deque(), {}, {}
        for flight in flights:
            answer([(delayed_reply, refusal(code), refusal) for delayed_reply, _, refusal in flight])
        answer([(delayed_reply, refusal(code), refusal) for delayed_reply, refusal in waiting.values()])


def answer(replies: Held) -> None:
    """Let them leave."""
    for delayed_reply, body, _ in replies:
        delayed_reply.answer(body)
