"""One partition as a replica: leader, follower or offline. Pure: each method handles an event and returns effects.

Laws
    L1  The high watermark only grows, except when a follower truncates its log or a failed log is opened again.
    L3  A leader's high watermark is at most its log end offset, the offset it has flushed where flushing is asked for,
        and the log end offset of every replica that is in the ISR, is joining it, or has been caught up since it left.
        A replica of the ISR that fetches below the high watermark has lost committed records, as in a power cut: it
        leaves the ISR, or the ELR, at once, so that it is not elected.
    L4  The high watermark does not move while the ISR is smaller than min.insync.replicas, or the ELR is not empty
        (KIP-966): so each member of the ELR has every committed record, even if min.insync.replicas is changed. The
        minimum in force is at most the number of replicas.
    L5  Every wait completes exactly once: when its offset is reached, at its deadline, or when the replica no longer
        leads. Waits that reach their offset complete in the order of their offsets.

Source: KIP-497 (ISR changes), KIP-679, KIP-966, and what Apache Kafka 4.3.1 does.

The file is longer than 400 lines because one class owns the high watermark and all that bounds it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from enum import Enum
from typing import Final, Generic, TypeVar

from rota.coordinator.replica.waits import Complete, OffsetWaits
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

T = TypeVar("T")

UNKNOWN_OFFSET: Final = -1
REPLICA_LAG_MS_MAX: Final = 30_000  # replica.lag.time.max.ms
NEVER_MS: Final = -(1 << 62)


class Role(Enum):
    LEADER = "Leader"
    FOLLOWER = "Follower"
    OFFLINE = "Offline"


_LEADER, _NONE = Role.LEADER, ErrorCode.NONE  # bound once: each append looks at them


@dataclass(frozen=True, slots=True)
class HighWatermarkMoved:
    """`ReplicaState.high_watermark` has increased: fetches can return more records."""


@dataclass(frozen=True, slots=True)
class ShrinkIsr:
    """Ask the controller for this smaller ISR; `isr_changed` or `isr_refused` answers.

    The replicas in `lacking` have lost committed records and must leave the ELR, too.
    """

    isr: frozenset[int]
    lacking: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ExpandIsr:
    """Ask the controller for this larger ISR, or for the same one without ELR.

    `isr_changed` or `isr_refused` answers.
    """

    isr: frozenset[int]


Effect = HighWatermarkMoved | Complete[T] | ShrinkIsr | ExpandIsr
Effects = Sequence[Effect[T]]

_NOTHING: Final = ()
MOVED: Final = (HighWatermarkMoved(),)


@dataclass(slots=True)
class FetchState:
    """The state of one follower as the leader knows it from its fetches. Times in ms."""

    last_caught_up_ms: int = NEVER_MS
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: int = NEVER_MS
    last_fetch_leader_end_offset: int = UNKNOWN_OFFSET

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Note a fetch at `offset`: the follower has all records before it.

        The follower is caught up if `offset` is the leader's log end offset; it was caught up at its previous fetch if
        `offset` is the leader's log end offset of that time.
        """
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.last_fetch_ms, self.last_fetch_leader_end_offset = now_ms, leader_end_offset

    def left_isr(self) -> None:
        """Note that the follower left the ISR: forget its log end offset and when it was caught up.

        What it had at its last fetch before says nothing of the next one: its log may have failed in between.
        """
        self.last_caught_up_ms = self.last_fetch_ms = NEVER_MS
        self.log_end_offset = self.last_fetch_leader_end_offset = UNKNOWN_OFFSET

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_ms_max


