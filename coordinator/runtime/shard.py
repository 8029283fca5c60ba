"""Hosts the machines of one partition: events in, records and replies out.

Laws
    O1  A reply computed from a record is sent when that record is committed, not before (decide, record, replay).
    CO6 A write that is not committed by its deadline is answered COORDINATOR_NOT_AVAILABLE; reads of its result wait.
    G4  Every request is answered exactly once, whatever happens to the shard.
    Records of one loop tick are one write of the log; the replies that wait for that write are sent together.
    CO8 The records of one commit are in one batch: whatever fails, all of them are in the log, or none.
    When an append fails, or a step raises, the shard is abandoned and its log is replayed: there is no undo code.

The file is longer than 400 lines because one class owns what happens to a request between its step and its reply.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import count
from typing import Any, Final, Generic, Protocol, TypeVar, assert_never

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.errors import NotLeader
from rota.coordinator.runtime.contract import (
    Append,
    AppendAndReply,
    AppendInTransaction,
    Arm,
    Disarm,
    Effect,
    Encoded,
    Hosting,
    M,
    Note,
    Refusal,
    Reply,
    Request,
    Send,
    TimerFired,
    Token,
)
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode

T = TypeVar("T")
TimerKey = tuple[str, str, str]  # name of the runtime, machine id, the machine's key
Unit = tuple[int, int]  # (start, end) of records that are written together or not at all
Units = Callable[[], Sequence[Unit]]  # of encoded records; called only if they do not fit in one batch
PendingReply = tuple[DelayedReply[Any], Any, Refusal]  # the body is known; the write it was computed from is in flight

NO_EPOCH: Final = -1
_NONE, _TIMED_OUT = ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT
_TOO_FEW_REPLICAS = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
_NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
_NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR


class ShardState(Enum):
    """R13. The states of a rebalance belong to each group, not to the shard."""

    DOWN = "Down"
    CATCHING_UP = "CatchUp"
    READY = "Ready"


class ShardContext(Protocol):
    """The interface that a shard needs of its coordinator."""

    def now_ms(self) -> int:
        """Return elapsed milliseconds, for deadlines."""

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch, for what is stored."""

    def schedule_flush(self, shard: Shard[Any]) -> None:
        """Call `shard.flush()` at the end of this loop tick."""

    def append(
        self,
        shard: Shard[Any],
        records: list[Encoded],
        producer: tuple[int, int] | None = None,
        units: Units = tuple,
    ) -> tuple[int, bool]:
        """Write the records (there may be none), in the transaction of `producer` (id, epoch). Raises StorageFailed.

        The records of a unit are in one batch. Returns the end offset of the log, and whether it is committed already,
        as on a partition without followers.
        """

    def append_encoded(self, shard: Shard[Any], records: bytes, count: int) -> tuple[int, bool]:
        """As `append`, of records of one batch that are encoded already (`Hosting.encode_batch`)."""

    def when_committed(self, shard: Shard[Any], offset: int, done: Callable[[ErrorCode], None]) -> None:
        """Call `done` once: with NONE when all records before `offset` are committed, else with an error by a deadline.

        Raises StorageFailed.
        """

    def set_timer(self, key: TimerKey, at_ms: int, call: Callable[[], None]) -> None:
        """Set or move a timer."""

    def cancel_timer(self, key: TimerKey) -> None:
        """Cancel a timer, if it is set."""

    def emit_event(self, machine_id: str, note: Note) -> None:
        """Add a line to the machine's timeline and to the log."""

    def send(self, shard: Shard[Any], message: Any) -> None:
        """Take the message of a machine whose records are committed."""

    def storage_failed(self, shard: Shard[Any], cause: Exception) -> None:
        """Abandon the shard, whose log failed, and load it again later."""

    def step_failed(self, shard: Shard[Any], mistake: Exception) -> None:
        """Abandon the shard after an unexpected exception and load it again."""


