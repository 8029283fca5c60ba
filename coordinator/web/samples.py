"""Reads the values of `/metrics` from the objects that count them: plain numbers, without text and prometheus.

A scrape reads thousands of partitions and offsets. It runs in slices, so that the loop stands still for none of them.

Laws
    OB4 The series of topics, partitions and groups have named limits. What is beyond them is summed under `other`, or,
        where a sum means nothing (offsets), left out. Who was exposed once stays exposed while it exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from rota.coordinator.group.machine import Group
from rota.coordinator.observe.counters import ApiCounters
from rota.coordinator.observe.lag import UNKNOWN
from rota.coordinator.observe.lag_service import Lag
from rota.coordinator.replica.partition import Partition
from rota.coordinator.runtime.shard import ShardState
from rota.coordinator.web.site import Site, not_ready
from rota.protocol.errors import ErrorCode

TOPICS_MAX: Final = 500
PARTITIONS_MAX: Final = 2_000
GROUPS_MAX: Final = 500
LAG_PARTITIONS_MAX: Final = 5_000
LAG_KEPT_MS: Final = 300_000  # an answer of the leaders that is older is not exposed any more
OTHER: Final = "other"
NO_LEADER: Final = -1


class Sample(NamedTuple):
    """One value of a family: a number, or the counters of a histogram."""

    family: str
    labels: tuple[str, ...]
    value: float | ApiCounters


class ExposedKeys:
    """The keys that have series of their own, at most `limit`: the first ones, while they exist."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._keys: dict[object, None] = {}

    def update(self, keys: Iterable[object]) -> Iterator[None]:
        """Take over the keys that exist now; iterates over nothing, once for each key (the loop may have its turn)."""
        existing: dict[object, None] = {}
        for key in keys:
            existing[key] = None
            yield
        self._keys = {key: None for key in self._keys if key in existing}
        for key in existing:
            if len(self._keys) >= self._limit:
                return
            self._keys[key] = None

    def __contains__(self, key: object) -> bool:
        return key in self._keys