class ReplicaState(Generic[T]):
    """A replica, at first a follower without a leader. `T` is the type of the tokens of waits, as in `Complete`."""

    __slots__ = (
        "_committed",
        "_flushed",
        "_followers",
        "_is_alone",
        "_lag_ms_max",
        "_min_insync",
        "_now_ms",
        "_pending_isr",
        "broker_id",
        "elr",
        "flushed_offset",
        "flushes",
        "has_min_isr",
        "high_watermark",
        "isr",
        "leader_epoch",
        "leader_epoch_start_offset",
        "log_end_offset",
        "log_start_offset",
        "replicas",
        "role",
    )

    def __init__(
        self,
        broker_id: int,
        *,
        log_start_offset: int = 0,
        log_end_offset: int = 0,
        high_watermark: int = 0,
        flushed_offset: int = 0,
        flushes: bool = False,
        min_insync_replicas: int = 1,
        lag_ms_max: int = REPLICA_LAG_MS_MAX,
    ) -> None:
        """`high_watermark` is that of the checkpoint; `flushes` makes the flushed offset a bound on it."""
        self.broker_id, self._lag_ms_max = broker_id, lag_ms_max
        self.role, self.leader_epoch = Role.FOLLOWER, -1
        self.flushes, self._min_insync = flushes, min_insync_replicas
        self.has_min_isr = False  # whether the ISR is large enough for acks=all, and the ELR is empty
        self.replicas: tuple[int, ...] = ()
        self.isr: frozenset[int] = frozenset()
        self.elr: frozenset[int] = frozenset()
        self._pending_isr: frozenset[int] | None = None
        self._followers: dict[int, FetchState] = {}
        self._is_alone = False
        self._committed, self._flushed = OffsetWaits[T](), OffsetWaits[T]()
        self._now_ms = 0
        self.log_end_offset, self.high_watermark = log_end_offset, high_watermark
        self._use_log(log_start_offset, log_end_offset, flushed_offset)

    # ---- queries

    @property
    def has_waits(self) -> bool:
        return bool(self._committed or self._flushed)

    @property
    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline of a wait; None if there is no wait."""
        deadlines = [at for at in (self._committed.deadline_ms(), self._flushed.deadline_ms()) if at is not None]
        return min(deadlines, default=None)

    @property
    def has_followers(self) -> bool:
        """Return whether this is a leader of a partition with other replicas."""
        return bool(self._followers)

    def fetch_state(self, replica_id: int) -> FetchState | None:
        """Return the fetch state of a follower; None if the broker is no follower of this leader."""
        return self._followers.get(replica_id)

    def low_watermark(self, live: Container[int]) -> int:
        """Return the lowest log start of this leader, of its followers among the `live` brokers, and of ISR and ELR.

        No replica that may be elected has records before it. UNKNOWN_OFFSET while a follower has not fetched yet.
        """
        eligible = self.isr | self.elr
        starts = [
            each.log_start_offset
            for broker_id, each in self._followers.items()
            if broker_id in live or broker_id in eligible
        ]
        return min([self.log_start_offset, *starts])

    # ---- the role

    def become_leader(
        self, leader_epoch: int, replicas: Iterable[int], isr: Iterable[int], now_ms: int, elr: Iterable[int] = ()
    ) -> Effects[T]:
        """Become the leader with this ISR and ELR. An older epoch than the current one changes nothing.

        A call with the current epoch updates replicas, ISR and ELR; a pending ISR change stays pending.
        """
        if leader_epoch < self.leader_epoch or self.role is Role.OFFLINE:
            return _NOTHING
        if self.role is not Role.LEADER or leader_epoch > self.leader_epoch:
            self._followers, self.leader_epoch_start_offset, self._pending_isr = {}, self.log_end_offset, None
        self.role, self.leader_epoch, self._now_ms = Role.LEADER, leader_epoch, max(now_ms, self._now_ms)
        self._use_isr(isr)
        self.elr = frozenset(elr)
        self.replicas = tuple(replicas)
        self._followers = {
            replica: self._followers.get(replica)
            or FetchState(last_caught_up_ms=now_ms if replica in self.isr else NEVER_MS)
            for replica in self.replicas
            if replica != self.broker_id
        }
        self._is_alone = not self._followers
        self._check_min_isr()
        return [*self._empty_elr(), *self._advance()] if self.elr else self._advance()

    def become_follower(self, leader_epoch: int) -> Effects[T]:
        """Follow the leader of this epoch. An older epoch than the current one changes nothing."""
        if leader_epoch < self.leader_epoch or self.role is Role.OFFLINE:
            return _NOTHING
        self.role, self.leader_epoch = Role.FOLLOWER, leader_epoch
        return self._stop_leading(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def fail(self, error: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> Effects[T]:
        """Go offline, because the log cannot be used any more. All waits complete with `error`."""
        self.role = Role.OFFLINE
        return self._stop_leading(error)

    def reopen(self, log_start_offset: int, log_end_offset: int, flushed_offset: int) -> None:
        """Use the recovered log of an offline replica. The replica is a follower until it gets a role."""
        assert self.role is Role.OFFLINE, "only a log that failed is opened again"
        self.role = Role.FOLLOWER
        self._use_log(log_start_offset, log_end_offset, flushed_offset)

    def _stop_leading(self, error: ErrorCode) -> Effects[T]:
        self.isr, self.elr, self._pending_isr, self._followers = frozenset(), frozenset(), None, {}
        self.has_min_isr = self._is_alone = False
        return [*self._committed.fail(error), *self._flushed.fail(error)]

    def _use_log(self, log_start_offset: int, log_end_offset: int, flushed_offset: int) -> None:
        self.log_start_offset = log_start_offset
        self.log_end_offset = self.leader_epoch_start_offset = log_end_offset
        self.flushed_offset = min(flushed_offset, log_end_offset)
        self.high_watermark = max(min(self.high_watermark, log_end_offset), log_start_offset)

    # ---- the log

    def appended(self, log_end_offset: int) -> Effects[T]:
        """Handle an append: the log ends at `log_end_offset` now."""
        self.log_end_offset = log_end_offset
        if self._is_alone and not self.flushes and not self._committed and log_end_offset > self.high_watermark:
            self.high_watermark = log_end_offset  # every append of a broker that is alone
            return MOVED
        return self._advance()

    def flushed(self, offset: int) -> Effects[T]:
        """Handle a flush: all records before `offset` are on the medium."""
        self.flushed_offset = max(self.flushed_offset, min(offset, self.log_end_offset))
        if not self._flushed:
            return self._advance()
        return [*self._flushed.reach(self.flushed_offset), *self._advance()]

    def truncated(self, log_start_offset: int, log_end_offset: int) -> None:
        """Handle a truncation of a follower's log, to its new start and end."""
        assert self.role is Role.FOLLOWER, "a leader's log is never truncated"
        self._use_log(log_start_offset, log_end_offset, self.flushed_offset)

    def log_start_moved(self, log_start_offset: int) -> Effects[T]:
        """Handle a deletion of records before `log_start_offset`. Deleted records count as committed."""
        self.log_start_offset = max(self.log_start_offset, log_start_offset)
        if log_start_offset <= self.high_watermark:
            return _NOTHING
        return self._move_to(log_start_offset)

    def leader_committed(self, high_watermark: int) -> Effects[T]:
        """Take the high watermark of a follower's leader, at most up to the log end offset."""
        offset = min(high_watermark, self.log_end_offset)
        if self.role is not Role.FOLLOWER or offset <= self.high_watermark:
            return _NOTHING
        return self._move_to(offset)

    def configure(self, *, flushes: bool, min_insync_replicas: int) -> Effects[T]:
        """Apply settings: whether flushing bounds the high watermark, and min.insync.replicas."""
        self.flushes, self._min_insync = flushes, min_insync_replicas
        self._check_min_isr()
        reached = [] if flushes else self._flushed.reach(self.log_end_offset)
        return [*reached, *self._empty_elr(), *self._advance()]

    # ---- the followers

    def follower_fetched(
        self, replica_id: int, offset: int, now_ms: int, log_start_offset: int = UNKNOWN_OFFSET
    ) -> Effects[T]:
        """Handle a follower's fetch at `offset`: it has all records before it. Unknown followers change nothing.

        `log_start_offset` is that of the follower's log.
        """
        follower = self._followers.get(replica_id)
        if follower is None or offset > self.log_end_offset:
            return _NOTHING
        self._now_ms, follower.log_start_offset = max(self._now_ms, now_ms), log_start_offset
        follower.fetched(offset, self.log_end_offset, now_ms)
        is_eligible = replica_id in self.isr or replica_id in self.elr
        if offset < self.high_watermark and is_eligible and self._pending_isr is None:
            self._pending_isr = self.isr - {replica_id}
            return [ShrinkIsr(self._pending_isr, lacking=frozenset({replica_id}))]
        expands = replica_id not in self.isr and self._pending_isr is None and self._is_isr_candidate(follower)
        if not expands:
            return self._advance()
        self._pending_isr = self.isr | {replica_id}
        return [ExpandIsr(self._pending_isr), *self._advance()]

    def isr_changed(self, isr: Iterable[int], now_ms: int, elr: Iterable[int] | None = None) -> Effects[T]:
        """Handle the acceptance of an ISR change. With `elr` None the ELR of the last `become_leader` stays."""
        if self.role is not Role.LEADER:
            return _NOTHING
        self._pending_isr, self._now_ms = None, max(self._now_ms, now_ms)
        self._use_isr(isr)
        self.elr = self.elr if elr is None else frozenset(elr)
        self._check_min_isr()
        return self._advance()

    def _use_isr(self, isr: Iterable[int]) -> None:
        """Set the ISR. A follower that has left it counts as caught up only after its next fetch: it may be dead."""
        before, self.isr = self.isr, frozenset(isr)
        for replica_id in before - self.isr:
            if replica_id in self._followers:
                self._followers[replica_id].left_isr()

    def isr_refused(self) -> Effects[T]:
        """Handle the refusal of an ISR change; the next fetch or tick requests a change again."""
        self._pending_isr = None
        return self._advance()

    def tick(self, now_ms: int) -> Effects[T]:
        """Handle the time: complete expired waits; request an ISR without the followers that lag too long."""
        self._now_ms = max(self._now_ms, now_ms)
        effects: list[Effect[T]] = [*self._empty_elr(), *self._advance()]
        effects += self._committed.expire(now_ms)
        effects += self._flushed.expire(now_ms)
        lagging = frozenset(
            broker_id for broker_id, follower in self._followers.items() if not self._is_caught_up(follower)
        )
        if self._pending_isr is None and lagging & self.isr:
            self._pending_isr = self.isr - lagging
            effects.append(ShrinkIsr(self._pending_isr))
        return effects

    def _is_isr_candidate(self, follower: FetchState) -> bool:
        return follower.log_end_offset >= max(self.high_watermark, self.leader_epoch_start_offset)

    def _is_caught_up(self, follower: FetchState) -> bool:
        return follower.is_caught_up(self.log_end_offset, self._now_ms, self._lag_ms_max)

    def _check_min_isr(self) -> None:
        self.has_min_isr = self.role is Role.LEADER and self._is_isr_large_enough() and not self.elr

    def _is_isr_large_enough(self) -> bool:
        return len(self.isr) >= min(self._min_insync, len(self.replicas))

    def _empty_elr(self) -> Effects[T]:
        """Request the same ISR without ELR if the ISR is large enough, as after a lower min.insync.replicas."""
        if not self.elr or self._pending_isr is not None or not self._is_isr_large_enough():
            return _NOTHING
        self._pending_isr = self.isr
        return [ExpandIsr(self.isr)]

    # ---- waits

    def committed_error(self, offset: int) -> ErrorCode | None:
        """Return the code with which a wait for the high watermark to reach `offset` ends now; None if it must wait."""
        if self.role is not _LEADER:
            return self.role_error()
        if offset > self.high_watermark:
            return None
        return _NONE if self.has_min_isr else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def flushed_error(self, offset: int) -> ErrorCode | None:
        """Return the code with which a wait for the leader's flush up to `offset` ends now; None if it must wait."""
        if self.role is not _LEADER:
            return self.role_error()
        return None if self.flushes and offset > self.flushed_offset else _NONE

    def await_committed(self, offset: int, deadline_ms: int, token: T) -> None:
        """Complete `token` when the high watermark reaches `offset` (`committed_error` says that it must wait)."""
        self._committed.add(offset, deadline_ms, token)

    def await_flushed(self, offset: int, deadline_ms: int, token: T) -> None:
        """Complete `token` when the leader has flushed up to `offset` (`flushed_error` says that it must wait)."""
        self._flushed.add(offset, deadline_ms, token)

    def role_error(self) -> ErrorCode:
        """Return the code of a leader's operation on a replica that does not lead."""
        is_offline = self.role is Role.OFFLINE
        return ErrorCode.KAFKA_STORAGE_ERROR if is_offline else ErrorCode.NOT_LEADER_OR_FOLLOWER

    # ---- the high watermark

    def _advance(self) -> Effects[T]:
        """Move the high watermark up to the lowest of its bounds, if that is higher."""
        if not self.has_min_isr:  # or no leader
            return _NOTHING
        offset = self.log_end_offset
        if self.flushes and self.flushed_offset < offset:
            offset = self.flushed_offset
        if not self._is_alone:
            for replica_id, follower in self._followers.items():
                if follower.log_end_offset < offset and self._bounds(replica_id):
                    offset = follower.log_end_offset
        return self._move_to(offset) if offset > self.high_watermark else _NOTHING

    def _bounds(self, replica_id: int) -> bool:
        """Return whether a follower bounds the high watermark: in the ISR, joining it, or caught up."""
        joining = self._pending_isr is not None and replica_id in self._pending_isr
        return replica_id in self.isr or joining or self._is_caught_up(self._followers[replica_id])

    def _move_to(self, offset: int) -> Effects[T]:
        self.high_watermark = offset
        return [*MOVED, *self._committed.reach(offset)] if self._committed else MOVED