class Shard(Generic[M]):
    """The machines of one partition. Synchronous, without locks: no code awaits between reading and writing state."""

    __slots__ = (
        "_hosting",
        "_in_flight",
        "_records",
        "_requests",
        "_shell",
        "_tokens",
        "_units",
        "index",
        "is_leader",
        "leader_epoch",
        "machines",
        "state",
        "term",
        "transactions",
    )

    def __init__(self, index: int, shell: ShardContext, hosting: Hosting[M]) -> None:
        self.index, self._shell, self._hosting = index, shell, hosting
        self.state = ShardState.DOWN
        self.leader_epoch = NO_EPOCH  # the newest known one, of this or another leader
        self.is_leader = False
        self.machines: dict[str, M] = {}
        self.transactions: dict[int, set[str]] = {}  # the machines with pending records, by producer id
        self.term = 0  # grows when the shard is abandoned: an earlier write must not answer for a later one
        self._tokens = count(1)
        self._requests: dict[Token, tuple[DelayedReply[Any], Refusal]] = {}  # stepped and not answered
        self._records: list[Any] = []  # decided in this tick, not written
        self._units: list[Unit] = []  # of these
        self._in_flight: deque[list[PendingReply]] = deque()  # replies by write; the last is open while _records is not

    # ---- events

    def token(self) -> Token:
        """Draw the token of a request that is about to be stepped."""
        return Token(next(self._tokens))

    def submit(self, machine: M, request: Request, refusal: Refusal, *, mutes: bool = False) -> DelayedReply[Any]:
        """Step a request and return its reply, which may be answered already."""
        delayed_reply: DelayedReply[Any] = DelayedReply(mutes=mutes)
        self._requests[request.token] = (delayed_reply, refusal)
        self.step(machine, request)
        return delayed_reply

    def park(
        self, machine: M, decide: Callable[..., bool], request: tuple[Any, ...], refusal: Refusal
    ) -> DelayedReply[Any] | None:
        """Have a request parked without event and effects, by `decide(machine, token, *request)`, for speed.

        `decide` returns True if the request waits in the machine, which is hosted: a later step replies to its token.
        False: nothing has changed, the result is None, and an event has to be submitted.
        """
        token = self.token()
        delayed_reply: DelayedReply[Any] = DelayedReply(mutes=True)
        self._requests[token] = (delayed_reply, refusal)
        try:
            if decide(machine, token, *request):
                return delayed_reply
            del self._requests[token]
        except Exception as mistake:  # noqa: BLE001  # as in `step`; it answers this request, too
            self._shell.step_failed(self, mistake)
            return delayed_reply
        return None

    def read(
        self,
        machine: M,
        decide: Callable[..., T | None],
        request: tuple[Any, ...],
        refusal: Callable[[ErrorCode], T],
    ) -> T | DelayedReply[T] | None:
        """Have a request answered from a machine without event and effects, by `decide(machine, *request)`.

        None: nothing has changed, and an event has to be submitted. Else the reply, as of `when_committed`; it mutes.
        """
        try:
            body = decide(machine, *request)
        except Exception as mistake:  # noqa: BLE001  # as in `step`
            self._shell.step_failed(self, mistake)
            return refusal(_NOT_COORDINATOR)
        if body is None:
            return None
        reply = self.when_committed(body, refusal)
        if isinstance(reply, DelayedReply):
            reply.mutes = True
        return reply

    def record(
        self,
        machine: M,
        decide: Callable[..., bool],
        request: tuple[Any, ...],
        records: Sequence[Any],
        body: T,
        refusal: Callable[[ErrorCode], T],
    ) -> T | DelayedReply[T] | None:
        """Have a request decided without event and effects, by `decide(*request, now_ms)` of the machine, for speed.

        `decide` returns True if the machine has taken `records` in: they are written, and `body` is the reply, as of an
        AppendAndReply. False: nothing has changed, the result is None, and an event has to be submitted. A machine that
        is hosted already is not checked for vacancy.
        """
        try:
            if not decide(*request, self._shell.now_ms()):
                return None
            start = len(self._records)
            self._append(records)
            self._units.append((start, len(self._records)))
            if self.machines.get(machine.machine_id) is not machine:
                self._keep_or_drop(machine)
        except Exception as mistake:  # noqa: BLE001  # as in `step`
            self._shell.step_failed(self, mistake)
            return refusal(_NOT_COORDINATOR)
        return self.when_committed(body, refusal)

    def take(self, machines: Mapping[str, M], records: Sequence[Any]) -> None:
        """Write records that these machines, by id, have taken in already; from now on they are hosted. For speed."""
        self.machines.update(machines)
        self._append(records)

    def step(self, machine: M, event: Any) -> None:
        """Step an event and perform its effects. After an unexpected exception the shard is loaded again."""
        try:
            self.perform(machine, machine.step(event, self._shell.now_ms(), self._shell.wall_ms()))
        except Exception as mistake:  # noqa: BLE001  # any exception: a partial step must not remain
            self._shell.step_failed(self, mistake)

    def when_committed(self, body: T, refusal: Callable[[ErrorCode], T]) -> T | DelayedReply[T]:
        """Return a reply computed from this shard's state: at once, or when the writes before it are committed."""
        if not self._in_flight:
            return body
        delayed_reply: DelayedReply[T] = DelayedReply()
        self._in_flight[-1].append((delayed_reply, body, refusal))
        return delayed_reply

    # ---- effects

    def perform(self, machine: M, effects: Iterable[Effect]) -> None:
        """Perform the effects of one step. Replies are sent last: an answer may serve the connection's next request."""
        replies: list[
            Reply | AppendAndReply | AppendInTransaction
        ] = []  # their requests stay in `_requests`, which `abandon` answers
        for effect in effects:
            if type(effect) is AppendAndReply:  # by identity, for speed: the effect of a commit
                self._append(effect.records)
                self._units.append((len(self._records) - len(effect.records), len(self._records)))
            elif type(effect) is AppendInTransaction:
                self.transactions.setdefault(effect.producer_id, set()).add(machine.machine_id)
                self._append((effect,))
            elif type(effect) is not Reply:
                self._perform(machine, effect)
                continue
            if self._in_flight and effect.when_durable:
                delayed_reply, refusal = self._requests.pop(effect.token)
                self._in_flight[-1].append((delayed_reply, effect.body, refusal))
            else:
                replies.append(effect)
        self._keep_or_drop(machine)
        for reply in replies:
            request = self._requests.pop(reply.token, None)
            if request is not None:  # None: the answer before it made the shard answer all
                request[0].answer(reply.body)

    def _perform(self, machine: M, effect: Effect) -> None:
        match effect:
            case Append():
                self._append((effect.record,))
            case Arm():
                key = effect.key
                self._shell.set_timer(self._timer(machine, key), effect.at_ms, partial(self._fire, machine, key))
            case Disarm():
                self._shell.cancel_timer(self._timer(machine, effect.key))
            case Note():
                self._shell.emit_event(machine.machine_id, effect)
            case Send():
                self._send_when_committed(effect.message, self.term)
            case AppendAndReply() | AppendInTransaction() | Reply():
                raise AssertionError("performed already")
            case _:
                assert_never(effect)

    def _append(self, records: Sequence[Any]) -> None:
        if not self._records and records:
            self._in_flight.append([])
            self._shell.schedule_flush(self)
        self._records += records

    def _send_when_committed(self, message: Any, term: int) -> None:
        """Send after the write in flight, also if it takes longer than its deadline; not after an abandonment."""

        def done(is_committed: bool) -> None:
            if is_committed:
                self._shell.send(self, message)
            elif term == self.term:
                self._send_when_committed(message, term)

        reply = self.when_committed(True, lambda _: False)
        if isinstance(reply, DelayedReply):
            reply.then(done)
        else:
            done(reply)

    def _timer(self, machine: M, key: str) -> TimerKey:
        return (self._hosting.name, machine.machine_id, key)

    def _fire(self, machine: M, key: str) -> None:
        if self.machines.get(machine.machine_id) is machine:  # not one of a shard that was abandoned since
            self.step(machine, TimerFired(key))

    def _keep_or_drop(self, machine: M) -> None:
        is_hosted = self.machines.get(machine.machine_id) is machine
        if machine.is_vacant:
            if is_hosted:
                del self.machines[machine.machine_id]
        elif not is_hosted:
            self.machines.setdefault(machine.machine_id, machine)

    # ---- writes

    @property
    def is_awaited(self) -> bool:
        """Return whether a reply waits for the records that are not written, or there are none."""
        return not self._records or bool(self._in_flight[-1])

    def flush(self) -> None:
        """Write the records of this loop tick."""
        records, self._records = self._records, []
        units, self._units = self._units, []
        if records:
            self._write(records, units)

    def become_ready(self) -> None:
        """Serve requests from now on; the replayed records count as a write that may not be committed yet (O1)."""
        self.state = ShardState.READY
        if not self._in_flight:  # otherwise the replies wait for the last write, which ends the log
            self._in_flight.append([])
            self._write([], [])

    def _write(self, records: list[Any], units: list[Unit]) -> None:
        write = self._in_flight[-1]
        try:
            end, is_committed = self._append_runs(records, units)
            if is_committed and self._in_flight and self._in_flight[0] is write:
                self._in_flight.popleft()
                answer(write)
            else:
                self._await_commit(write, end)
        except StorageFailed as cause:
            self._shell.storage_failed(self, cause)
        except Exception as mistake:  # noqa: BLE001  # the other shards are flushed in this tick, too
            self._shell.step_failed(self, mistake)

    def _append_runs(self, records: list[Any], units: list[Unit]) -> tuple[int, bool]:
        """Write the records in their order; those of a transaction are a batch of their own."""
        encode_batch = self._hosting.encode_batch
        if encode_batch is not None and records:
            batch = encode_batch(records)
            if batch is not None:
                return self._shell.append_encoded(self, *batch)
        encode, append, run = self._hosting.codec.encode, self._shell.append, list[Any]()
        for at, record in enumerate(records):
            if type(record) is not AppendInTransaction:
                run.append(record)
                continue
            if run:
                append(self, encode(run), None, partial(_encoded_units, encode, run, units, at - len(run)))
                run = []
            encoded = encode(record.records)
            whole = partial(_whole, len(encoded))
            end = append(self, encoded, (record.producer_id, record.producer_epoch), whole)
        if not run and records:
            return end
        return append(self, encode(run), None, partial(_encoded_units, encode, run, units, len(records) - len(run)))

    def write_marker(self, producer_id: int, write: Callable[[], tuple[int, bool]], *, is_commit: bool) -> int:
        """End a producer's transaction: `write` appends the marker, and returns as `ShardContext.append` does.

        Returns the end offset of the log. What `write` raises changes nothing.
        """
        self.flush()  # records that were decided before the marker are before it in the log
        end, is_committed = write()
        self._end_transaction(producer_id, is_commit=is_commit)
        if not is_committed:
            reads: list[PendingReply] = []  # that wait for the marker
            self._in_flight.append(reads)
            self._await_commit(reads, end)
        return end

    def _end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        for machine_id in self.transactions.pop(producer_id, ()):
            machine = self.machines.get(machine_id)
            if machine is not None and self._hosting.transactional is not None:
                self._hosting.transactional(machine).end_transaction(producer_id, is_commit=is_commit)
                self._keep_or_drop(machine)

    def _await_commit(self, write: list[PendingReply], end: int) -> None:
        self._shell.when_committed(self, end, partial(self._committed, write, end, self.term))

    def _committed(self, write: list[PendingReply], end: int, term: int, error: ErrorCode) -> None:
        """Answer the replies of a write: as they are if it is committed, else COORDINATOR_NOT_AVAILABLE, as in Kafka.

        After a timeout the write stays in flight, and reads of its result wait with a new deadline. Other errors
        abandon the shard.
        """
        if term != self.term:
            return
        if error not in (_NONE, _TOO_FEW_REPLICAS, _TIMED_OUT):
            failure = NotLeader if error is _NOT_LEADER else StorageFailed
            cause = failure(f"records of shard {self.index} were not committed: {error.name}")
            self._shell.storage_failed(self, cause)
            return
        replies = write[:]
        if error is _TIMED_OUT:
            write.clear()
            self._await_commit(write, end)
        else:
            oldest = self._in_flight.popleft()
            assert oldest is write, "writes were committed out of order"
        answer(replies if error is _NONE else refused(replies, ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def abandon(self, code: ErrorCode) -> None:
        """Remove all state and answer every request with `code`: the shard moved, or its log failed."""
        self.term += 1
        self.state = ShardState.DOWN
        in_flight, requests = self._in_flight, self._requests
        self._records, self._in_flight, self._requests, self.machines = [], deque(), {}, {}
        self.transactions, self._units = {}, []
        for write in in_flight:
            answer(refused(write, code))
        answer([(delayed_reply, refusal(code), refusal) for delayed_reply, refusal in requests.values()])


def _encoded_units(
    encode: Callable[[list[Any]], list[Encoded]], run: list[Any], units: list[Unit], start: int
) -> list[Unit]:
    """Return the units of a run of records that begins at `start`, by the positions of their encoded records.

    A record may be encoded as several: they are encoded again, to be counted.
    """
    found: list[Unit] = []
    at = position = 0
    for first, last in [(first - start, last - start) for first, last in units if start <= first < start + len(run)]:
        position += len(encode(run[at:first]))
        found.append((position, position + len(encode(run[first:last]))))
        at, position = last, found[-1][1]
    return found


def _whole(count: int) -> list[Unit]:
    return [(0, count)]


def refused(replies: list[PendingReply], code: ErrorCode) -> list[PendingReply]:
    """Return the same replies with `code` instead of their bodies."""
    return [(delayed_reply, refusal(code), refusal) for delayed_reply, _, refusal in replies]


def answer(replies: list[PendingReply]) -> None:
    """Send these replies."""
    for delayed_reply, body, _ in replies:
        delayed_reply.answer(body)