class Samples:
    """Reads the samples of one broker, scrape after scrape."""

    def __init__(self, site: Site, version: str, lag: Lag | None = None) -> None:
        """`lag` has the lags that were read before a scrape."""
        self._site, self._version, self._lag = site, version, lag
        self._topics, self._partitions = ExposedKeys(TOPICS_MAX), ExposedKeys(PARTITIONS_MAX)
        self._groups, self._lags = ExposedKeys(GROUPS_MAX), ExposedKeys(LAG_PARTITIONS_MAX)
        self._unhealthy = ExposedKeys(GROUPS_MAX)

    def read(self) -> Iterator[Sample | None]:
        """Iterate over all samples; None where the loop may have its turn."""
        yield from self._broker()
        yield from self._requests()
        yield None
        yield from self._cluster()
        yield from self._logs()
        yield from self._shards()
        yield from self._rebalances()
        yield from self._group_states()
        yield from self._group_lags()
        yield from self._findings()

    def _broker(self) -> Iterator[Sample]:
        site, topics = self._site, self._site.node.topics
        yield Sample("rota_info", (self._version, topics.cluster_id, str(site.node.config.node_id)), 1)
        yield Sample("rota_ready", (), int(not any(not_ready(site))))
        yield Sample("rota_active_controller", (), int(topics.controller_id == topics.broker_id))
        yield Sample("rota_brokers", (), len(topics.brokers))
        yield Sample("rota_topics", (), len(topics))
        yield Sample("rota_loop_stalls", (), site.loop_watch.stalls)
        yield Sample("rota_loop_stall_seconds", (), site.loop_watch.stalled_seconds)
        if site.isr_counts is not None:
            yield Sample("rota_isr_shrinks", (), site.isr_counts.shrinks)
            yield Sample("rota_isr_expands", (), site.isr_counts.expansions)

    def _requests(self) -> Iterator[Sample]:
        connections = self._site.connections
        yield Sample("rota_connections", (), len(connections))
        yield Sample("rota_connections_opened", (), connections.opened_count)
        yield Sample("rota_connections_refused", (), connections.refused_count)
        throttle = self._site.node.client_throttle
        for quota, (times, total_ms) in sorted(throttle.throttled.items()) if throttle is not None else ():
            yield Sample("rota_client_throttles", (quota,), times)
            yield Sample("rota_client_throttle_seconds", (quota,), total_ms / 1_000)
        yield Sample("rota_request_memory_bytes", (), connections.request_memory.held_bytes)
        yield Sample("rota_request_memory_limit_bytes", (), connections.request_memory.bytes_max)
        for api, counters in list(connections.api_counters.items()):
            yield Sample("rota_request_latency_seconds", (api,), counters)
            for code, count in list(counters.errors.items()):
                yield Sample("rota_request_errors", (api, ErrorCode.of(code).name), count)

    def _cluster(self) -> Iterator[Sample | None]:
        """The values of all partitions in the image of the cluster."""
        topics = self._site.node.topics
        under_replicated = leaders = partitions = offline = 0
        for topic in topics:
            for state in topic.partitions:
                partitions += 1
                offline += state.leader == NO_LEADER or state.leader not in topics.brokers
                if topics.is_leader(state):
                    leaders += 1
                    under_replicated += len(state.isr) < len(state.replicas)
            yield None
        is_controller = topics.controller_id == topics.broker_id
        yield Sample("rota_under_replicated_partitions", (), under_replicated)
        yield Sample("rota_leaders", (), leaders)
        yield Sample("rota_partitions", (), partitions)
        yield Sample("rota_offline_partitions", (), offline if is_controller else 0)

    # ---- logs

    def _logs(self) -> Iterator[Sample | None]:
        partitions = self._site.node.partitions.all()
        yield from self._topics.update(partition.topic for partition in partitions)
        yield from self._partitions.update((partition.topic, partition.index) for partition in partitions)
        by_topic: dict[str, list[int]] = {}
        offline = under_min = other_bytes = 0
        for partition in partitions:
            yield None
            topic = partition.topic if partition.topic in self._topics else OTHER
            sums = by_topic.setdefault(topic, [0, 0, 0])
            sums[0] += partition.bytes_in
            sums[1] += partition.records_in
            sums[2] += partition.bytes_out
            if partition.offline is not None:
                offline += 1
                continue
            under_min += partition.is_leader and not partition.state.has_min_isr
            if (partition.topic, partition.index) in self._partitions:
                yield from _log(partition)
            else:
                other_bytes += partition.log.size_bytes
        if other_bytes:
            yield Sample("rota_log_size_bytes", (OTHER, OTHER), other_bytes)
        yield Sample("rota_replicas", (), len(partitions))
        yield Sample("rota_offline_replicas", (), offline)
        yield Sample("rota_under_min_isr_partitions", (), under_min)
        for topic, (bytes_in, records_in, bytes_out) in by_topic.items():
            yield Sample("rota_topic_bytes_in", (topic,), bytes_in)
            yield Sample("rota_topic_records_in", (topic,), records_in)
            yield Sample("rota_topic_bytes_out", (topic,), bytes_out)

    # ---- groups

    def _shards(self) -> Iterator[Sample]:
        groups = self._site.node.groups
        states = Counter(shard_label(shard.state, is_leader=shard.is_leader) for shard in groups.shards)
        for state in ("active", "loading", "standby", "down"):
            yield Sample("rota_coordinator_shards", (state,), states[state])
        yield Sample("rota_coordinator_loads", (), groups.loads_count)
        yield Sample("rota_coordinator_load_seconds", (), groups.loads_total_ms / 1000)

    def _rebalances(self) -> Iterator[Sample]:
        notes = self._site.node.groups.notes
        notes.write()  # what was answered just now is counted (TL16)
        rebalances = notes.rebalances
        for cause, count in list(rebalances.began_count.items()):
            yield Sample("rota_rebalances", (cause,), count)
        for cause, durations in list(rebalances.ended.items()):
            yield Sample("rota_rebalance_duration_seconds", (cause,), durations)

    def _group_states(self) -> Iterator[Sample | None]:
        groups = [(group.group_id, group.summary) for group in self._site.node.groups.machines()]
        yield from self._groups.update(group_id for group_id, summary in groups if summary.member_count)
        counts, members, other = Counter[str](), Counter[str](), 0
        for group_id, summary in groups:
            counts[summary.state] += 1
            members[summary.state] += summary.member_count
            if group_id in self._groups:
                yield Sample("rota_group_members", (group_id,), summary.member_count)
            else:
                other += summary.member_count
            yield None
        if other:
            yield Sample("rota_group_members", (OTHER,), other)
        for state, count in counts.items():
            yield Sample("rota_groups", (state,), count)
            yield Sample("rota_members", (state,), members[state])

    def _group_lags(self) -> Iterator[Sample | None]:
        groups = list(self._site.node.groups.machines())
        yield from self._lags.update((group.group_id, *key) for group in groups for key in list(group.offsets))
        other = 0
        for group in groups:
            for topic, index, records, age_ms in self._lag_of(group):
                if (group.group_id, topic, index) not in self._lags:
                    other += records
                    continue
                labels = group.group_id, topic, str(index)
                yield Sample("rota_group_lag_records", labels, records)
                if age_ms != UNKNOWN:
                    yield Sample("rota_group_lag_seconds", labels, age_ms / 1000)
            yield None
        if other:
            yield Sample("rota_group_lag_records", (OTHER, OTHER, OTHER), other)

    def _findings(self) -> Iterator[Sample | None]:
        active = self._site.node.groups.health.active()
        yield from self._unhealthy.update(active)
        counts = Counter[tuple[str, str, str]]()
        for group_id, found in active.items():
            group = group_id if group_id in self._unhealthy else OTHER
            counts.update((group, finding.code, finding.severity) for finding in found)
            yield None
        for labels, count in counts.items():
            yield Sample("rota_group_findings", labels, count)

    def _lag_of(self, group: Group) -> Iterator[tuple[str, int, int, int]]:
        """Iterate over (topic, partition, records, age in ms): records as of now where this broker has the partition,
        else as the leaders answered; the age as they answered."""
        known = None if self._lag is None else self._lag.cached(group.group_id, LAG_KEPT_MS)
        lags = {} if known is None else {(each.topic, each.partition): each for each in known.partitions}
        for key, committed in list(group.offsets.items()):
            partition, lag = self._site.node.partitions.get(*key), lags.get(key)
            records, age_ms = (UNKNOWN, UNKNOWN) if lag is None else (lag.records, lag.age_ms)
            if partition is not None and partition.offline is None:
                records = max(partition.high_watermark - committed.offset, 0)
            if records != UNKNOWN:
                yield *key, records, age_ms if records or lag is None else 0


def _log(partition: Partition) -> Iterator[Sample]:
    labels = partition.topic, str(partition.index)
    yield Sample("rota_log_size_bytes", labels, partition.log.size_bytes)
    yield Sample("rota_log_start_offset", labels, partition.log.log_start_offset)
    yield Sample("rota_log_end_offset", labels, partition.log.log_end_offset)


def shard_label(state: ShardState, *, is_leader: bool) -> str:
    """Return the state of an offsets partition on this broker, as one word."""
    if state is ShardState.READY:
        return "active"
    if state is ShardState.CATCHING_UP:
        return "loading" if is_leader else "standby"
    return "down"
