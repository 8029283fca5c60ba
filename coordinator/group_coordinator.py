"""The group coordinator: groups of both protocols, hosted by the runtime on the partitions of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import starmap
from typing import Any, Final

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.consumer_group import records as consumer_records
from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.consumer_group.records import ConsumerRecord
from rota.coordinator.consumer_group.settings import Environment
from rota.coordinator.group import records
from rota.coordinator.group.effects import GroupRecord, OffsetRecord, OffsetRecords
from rota.coordinator.group.events import ExpireOffsets, TopicsDeleted
from rota.coordinator.group.expiry import expires_ms
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group_notes import GroupNotes
from rota.coordinator.observe.health_log import ROUND_MS, HealthLog
from rota.coordinator.observe.lag import UNKNOWN, Committed, GroupLag, committed_lag, total
from rota.coordinator.observe.lag_watch import LagWatch
from rota.coordinator.observe.timeline import EncodedEvents, Timelines, TimelineStore
from rota.coordinator.runtime.contract import Encoded, Hosting, RecordType
from rota.coordinator.runtime.coordinator import COMMIT_TIMEOUT_MS, CoordinatorRuntime, HostPartition, TimerService
from rota.coordinator.runtime.routing import shard_of
from rota.coordinator.runtime.shard import Shard, ShardState
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import GroupEvent

OFFSETS_TOPIC: Final = "__consumer_offsets"
NO_BROKER: Final = -1
REPEATS_MAX: Final = 10  # of a removal of offsets in a shard that fails: a mistake in it must not go on for ever
MINUTE_MS: Final = 60_000
HEALTH_ROUND_MS: Final = ROUND_MS
GroupShard = Shard[HostedGroup]
_NO_TOPICS: Final = Environment()  # what groups of the consumer protocol see where no broker says more


class RecordCodec:
    """The bytes of `__consumer_offsets`."""

    @staticmethod
    def encode(decided: Iterable[Any]) -> list[Encoded]:
        return records.encode(decided, consumer_records.encode)

    @staticmethod
    def decode(key: bytes, value: bytes | None) -> GroupRecord | OffsetRecord | OffsetRecords | ConsumerRecord | None:
        return records.decode(key, value) or consumer_records.decode(key, value)


class GroupCoordinator(CoordinatorRuntime[HostedGroup]):
    """All groups of this broker."""

    def __init__(
        self,
        *,
        shards: int,
        config: GroupConfig,
        partition: Callable[[int], HostPartition],
        timers: TimerService,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tick_queue: Callable[[Callable[[], None]], object],
        ensure_topic: Callable[[], Awaitable[bool]],
        leader: Callable[[int], int | None],
        commit_timeout_ms: int = COMMIT_TIMEOUT_MS,
        timelines: TimelineStore | None = None,
        broker: int = NO_BROKER,
        environment: Environment = _NO_TOPICS,
    ) -> None:
        """`ensure_topic` creates the topic unless it exists and returns False when that fails.
        `leader` returns the broker that leads a partition of it; None while no broker does.
        `timelines` keeps the events of groups, by default in memory alone; `broker` is this one, as the events say it.
        """
        self.config, self.environment = config, environment
        self.timelines: TimelineStore = timelines or Timelines()
        self.lag_watch = self._watch_lags(now_ms)
        self.health = HealthLog(events=self.timelines.of, lag=self.lag_watch.lag, wall_ms=wall_ms)
        self.notes = GroupNotes(self.timelines, self.health.event_added, broker, now_ms, wall_ms, tick_queue)
        self._ensure_topic, self._leader = ensure_topic, leader
        self._deleted_topics: dict[str, frozenset[bytes]] = {}  # ids by name; their offsets are not removed yet
        self._is_removing = False
        super().__init__(
            hosting(lambda: self.config, self.environment),
            shards=shards,
            partition=partition,
            timers=timers,
            now_ms=now_ms,
            wall_ms=wall_ms,
            tick_queue=tick_queue,
            emit_event=self.notes.add,
            commit_timeout_ms=commit_timeout_ms,
        )

    def _watch_lags(self, now_ms: Callable[[], int]) -> LagWatch:
        return LagWatch(
            groups=lambda: [group.group_id for group in self.machines() if group.offsets],
            offsets=self._offsets_lag,
            found=lambda group_id: self.health.event_added(group_id),
            now_ms=now_ms,
        )

    def group(self, shard: GroupShard, group_id: str) -> HostedGroup:
        """Return the group of that id; a new one is kept only when a step leaves something in it."""
        return shard.machines.get(group_id) or HostedGroup(group_id, self.config, self.environment)

    async def ensure_topic(self) -> bool:
        """Create the offsets topic unless it exists, as the first FindCoordinator does; False when that fails."""
        return self.shards[0].state is not ShardState.DOWN or await self._ensure_topic()

    def leader_of(self, group_id: str) -> int | None:
        """Return the broker that coordinates this group; None while no broker does."""
        return self._leader(self.partition_of(group_id))

    def partition_of(self, group_id: str) -> int:
        """Return the partition of the offsets topic that has the records of this group."""
        return shard_of(group_id, len(self.shards))

    def retained(self, group_id: str) -> dict[tuple[str, int], Committed]:
        """Return the committed offsets of a group that is coordinated here, and their expiry times."""
        shard = self.ready(group_id)
        group = None if isinstance(shard, ErrorCode) else shard.machines.get(group_id)
        if group is None:
            return {}
        ends_ms = expires_ms(group, self.config.offsets_retention_ms)
        return {
            key: Committed(value.offset, value.commit_ms, ends_ms.get(key, UNKNOWN))
            for key, value in group.offsets.items()
        }

    def events_of(self, group_id: str) -> tuple[GroupEvent, ...]:
        """Return the events of a group's timeline, oldest first; what was answered just now is in it (TL16)."""
        self.notes.write()
        return self.timelines.of(group_id)

    def encoded_events_of(self, group_id: str) -> EncodedEvents:
        """Return the bytes of these events, for those who decode them in a thread."""
        self.notes.write()
        return self.timelines.encoded(group_id)

    def look_at_health(self) -> None:
        """Look at the lags and events of the next groups, and log which lines were left out, every HEALTH_ROUND_MS."""
        self.lag_watch.round()
        self.health.round()
        self.notes.log_left_out()

    def _offsets_lag(self, group_id: str) -> GroupLag:
        """Return a lag without the ends of the partitions: offsets and when they expire."""
        retained = self.retained(group_id)
        return total(group_id, self.wall_ms(), "", tuple(starmap(committed_lag, retained.items())))

    def expire_offsets(self, retention_ms: int) -> None:
        """Remove expired offsets of all groups, in slices (offsets.retention.check.interval.ms)."""
        for group in self.machines():
            if not group.summary.member_count:  # its offsets may be about to expire
                self.health.event_added(group.group_id)
        self.broadcast(ExpireOffsets(retention_ms), _cost)

    def topics_deleted(self, topics: Iterable[tuple[str, bytes]]) -> None:
        """Remove the offsets of these topics (name and id), in slices; topics of one tick are removed together."""
        for name, topic_id in topics:
            self._deleted_topics[name] = self._deleted_topics.get(name, frozenset()) | {topic_id}
        if self._deleted_topics and not self._is_removing:
            self._is_removing = True
            self._tick_queue(self._remove_offsets)

    def reconfigure(self, config: GroupConfig) -> None:
        """Apply other settings to all groups from now on."""
        if config == self.config:
            return
        self.config = config
        for shard in self.shards:
            for group in shard.machines.values():
                group.config = config

    def _remove_offsets(self) -> None:
        deleted, self._deleted_topics = self._deleted_topics, {}
        self._is_removing = bool(deleted)
        if deleted:  # topics that are deleted meanwhile wait for the end of this round
            self.broadcast(TopicsDeleted(deleted, self.wall_ms()), _cost, self._remove_offsets, repeats_max=REPEATS_MAX)


