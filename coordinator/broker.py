"""One broker: creates the parts and connects them. Only the command line and the test kit import it.

The file is longer than 400 lines because it is the one place that knows all parts.

Laws
    It accepts no connection before its logs are open and its groups are loaded, or are being loaded.
    A graceful stop writes the clean-shutdown marker last, when all else is on the medium.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import structlog

from rota.coordinator.api.node import Node
from rota.coordinator.api.routes import routes
from rota.coordinator.api.throttling import measured
from rota.coordinator.api.write_txn_markers import write_markers
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.topic import usable_topic
from rota.coordinator.group_coordinator import HEALTH_ROUND_MS, MINUTE_MS, GroupCoordinator, group_config
from rota.coordinator.group_environment import environment
from rota.coordinator.hosted_topic import HostedTopic, TopicSettings
from rota.coordinator.log.contract import LogConfig
from rota.coordinator.metadata.changes import Change, TopicDeleted
from rota.coordinator.metadata.dynamic_broker_config import DynamicBrokerConfig
from rota.coordinator.metadata.producer_ids import ProducerIds
from rota.coordinator.metadata.store import Store, StoreFailed
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, TRANSACTION_STATE, Topic
from rota.coordinator.network.connections import Connections
from rota.coordinator.network.listener import Listener
from rota.coordinator.observe.timeline_topic import TimelineTopic
from rota.coordinator.replica.client_throttle import ClientThrottle
from rota.coordinator.replica.cold_reads import load_soon
from rota.coordinator.replica.durability import Durability
from rota.coordinator.replica.fetch_sessions import FetchSessions
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partitions import Partitions
from rota.coordinator.scheduling.clock import Clock
from rota.coordinator.scheduling.tick_queue import TickQueue
from rota.coordinator.scheduling.timers import Timers
from rota.coordinator.standalone import Standalone
from rota.coordinator.storage import Disk, Memory
from rota.coordinator.store_opener import store_opener
from rota.coordinator.transaction_coordinator import TransactionCoordinator
from rota.coordinator.transaction_service.broker_requests import BrokerRequests
from rota.coordinator.transaction_service.marker_sender import TransactionMarkers
from rota.coordinator.transaction_service.verification import Verification
from rota.coordinator.upkeep import Upkeep
from rota.coordinator.web.http import open_http

if TYPE_CHECKING:
    from rota.coordinator.cluster import Cluster
    from rota.coordinator.network.call import Route
    from rota.coordinator.observe.tracing import Tracing
    from rota.coordinator.security.authorizer import Authorizer
    from rota.coordinator.security.sasl.scram import ScramCredential
    from rota.coordinator.security.scram_users import ScramUsers
    from rota.protocol.scram import Mechanism

log = structlog.get_logger("rota.broker")


class Broker:
    """`async with Broker(config, memory=True) as broker: broker.address`. Or start and stop it by hand."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        memory: bool = False,
        clock: Clock | None = None,
        open_store: Callable[[], Awaitable[Store]] | None = None,
    ) -> None:
        """`clock` is that of the operating system by default.

        `open_store` connects to the metadata store of a cluster; by default the one that `zookeeper.connect` names, or
        none: the broker is alone.
        """
        self.config = config = copy(config)  # which changes while the broker runs
        self._open_store = open_store or store_opener(config)
        self.address: tuple[str, int] = ("", 0)
        clock = clock or Clock()
        self.now_ms, self.wall_ms = clock.now_ms, clock.wall_ms
        self.storage: Disk | Memory = (
            Memory() if memory else Disk(Path(config.log_dirs[0]), node_id=config.node_id, wall_ms=self.wall_ms)
        )
        self.timers = Timers(self.now_ms)
        self.hosted_topics: tuple[HostedTopic, ...] = ()
        self.durability = Durability()
        self.tracing: Tracing | None = None
        self._ignored: set[tuple[str, str]] = set()  # configs of topics that were warned of: (topic, why)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> tuple[str, int]:
        """Open the logs, bring the groups back, listen. The address of the first listener, with its real port.

        Raises StorageFailed (the data folder), StoreFailed (its metadata journal), CannotListen (an address),
        ConfigRefused (the TLS or SASL of a listener).
        """
        async with AsyncExitStack() as undo:  # a start that fails lets go of all that it took
            undo.callback(self.storage.undo_open)
            self.storage.open()
            self.metadata = await self._metadata()
            undo.push_async_callback(self.metadata.abandon)
            undo.callback(self.timers.stop)
            dynamic_config = DynamicBrokerConfig(self.config, self.metadata.topics)
            self.authorizer = self._authorizer()
            undo.push_async_callback(self._stop_tracing)
            await self._open()
            dynamic_config.on_change(self._reconfigure)
            connections = self._connections()
            self.metadata.guard(connections)
            self.http = await open_http(self.node, connections, self.metadata.isr_writer)
            undo.push_async_callback(self.http.stop)
            await self._prepare_scram()
            self.listener = Listener(connections, self.timers, self.now_ms, self._find_credential, self.wall_ms)
            bound = await self.listener.start(self.config.listens)
            undo.push_async_callback(self.listener.stop, 0)
            await self.metadata.join(self.config.advertises or bound, self.wall_ms())
            undo.pop_all()
        self.address = (bound[0].host, bound[0].port)
        self.http.site.is_started = True
        self.upkeep.start()
        self._every(self.config.offsets_retention_check_interval_ms, self._expire_offsets)
        self._every(
            self.config.transaction_remove_expired_transaction_cleanup_interval_ms, self._expire_transactional_ids
        )
        self._every(HEALTH_ROUND_MS, self.groups.look_at_health)
        return self.address

    @property
    def console_url(self) -> str:
        """The URL of the console; empty without rota.http.listener."""
        return self.http.url

    async def stop(self) -> None:
        """Stop accepting, finish requests in flight within rota.drain.timeout.ms, flush everything to the medium."""
        self.http.site.is_stopping = True
        await self.metadata.leave()
        cut_off = await self.listener.stop(self.config.rota_drain_timeout_ms)
        if cut_off:
            log.warning("Connections cut off after the drain timeout", connections=cut_off)
        if self.node.denials is not None:
            self.node.denials.flush(self.now_ms())
        await self.http.stop()
        await self._stop_tracing()
        await self.upkeep.stop()
        await self._stop_transactions()
        self.groups.flush()
        self.transactions.flush()
        await self.timeline_topic.stop()
        await self.durability.drained()
        await self.metadata.stop_following()
        self._resign()
        self.durability.close()
        self.timers.stop()
        self.storage.begin_checkpoint()  # notes the high watermarks, which `storage.close` writes
        self.partitions.close()
        try:
            await self.metadata.close()
        except StoreFailed:  # what the medium holds is read again: nothing on it counts as clean
            self.storage.abandon()
            raise
        self.storage.close()

    async def abandon(self) -> None:
        """End as a killed process does: sockets close, nothing more is written, the session with the store stays."""
        self.timers.stop()
        self.listener.abort()
        await self.http.stop()
        await self._stop_transactions()
        await self.metadata.crash()
        await self.upkeep.stop()
        await self.durability.drained()
        self.durability.close()
        self.storage.abandon()

    async def _stop_transactions(self) -> None:
        await self.markers.stop()
        await self.broker_requests.stop()

    # ---- wiring

    async def _metadata(self) -> Standalone | Cluster:
        """The metadata of a broker alone, or of a cluster. Raises StoreFailed."""
        if self._open_store is None:
            return Standalone(self.config, self.storage.store_path, self.storage.cluster_id)
        from rota.coordinator.cluster import Cluster  # a broker alone does not pay for it

        return Cluster(
            self.config,
            await self._open_store(),
            cluster_id=self.storage.cluster_id,
            is_creation_allowed=self.storage.was_alone,
            directory_id=self.storage.directory_id,
            timers=self.timers,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
        )

    async def _open(self) -> None:
        self.topics = self.metadata.topics
        self.topics.ignores_case = self.storage.ignores_case
        await self.metadata.open(
            was_clean=self.storage.was_clean,
            has_possible_data_loss=self.storage.has_possible_data_loss,
            failed_logs=self.storage.failed_logs,
            registered_epoch=self.storage.registered_epoch,
            note_registered=self.storage.note_registered,
        )
        self.storage.identify(self.topics.cluster_id)
        self.tracing = self._open_tracing()
        await self.metadata.import_journal(self.storage.store_path)
        self.partitions = self._partitions()
        self.metadata.host(self.partitions)
        self.storage.high_watermarks = self.partitions.high_watermarks
        self.partitions.open()
        self.upkeep = Upkeep(
            self.partitions,
            self.storage,
            self.durability,
            self.timers,
            self.now_ms,
            self.wall_ms,
            retention_every_ms=self.config.log_retention_check_interval_ms,
        )
        loop = asyncio.get_running_loop()
        self.timers.soon = self.tick_queue = TickQueue(loop.call_soon, loop.call_exception_handler)
        offsets_topic = self._hosted_topic(CONSUMER_OFFSETS, offsets_topic_settings(self.config))
        transaction_topic = self._hosted_topic(TRANSACTION_STATE, transaction_topic_settings(self.config))
        self.groups = self._group_coordinator(offsets_topic)
        self.groups.lag_watch.end = self.partitions.known_end
        self.transactions = self._transaction_coordinator(transaction_topic)
        self.groups.load_soon = self.transactions.load_soon = load_soon
        self.node = self._create_node()
        self.hosted_topics = (offsets_topic, transaction_topic)
        self.topics.on_change(self._changed)
        offsets_topic.host(self.groups)
        transaction_topic.host(self.transactions)

    def _partitions(self) -> Partitions:
        return Partitions(
            self.topics,
            self.storage.open_log,
            self._log_config,
            timers=self.timers,
            flush_worker=self.durability,
            begin_open=self.storage.begin_open,
            remove_log=self.storage.remove_log,
            on_storage=self._storage_changed,
            isr_writer=self.metadata.isr_writer,
            lag_ms_max=self.config.replica_lag_time_max_ms,
            now_ms=self.now_ms,
            on_truncated=self._truncated,
            hand_over=self.metadata.hand_over,
            note_failed=self.storage.note_failed,
            noted_as_failed=self.storage.failed_logs,
            set_strays_aside=self.storage.set_strays_aside if self.metadata.has_strays else None,
        )

    def _group_coordinator(self, offsets_topic: HostedTopic) -> GroupCoordinator:
        self.timeline_topic = TimelineTopic(
            self.topics,
            self.partitions,
            is_enabled=self.config.rota_group_timeline_topic_enable,
            is_cluster=self._open_store is not None,
            timers=self.timers,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
            tick_queue=self.tick_queue,
        )
        return GroupCoordinator(
            shards=offsets_topic.shards,
            config=group_config(self.config),
            partition=offsets_topic.partition,
            timers=self.timers,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
            tick_queue=self.tick_queue,
            ensure_topic=offsets_topic.ensure,
            leader=offsets_topic.leader,
            commit_timeout_ms=self.config.offsets_commit_timeout_ms,
            timelines=self.timeline_topic.timelines
            if self.tracing is None
            else self.tracing.timelines(self.timeline_topic.timelines),
            broker=self.config.node_id,
            environment=environment(self.topics, self.config),
        )

    def _transaction_coordinator(self, transaction_topic: HostedTopic) -> TransactionCoordinator:
        self.producer_ids = ProducerIds(self.topics.store, broker_id=self.config.node_id)
        self.broker_requests = BrokerRequests(self.topics, self.config)
        self.markers = TransactionMarkers(
            self.topics,
            broker_id=self.config.node_id,
            write=lambda request: write_markers(self.node, request),
            send_request=self.broker_requests.send_request,
            timers=self.timers,
            now_ms=self.now_ms,
            tick_queue=self.tick_queue,
        )
        return TransactionCoordinator(
            shards=transaction_topic.shards,
            partition=transaction_topic.partition,
            timers=self.timers,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
            tick_queue=self.tick_queue,
            ensure_topic=transaction_topic.ensure,
            leader=transaction_topic.leader,
            take_producer_id=self.producer_ids.take,
            sender=self.markers,
            commit_timeout_ms=self.config.offsets_commit_timeout_ms,
        )

    def _create_node(self) -> Node:
        verification = Verification(
            self.transactions,
            broker_id=self.config.node_id,
            send_request=self.broker_requests.send_request,
            timers=self.timers,
            now_ms=self.now_ms,
        )
        return Node(
            config=self.config,
            topics=self.topics,
            partitions=self.partitions,
            groups=self.groups,
            transactions=self.transactions,
            verify_transaction=verification.verify,
            producer_ids=self.producer_ids,
            fetch_sessions=FetchSessions(self.config.max_incremental_fetch_session_cache_slots),
            timers=self.timers,
            lost_brokers=self.metadata.lost_brokers,
            leader_throttle=self.metadata.leader_throttle,
            durability=self.durability,
            authorizer=self.authorizer,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
        )

    def _connections(self) -> Connections:
        apis: Mapping[int, Route] = routes(checks_access=self.authorizer is not None)
        traced = apis if self.tracing is None else self.tracing.routes(apis)
        connections = Connections(self.node, traced, self.tick_queue, self.metadata.reachable)
        connections.log_files = lambda: self.partitions.count * self.storage.files_per_log
        ClientThrottle(
            self.topics,
            partial(_install_throttle, self.node, connections),
            self.now_ms,
            windows=self.config.quota_window_num,
            window_ms=1_000 * self.config.quota_window_size_seconds,
            mutation_burst_ms=1_000
            * self.config.controller_quota_window_num
            * self.config.controller_quota_window_size_seconds,
        )
        return connections

    def _open_tracing(self) -> Tracing | None:
        """Raises ConfigRefused."""
        if not self.config.rota_tracing_otlp_endpoint:
            return None
        try:
            from rota.coordinator.observe.tracing import open_tracing
        except ImportError as missing:
            reason = f"rota.tracing.otlp.endpoint needs a package that is not installed: {missing.name}"
            raise ConfigRefused("rota.tracing.otlp.endpoint", f"{reason}; pip install 'rota[tracing]'") from missing
        return open_tracing(self.config, self.topics.cluster_id)

    async def _stop_tracing(self) -> None:
        if self.tracing is not None:
            await self.tracing.stop()

    # ---- security: a broker without it does not pay for the import

    def _authorizer(self) -> Authorizer | None:
        if not self.config.authorizer_class_name:
            return None
        from rota.coordinator.security.acl_nodes import open_authorizer

        return open_authorizer(self.config, self.metadata.topics)

    async def _prepare_scram(self) -> None:
        """Create the bootstrap users and the secret that credentials of unknown users are derived from."""
        if self.config.rota_scram_bootstrap_users:
            from rota.coordinator.security.scram_credentials import create_bootstrap_users

            await create_bootstrap_users(self.topics, self.config.rota_scram_bootstrap_users)
        if self.config.rota_http_login or any(each.has_scram for each in self.config.security.values()):
            from rota.coordinator.security.scram_users import create_secret

            await create_secret(self.topics)

    def _find_credential(self, user: str, mechanism: Mechanism) -> ScramCredential:
        return self.scram_users.find(user, mechanism)

    @cached_property
    def scram_users(self) -> ScramUsers:
        """The SCRAM users, for listeners with SASL."""
        from rota.coordinator.security.scram_users import ScramUsers

        return ScramUsers(self.topics)

    def _reconfigure(self) -> None:
        """Pass the changed configuration on to the parts that do not read it at each use."""
        self.partitions.reconfigure()
        self.groups.reconfigure(group_config(self.config))
        self.metadata.reconfigure()

    def _log_config(self, topic: Topic) -> LogConfig:
        config, ignored = usable_topic(topic.configs, self.config)
        for reason in ignored:
            if (topic.name, reason) not in self._ignored:
                self._ignored.add((topic.name, reason))
                log.warning("A topic config is ignored", topic=topic.name, reason=reason)
        return config.log_config()

    # ---- the internal topics

    def _hosted_topic(self, name: str, settings: TopicSettings) -> HostedTopic:
        return HostedTopic(
            name,
            settings,
            self.topics,
            self.partitions,
            node_id=self.config.node_id,
            replicas_for=self.metadata.replicas_for,
            now_ms=self.now_ms,
        )

    def _storage_changed(self, partition: Partition) -> None:
        """A1. A log failed, or was recovered and may have lost its tail."""
        self.metadata.storage_changed(partition)
        self.timeline_topic.storage_changed(partition)
        for hosted_topic in self.hosted_topics:
            hosted_topic.storage_changed(partition)

    def _truncated(self, partition: Partition) -> None:
        for hosted_topic in self.hosted_topics:
            hosted_topic.truncated(partition)

    def _resign(self) -> None:
        """Lead and follow no shard any more: their logs are being closed."""
        self.groups.notes.write()  # while the timelines' partitions are led here (TL16)
        self.timeline_topic.close()
        for hosted_topic in self.hosted_topics:
            hosted_topic.resign()

    def _changed(self, change: Change) -> None:
        self.groups.notes.write()  # while the timelines' partitions are led here (TL16)
        self.timeline_topic.changed(change)
        for hosted_topic in self.hosted_topics:
            hosted_topic.changed(change)
        if isinstance(change, TopicDeleted):
            self.groups.topics_deleted([(change.topic.name, change.topic.topic_id)])

    # ---- periodic work

    def _every(self, period_ms: int, call: Callable[[], Any]) -> None:
        def fire() -> None:
            self.timers.at(("broker", call.__name__), self.now_ms() + period_ms, fire)
            call()

        self.timers.at(("broker", call.__name__), self.now_ms() + period_ms, fire)

    def _expire_offsets(self) -> None:
        self.groups.expire_offsets(self.config.offsets_retention_minutes * MINUTE_MS)

    def _expire_transactional_ids(self) -> None:
        self.transactions.expire_ids(self.config.transactional_id_expiration_ms)


def offsets_topic_settings(config: BrokerConfig) -> TopicSettings:
    """Return what `__consumer_offsets` is created with."""
    return TopicSettings(
        partitions=config.offsets_topic_num_partitions,
        replication_factor=config.offsets_topic_replication_factor,
        segment_bytes=config.offsets_topic_segment_bytes,
        configs=(("compression.type", "producer"),),
    )


def transaction_topic_settings(config: BrokerConfig) -> TopicSettings:
    """Return what `__transaction_state` is created with."""
    return TopicSettings(
        partitions=config.transaction_state_log_num_partitions,
        replication_factor=config.transaction_state_log_replication_factor,
        segment_bytes=config.transaction_state_log_segment_bytes,
        min_isr=config.transaction_state_log_min_isr,
        configs=(("compression.type", "uncompressed"), ("unclean.leader.election.enable", "false")),
    )


def _install_throttle(node: Node, connections: Connections, throttle: ClientThrottle | None) -> None:
    """Apply quotas from the next request on; None: there are none."""
    node.client_throttle = throttle
    connections.measure(measured if throttle is not None and throttle.requests.limits else None)
    connections.delay_ms = None if throttle is None or not throttle.connections.limits else throttle.delay_ms
