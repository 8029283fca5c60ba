"""A broker's membership of a cluster: the shared metadata store, the image of it, and this broker's registration.

Laws
    CM1 A broker leads nothing while it is not registered: before it joins, after its session has expired, and after the
        controller has deleted its registration. It then reads the whole image and registers again.
    CM5 A broker whose machine has lost its power, or whose folder is new or in memory, is in no ISR or ELR when it
        registers, unless it is alone in them: it is not elected with what it has lost (KIP-966's unclean restart).
        The same for one whose folder is older than its last registration, as from a backup, and for the partitions
        whose logs had failed when its process ended (ELR2).
        It takes nothing from a live broker of the same id: that one keeps its ISRs, and this one does not start.

The file is longer than 400 lines because one class owns the order of joining, losing a session and leaving.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.config.swim_secret import swim_secret
from rota.coordinator.config.topic import usable_topic
from rota.coordinator.controller_service.requests import ClusterRequests, live_brokers
from rota.coordinator.controller_service.service import ControllerConfig, ControllerService
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.directory import NEVER_REGISTERED
from rota.coordinator.membership.contract import Alive, Dead, Suspected, SwimSettings
from rota.coordinator.membership.contract import Change as LivenessChange
from rota.coordinator.membership.service import SwimService
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.brokers import swim_addresses
from rota.coordinator.metadata.changes import BrokersChanged, Change, PartitionsChanged
from rota.coordinator.metadata.image import NOT_REGISTERED
from rota.coordinator.metadata.image_updater import ImageUpdater
from rota.coordinator.metadata.lost_brokers import LostBrokers
from rota.coordinator.metadata.migration import migrate
from rota.coordinator.metadata.registration import Registration, end_earlier, last_epoch, register, remember
from rota.coordinator.metadata.repeated_warning import RepeatedWarning
from rota.coordinator.metadata.store import Check, NodeExists, NoNode, SessionState, Store, StoreError, StoreFailed
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.network.connections import Connections
from rota.coordinator.replica.isr_changes import IsrChanges
from rota.coordinator.replica.partitions import Partition, Partitions
from rota.coordinator.replication.replication import Replication
from rota.coordinator.replication.throttles import leader_throttle
from rota.coordinator.scheduling.timers import Timers
from rota.coordinator.stall_guard import StallGuard

log = structlog.get_logger("rota.cluster")

ID_BYTES: Final = 16
SECRET_BYTES: Final = 32
REGISTER_AGAIN_SECONDS: Final = 0.2  # after a registration that failed


class Cluster:
    """`open` reads the image, `join` registers; `leave` and `close` end the membership."""

    _noted_epoch = NEVER_REGISTERED  # of the last registration that the log folder knows
    has_strays = True  # topics change while this broker is down, and `open` raises unless it has read all of them

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        *,
        cluster_id: str | None,
        is_creation_allowed: bool = True,
        directory_id: str = "",
        timers: Timers,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
    ) -> None:
        """`cluster_id` is that of the log folder; None or "" for a new one. `is_creation_allowed`: see `open_cluster`.

        `directory_id` is that of the log folder, which is locked: an earlier registration that names it is replaced.
        """
        self._config, self._store, self._directory_id = config, store, directory_id
        self._updater = ImageUpdater()
        self.topics = Topics(
            store,
            broker_id=config.node_id,
            fresh_uuid=lambda: os.urandom(ID_BYTES),
            cluster_id=cluster_id,
            is_creation_allowed=is_creation_allowed,
            watch=self._updater.changed,
        )
        self.topics.broker_epoch = NOT_REGISTERED
        self.topics.min_insync_replicas = lambda topic: usable_topic(topic.configs, config)[0].min_insync_replicas
        self._timers, self._now_ms, self._wall_ms = timers, now_ms, wall_ms
        self._controller = self._controller_service()
        self._swim: SwimService | None = None
        self._replication: Replication | None = None
        self._guard: StallGuard | None = None
        self.lost_brokers = LostBrokers(timers, now_ms)
        self.isr_writer = IsrChanges(self.topics.change_isr, now_ms, lambda: live_brokers(self.topics).epochs)
        self.leader_throttle = leader_throttle(self.topics, config, now_ms)
        self._registration: Registration | None = None
        self._joining: asyncio.Task[None] | None = None
        self._remembering = asyncio.Lock()
        self._leaving = False

    async def open(
        self,
        *,
        was_clean: bool,
        has_possible_data_loss: bool = False,
        failed_logs: Collection[tuple[str, int]] = (),
        registered_epoch: int = NEVER_REGISTERED,
        note_registered: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Read the image and keep it up to date from now on. Raises StoreFailed.

        CM5. With `has_possible_data_loss` the broker leaves each ISR and ELR, else those of `failed_logs`, whose end
        before is not known any more. `registered_epoch` is that of the last registration that the log folder knows;
        `note_registered` writes a later one down, in any thread. Raises AlreadyRegistered.
        """
        self._noted_epoch, self._note_registered = registered_epoch, note_registered
        await self._updater.follow(self.topics)
        has_possible_data_loss = has_possible_data_loss or await self._is_folder_outdated()
        if has_possible_data_loss or failed_logs:
            await self._leave_isrs(None if has_possible_data_loss else failed_logs)
        self._store.on_session(self._session_changed)
        self.topics.on_change(self._changed)

    async def import_journal(self, journal: Path | None) -> None:
        """Bring the topics of a folder on which this broker was alone into the cluster. Raises StoreFailed."""
        if journal is not None:
            await migrate(journal, self.topics)

    def host(self, partitions: Partitions) -> None:
        """Replicate these partitions from their leaders, once this broker has joined."""
        self._replication = Replication(
            self.topics,
            partitions,
            self._config,
            timers=self._timers,
            now_ms=self._now_ms,
            on_unreachable=self.unreachable,
        )

    def storage_changed(self, partition: Partition) -> None:
        """The log of that partition has failed, or is used again."""
        if self._replication is not None:
            self._replication.storage_changed(partition)

    def reconfigure(self) -> None:
        """The broker's configuration has changed."""
        if self._replication is not None:
            self._replication.reconfigure()

    async def hand_over(
        self, name: str, index: int, *, lost_records: bool = False, cannot_recover: bool = False
    ) -> None:
        """Move the leadership of the partition to another member of its ISR, and leave the ISR. Raises StoreFailed.

        UE1. With `cannot_recover` to any other replica, where the topic allows it.
        """
        topic = self.topics.get(name)
        unclean = cannot_recover and topic is not None and allows_unclean(topic, self._config)
        await ClusterRequests(self.topics).hand_over_partition(name, index, lost_records=lost_records, unclean=unclean)

    def guard(self, connections: Connections) -> None:
        """Suspend these connections when this process has stood still, until its registration is confirmed."""
        config = self._config
        found_dead_ms = 2 * config.rota_swim_ping_timeout_ms + config.rota_swim_suspicion_timeout_ms
        self._guard = StallGuard(
            connections,
            self._confirm_registration,
            timers=self._timers,
            now_ms=self._now_ms,
            stall_ms_max=max(found_dead_ms * 3 // 4, 1),
        )

    async def join(self, endpoints: Sequence[Endpoint], wall_ms: int) -> None:
        """Register this broker with the addresses for clients. Raises AlreadyRegistered, StoreFailed."""
        reachable = [self.reachable(endpoint) for endpoint in endpoints]
        between = self._config.inter_broker_listener
        self._swim = await self._start_swim(_of_listener(self._config.listens, between).host)
        self._registration = Registration(
            reachable,
            rack=self._config.broker_rack,
            directory_id=self._directory_id,
            swim=f"{_of_listener(reachable, between).host}:{self._swim.address[1]}",
        )
        epoch = await self._register()
        if self._replication is not None:
            self._replication.start()
        await self._controller.start()
        if self._guard is not None:
            self._guard.start()
        await self._remember(epoch)

    @staticmethod
    def reachable(endpoint: Endpoint) -> Endpoint:
        """EP1. Return the address of a listener for others: one on every interface is reached by the host's name."""
        return replace(endpoint, host=socket.gethostname()) if endpoint.is_every_interface else endpoint

    @property
    def has_received_from_all(self) -> bool:
        """Whether the failure detector has received from every other registered broker."""
        if self._swim is None:
            return False
        responding = [member for member in self._swim.swim.members.values() if member.last_received_ms is not None]
        return len(responding) == len(self.topics.brokers) - 1

    def unreachable(self, broker_id: int) -> None:
        """A connection to this broker broke or was refused: the failure detector looks at it at once."""
        if (registered := self.topics.brokers.get(broker_id)) is not None:
            self.lost_brokers.suspect(broker_id, registered.epoch)
        if self._swim is not None:
            self._swim.accuse(broker_id)

    async def leave(self) -> None:
        """Give leaderships away (controlled.shutdown.enable), then end the registration."""
        self._leaving = True
        if self._joining is not None:
            self._joining.cancel()
        self._controller.begin_shutdown()
        if self._replication is not None:
            await self._replication.stop()  # else a leader puts this broker back into the ISR that it has just left
        if self._config.controlled_shutdown_enable and self.topics.broker_epoch != NOT_REGISTERED:
            try:
                moved = await ClusterRequests(self.topics).hand_over()
                log.info("Controlled shutdown: leaderships moved", partitions=moved)
            except (StoreError, StoreFailed) as error:
                log.warning("Controlled shutdown failed", reason=str(error))
        await self._stop_work()
        if self.topics.broker_epoch != NOT_REGISTERED:
            self.topics.apply_registration(NOT_REGISTERED)
            try:
                await self._store.delete(znodes.broker_path(self._config.node_id))
            except (StoreError, StoreFailed) as error:
                log.warning("Registration could not be deleted; it ends with the session", reason=str(error))

    async def stop_following(self) -> None:
        """Read no more changes of the store: the image stays as it is from now on."""
        await self._updater.close()

    async def crash(self) -> None:
        """Stop all work without a word to the store and to other brokers; the session ends by its timeout."""
        self._leaving = True
        if self._joining is not None:
            self._joining.cancel()
        await self._stop_work(resign=False)
        await self._updater.close()

    async def close(self) -> None:
        """Stop following the store and end its session."""
        self._leaving = True
        await self._stop_work()
        await self._updater.close()
        await self._store.close()

    abandon = close

    def replicas_for(self, configured: int) -> int:
        """The replicas of an internal topic: those configured; its creation fails while there are fewer brokers."""
        return configured

    # ---- inside

    async def _is_folder_outdated(self) -> bool:
        """Return whether a broker of this id was registered since the folder was last in use."""
        last = await last_epoch(self._store, self._config.node_id)
        if self._noted_epoch < last:
            log.warning("The log folder is an older one", knows=self._noted_epoch, registered=last)
        return self._noted_epoch < last

    async def _leave_isrs(self, logs: Collection[tuple[str, int]] | None) -> None:
        wait_seconds = self._config.zookeeper_session_timeout_ms / 1000
        await end_earlier(self._store, self._config.node_id, self._directory_id, wait_seconds=wait_seconds)
        left = await ClusterRequests(self.topics).leave_isrs(logs)
        if left:
            log.warning("Logs may lack records: this broker has left its ISRs", partitions=left)

    async def _start_swim(self, host: str) -> SwimService:
        config = self._config
        settings = SwimSettings(
            interval_ms=config.rota_swim_interval_ms,
            ping_timeout_ms=config.rota_swim_ping_timeout_ms,
            suspicion_timeout_ms=config.rota_swim_suspicion_timeout_ms,
            indirect_pings=config.rota_swim_indirect_pings,
        )
        swim = SwimService(
            config.node_id,
            settings,
            swim_secret(config) or await self._shared_secret(),
            self._liveness_changed,
            self._now_ms,
            host=host,
            port=config.rota_swim_port,
        )
        await swim.start()
        return swim

    async def _shared_secret(self) -> bytes:
        """The secret in the store, which the first broker draws. Raises StoreFailed."""
        with suppress(NodeExists):
            await self._store.create(znodes.SWIM_SECRET, os.urandom(SECRET_BYTES).hex().encode())
        secret, _ = await self._store.get(znodes.SWIM_SECRET)
        return secret

    def _controller_service(self) -> ControllerService:
        return ControllerService(
            self.topics,
            controller_config(self._config),
            timers=self._timers,
            now_ms=self._now_ms,
            wall_ms=self._wall_ms,
            ping_dead=self._ping_dead,
        )

    def _ping_dead(self) -> None:
        if self._swim is not None:
            self._swim.ping_dead()

    def _liveness_changed(self, change: LivenessChange) -> None:
        match change:
            case Suspected(broker_id, epoch):
                self.lost_brokers.suspect(broker_id, epoch)
            case Dead(broker_id, epoch):
                self.lost_brokers.suspect(broker_id, epoch)
                self._controller.broker_died(broker_id, epoch)
            case Alive(broker_id):
                self.lost_brokers.trust(broker_id)
                self._controller.broker_alive(broker_id)

    async def _confirm_registration(self) -> None:
        """CM2. Return when the image shows whether this broker is still registered, and its leaderships.

        The check is a change of the store, which no server answers from an old state. The watches that were fired
        before it have been delivered when it is answered.
        """
        failures = RepeatedWarning(log, "Registration cannot be confirmed; trying again")
        while not await self._is_registered(failures):
            await asyncio.sleep(REGISTER_AGAIN_SECONDS)
        await self._updater.wait_until_applied()

    async def _is_registered(self, failures: RepeatedWarning) -> bool:
        """Return whether that is known now: it is fenced if the registration is deleted."""
        path, epoch = znodes.broker_path(self._config.node_id), self.topics.broker_epoch
        try:
            stat = await self._store.exists(path)
            if stat is None or stat.created != epoch:
                raise NoNode(path)
            await self._store.commit([Check(path, stat.version)])
        except StoreError:
            if self.topics.broker_epoch == epoch != NOT_REGISTERED:
                self._fenced("its registration was deleted while it stood still")
        except StoreFailed as failure:
            failures.failed(str(failure))
            return False
        failures.succeeded()
        return True

    async def _stop_work(self, *, resign: bool = True) -> None:
        if self._guard is not None:
            await self._guard.stop()
        await self._controller.stop(resign=resign)
        if self._replication is not None:
            await self._replication.stop()
        await self.isr_writer.stop()
        if self._swim is not None:
            await self._swim.stop()

    async def _register(self) -> int:
        assert self._registration is not None, "join comes first"
        wait_seconds = self._config.zookeeper_session_timeout_ms / 1000
        broker_id, epoch = self._config.node_id, NOT_REGISTERED
        while broker_id not in self.topics.brokers or self.topics.brokers[broker_id].epoch != epoch:
            epoch = await register(
                self._store, broker_id, self._registration, wall_ms=self._wall_ms(), wait_seconds=wait_seconds
            )
            await self._updater.refresh_brokers()  # who is missing in the image afterwards has been fenced already
        log.info("Registered", broker=broker_id, epoch=epoch)
        self.topics.apply_registration(epoch)
        self._controller.registered()
        return epoch

    async def _remember(self, epoch: int) -> None:
        """CM5, RG2. After its work has begun, which does not wait for a disk that hangs. Raises StoreFailed."""
        async with self._remembering:
            if self._registration is None or self.topics.broker_epoch != epoch:
                return  # it was fenced meanwhile
            await self._note_epoch(epoch)
            wall_ms, noted = self._wall_ms(), self._noted_epoch
            await remember(self._store, self._config.node_id, self._registration, wall_ms=wall_ms, noted_epoch=noted)

    async def _note_epoch(self, epoch: int) -> None:
        try:
            await asyncio.to_thread(self._note_registered, epoch)
            self._noted_epoch = epoch
        except StorageFailed as failure:
            log.warning("Registration cannot be written down", reason=str(failure))

    def _changed(self, change: Change) -> None:
        """Follow the registrations of all brokers; without its own this broker leads nothing: it was taken for dead."""
        if isinstance(change, PartitionsChanged):
            self.lost_brokers.recheck_soon()
        if not isinstance(change, BrokersChanged):
            return
        self.lost_brokers.brokers_changed(change.brokers)
        if self._swim is not None:
            self._swim.members_changed(dict(swim_addresses(change.brokers)))
        if self.topics.broker_epoch == NOT_REGISTERED:
            return
        own = change.brokers.get(self._config.node_id)
        if own is None or own.epoch != self.topics.broker_epoch:
            self._fenced("its registration was deleted")

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._fenced("its session has expired")
        elif state is SessionState.CONNECTED:
            self._updater.session_began()

    def _fenced(self, reason: str) -> None:
        """CM1. Lead nothing, then join again."""
        log.warning("Fenced: this broker leads nothing until it is registered again", reason=reason)
        self.topics.apply_registration(NOT_REGISTERED)
        if self._registration is not None and not self._leaving and self._joining is None:
            self._joining = asyncio.get_running_loop().create_task(self._join_again())

    async def _join_again(self) -> None:
        failure = RepeatedWarning(log, "Registration failed; trying again")
        try:
            while True:
                try:
                    await self.topics.refresh_all(keeps_unreadable=True)
                    await self._remember(await self._register())
                    failure.succeeded()
                    if self.topics.broker_epoch != NOT_REGISTERED:  # else it was fenced again meanwhile
                        return
                except (StoreError, StoreFailed) as error:
                    failure.failed(str(error))
                    await asyncio.sleep(REGISTER_AGAIN_SECONDS)
        finally:
            self._joining = None


def controller_config(config: BrokerConfig) -> ControllerConfig:
    """The settings of the controller."""
    return ControllerConfig(
        allows_unclean=lambda topic: allows_unclean(topic, config),
        auto_rebalance=config.auto_leader_rebalance_enable,
        rebalance_interval_ms=config.leader_imbalance_check_interval_seconds * 1000,
    )


def allows_unclean(topic: Topic, config: BrokerConfig) -> bool:
    """Return unclean.leader.election.enable of the topic."""
    return usable_topic(topic.configs, config)[0].unclean_leader_election_enable


def _of_listener(endpoints: Sequence[Endpoint], name: str | None) -> Endpoint:
    """The endpoint of that listener; the first one when there is none of that name."""
    return next((endpoint for endpoint in endpoints if endpoint.listener == name), endpoints[0])