def group_config(config: BrokerConfig) -> GroupConfig:
    """Return the settings of groups from those of the broker."""
    return GroupConfig(
        group_size_max=config.group_max_size,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        session_min_ms=config.group_min_session_timeout_ms,
        session_max_ms=config.group_max_session_timeout_ms,
        offsets_retention_ms=config.offsets_retention_minutes * MINUTE_MS,
        record_bytes_max=config.message_max_bytes,
    )


def hosting(config: Callable[[], GroupConfig], environment: Environment | None = None) -> Hosting[HostedGroup]:
    """Return the hosting of groups for the runtime. `config` returns the settings of classic groups in force."""

    def create(group_id: str) -> HostedGroup:
        return HostedGroup(group_id, config(), environment)

    of_group: RecordType[HostedGroup] = RecordType(_group_id, create)
    record_types = dict.fromkeys((GroupRecord, OffsetRecord, OffsetRecords, ConsumerRecord), of_group)
    decode_many = partial(records.decode_many, decode_other=RecordCodec.decode)
    return Hosting("group", RecordCodec(), record_types, lambda group: group, decode_many, records.encode_batch)


def _group_id(record: Any) -> str:
    group_id: str = record.group_id
    return group_id


def _cost(group: HostedGroup) -> int:
    return 1 + len(group.offsets)
