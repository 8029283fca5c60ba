"""One broker of a simulated cluster: its disk, which outlives it, and the life of one process.

The machines are the real ones: `Partition` with `ReplicaState` and a log in memory, the coordinator of groups on the
partition of the offsets topic, the failure detector, the controller's decisions. A life does what `broker.py` and
`cluster.py` do around them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.machines_clients import error_of
from tests.simulation.machines_controller import ControllerTask
from tests.simulation.machines_groups import GroupHost
from tests.simulation.machines_image import NOT_REGISTERED, RETRY_MS, BrokerImage
from tests.simulation.machines_loop import Exchange, Tasks
from tests.simulation.machines_replication import Replication
from tests.simulation.machines_store import StoreSession

from rota.coordinator.controller.decisions import hand_over_partition
from rota.coordinator.log.contract import AppendRefused, LogConfig, StorageFailed
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.membership.contract import Alive, Dead, Effects, Send, SwimSettings
from rota.coordinator.membership.swim import Swim
from rota.coordinator.metadata.store import SessionState, StoreError, StoreFailed
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, PartitionState
from rota.coordinator.replica.partition import Partition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_fetch import OffsetFetchRequest

if TYPE_CHECKING:
    from tests.simulation.machines_laws import Laws
    from tests.simulation.machines_world import MachinesWorld

Reply = Callable[[tuple[ErrorCode, int, int]], None]  # to a producer: base offset, leader epoch

DATA: Final = "t"
SWIM: Final = SwimSettings(interval_ms=400, ping_timeout_ms=120, suspicion_timeout_ms=300)
STALL_MS: Final = 400  # how long it may stand still until others may have declared it dead
ACK_TIMEOUT_MS: Final = 1_000
FOUND_MS: Final = 100.0  # until it is noticed that a log has failed
RECOVERED_MS: Final = 400.0


@dataclass
class Disk:
    """The logs of a broker by topic, the checkpoint of their high watermarks, the clock of the machine."""

    logs: dict[str, MemoryLog]
    checkpoint: dict[str, int] = field(default_factory=dict)
    has_possible_data_loss: bool = False
    lies: bool = False  # a flush syncs nothing
    has_lied: bool = False
    skew_ms: int = 0  # of the time of day
    load_ms: float = 0.0  # how long it takes to read what the page cache has lost
    failed: dict[str, int] = field(default_factory=dict)  # logs: how many bytes of what was not synced are left
    loaded: int = 0  # fetches that had to wait for the disk
    recovered: int = 0  # logs that had failed

    def flush(self, name: str) -> None:
        if name in self.failed:
            return
        log = self.logs[name]
        synced = [segment.store.synced_bytes for segment in log._segments]  # type: ignore[attr-defined]
        log.flush()
        if self.lies:
            self.has_lied = True
            for segment, before in zip(log._segments, synced, strict=True):
                segment.store.synced_bytes = before  # type: ignore[attr-defined]

    def recover(self, name: str, laws: Laws) -> None:
        """Open a log that has failed again: of what was not synced some bytes are left."""
        log = self.logs[name]
        flushed = 0 if self.has_lied else log.log_end_offset - log.unflushed_messages
        laws.crash(log, self.failed[name], flushed=flushed)
        self.recovered += 1

    def delete(self, name: str) -> None:
        """What this broker had of a partition of which it is no replica."""
        self.logs[name] = type(self.logs[name])(replace(self.logs[name].config))
        self.checkpoint.pop(name, None)
        self.failed.pop(name, None)

    def end_truncations(self, random: Random) -> None:
        """What a process leaves in the middle of a truncation is truncated when it is opened again, or is not."""
        for log in self.logs.values():
            if log.truncation is None:
                continue
            if log.truncation.is_full or random.random() < 0.5:
                log.finish_truncate()
            else:
                log.cancel_truncate()


class Life:
    """One process, from its start until it is killed or stopped."""

    def __init__(self, world: MachinesWorld, broker_id: int, disk: Disk) -> None:
        self.world, self.heap, self.broker_id, self.disk = world, world.heap, broker_id, disk
        self.tasks, self._touched = Tasks(self.run, self.heap), world.laws.touched
        self.ticks: list[Callable[[], None]] = []  # for the end of this event
        self.frozen_until_ms, self._stood_still_ms = 0.0, 0.0
        self.is_confirmed, self._waiting = True, list[Callable[[], None]]()  # CM2
        self.partitions: dict[str, Partition] = {}
        self.has_joined = False
        self.min_isr = world.min_isr  # as this process knows it
        self.store = StoreSession(world.store, self.run, self._session_changed)
        self.image = BrokerImage(self, world.topics)
        self.controller = ControllerTask(self)
        self.replication = Replication(self)
        self.swim = Swim(broker_id, SWIM, b"of the simulation", Random(self.heap.random.random()))
        self.groups = GroupHost(self)
        self.exchanges: dict[Exchange, None] = {}  # in which somebody waits for an answer

    @property
    def is_dead(self) -> bool:
        return self.tasks.is_stopped

    def now_ms(self) -> int:
        return int(self.heap.now_ms)

    def wall_ms(self) -> int:
        return int(self.heap.now_ms) + 1_700_000_000_000 + self.disk.skew_ms

    # ---- events

    def run(self, call: Callable[[], None]) -> None:
        """An event of this process: now, or when it is not frozen any more; never once it is dead."""
        tasks = self.tasks
        if tasks.is_stopped:
            return
        if tasks.has_stood_still:
            if self.frozen_until_ms > self.heap.now_ms:
                self.heap.after(self.frozen_until_ms - self.heap.now_ms, partial(self.run, call))
                return
            self._notice_standstill()
        call()
        while self.ticks and not tasks.is_stopped:  # the end of this turn of the loop
            ticks, self.ticks = self.ticks, []
            for tick in ticks:
                tick()
        self._touched.append(self)

    def serve(self, serve: Callable[[Life, Callable[[Any], None]], None], reply: Callable[[Any], None]) -> None:
        """A request: CM2, it waits while the registration is not confirmed."""
        if self.tasks.has_stood_still and self.frozen_until_ms <= self.heap.now_ms:
            self._notice_standstill()
        if self.is_confirmed:
            serve(self, reply)
        else:
            self._waiting.append(partial(serve, self, reply))

    def freeze(self, ms: float) -> None:
        """SIGSTOP, for so long."""
        self.frozen_until_ms = self.heap.now_ms + ms
        self._stood_still_ms, self.tasks.has_stood_still = ms, True

    def _notice_standstill(self) -> None:
        self.tasks.has_stood_still = False
        if self._stood_still_ms > STALL_MS and self.is_confirmed:
            self.is_confirmed = False
            self.tasks.spawn(self._confirm())

    async def _confirm(self) -> None:
        async def confirm() -> None:
            if self.image.own_epoch != NOT_REGISTERED and not await self.image.is_registered():
                self.image.fenced()
            await self.image.load()

        await self.retry(confirm)
        self.is_confirmed = True
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    async def retry(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Repeat it until the store does not fail."""
        while True:
            try:
                await work()
            except (StoreFailed, StoreError):
                await self.tasks.sleep(RETRY_MS)
            else:
                return

    # ---- the start and the end

    def start(self) -> None:
        self.run(lambda: self.tasks.spawn(self._start()))

    async def _start(self) -> None:
        await self.retry(self.image.load)
        if self.disk.has_possible_data_loss or self.disk.failed:
            await self.retry(self.image.leave_isrs)
            self.disk.has_possible_data_loss = False
        for name in list(self.disk.failed):
            self.disk.recover(name, self.world.laws)
            del self.disk.failed[name]
        for name, state in self.image.states.items():
            if self.broker_id in state.replicas:
                self._open(name, state)
            else:
                self.disk.delete(name)
        self.partitions[CONSUMER_OFFSETS].on_truncated = self.groups.truncated
        await self.retry(self.image.register)
        self.has_joined = True
        self.replication.start()
        self.registration_changed()
        self.brokers_changed()
        self.controller.start()
        self.controller.wake()

    def _open(self, name: str, state: PartitionState) -> None:
        self.disk.logs[name].config = replace(self.disk.logs[name].config, min_insync_replicas=self.min_isr)
        if self.world.flushes:
            self.disk.flush(name)  # as `log.directory` does when it opens a log
        self.partitions[name] = Partition(
            name,
            self.image.topics[name].topic_id,
            0,
            state.leader_epoch,
            self.disk.logs[name],
            broker_id=self.broker_id,
            high_watermark=self.disk.checkpoint.get(name, 0),
            timers=self.tasks,
            flush_worker=self,
            isr_writer=self,
            lag_ms_max=self.world.LAG_MS,
            placed=self.image.as_it_counts(state),
            now_ms=self.now_ms(),
        )

    async def stop(self) -> None:
        """SIGTERM."""
        self.replication.stop()
        await self.controller.hand_over()
        for name in self.partitions:
            self.disk.flush(name)
        self.checkpoint()
        self.world.end(self)

    # ---- a log that fails, as `replica/partitions` has it

    def fail(self, name: str, kept_bytes: int) -> None:
        """The log cannot be used until it is recovered: of what was not synced so many bytes are left then."""
        self.disk.failed[name] = kept_bytes
        self.partitions[name].fail("the disk is broken")
        self.replication.assign(name)
        self.tasks.spawn(self._recover(name, self.partitions[name]))

    async def _recover(self, name: str, partition: Partition) -> None:
        await self.tasks.sleep(self.heap.random.uniform(0, FOUND_MS))
        await self._leave_isr(name, lost_records=False)
        await self.tasks.sleep(self.heap.random.uniform(0, RECOVERED_MS))
        if self.partitions.get(name) is not partition:
            return
        before = partition.failed_log_end_offset
        self.disk.recover(name, self.world.laws)
        await self._leave_isr(name, lost_records=self.disk.logs[name].log_end_offset < before)
        if self.partitions.get(name) is not partition:
            return
        await self._bump_leader_epoch(name)
        del self.disk.failed[name]
        self.disk.logs[name].config = replace(self.disk.logs[name].config, min_insync_replicas=self.min_isr)
        partition.reopen(self.disk.logs[name], self.image.as_it_counts(self.image.states[name]), self.now_ms())
        self.world.log_line(f"broker {self.broker_id}: the log is recovered, up to {partition.log.log_end_offset}")
        self.replication.assign(name)

    async def _leave_isr(self, name: str, *, lost_records: bool) -> None:
        """R1, ELR2."""

        async def leave() -> None:
            is_left = False
            while not is_left:
                state, live = self.image.states[name], self.image.live()
                after = hand_over_partition(
                    state, live, self.broker_id, self.min_isr, has_failed=True, lost_records=lost_records
                )
                is_left = after is None or await self.image.write(name, after, version=state.version)

        await self.retry(leave)

    async def _bump_leader_epoch(self, name: str) -> None:
        async def bump() -> None:
            state = self.image.states[name]
            if state.leader == self.broker_id:
                after = replace(state, leader_epoch=state.leader_epoch + 1)
                await self.image.write(name, after, version=state.version)

        await self.retry(bump)

    def checkpoint(self) -> None:
        """Write the high watermarks."""
        self.disk.checkpoint = {name: partition.state.high_watermark for name, partition in self.partitions.items()}

    # ---- changes of the image

    def _session_changed(self, state: SessionState) -> None:
        self.image.session_changed(state)
        self.controller.session_changed()

    def state_changed(self, name: str) -> None:
        state = self.image.states[name]
        if self.has_joined and not self.is_dead and name not in self.partitions and self.broker_id in state.replicas:
            self._open(name, state)
        if name in self.partitions and not self.is_dead:
            self.partitions[name].apply(self.image.as_it_counts(state), self.now_ms())
            if self.has_joined:
                self.replication.assign(name)
                self.groups.host()
                self.controller.wake()
        if name in self.partitions and self.broker_id not in state.replicas:
            self.replication.forget(name)
            del self.partitions[name]
            self.disk.delete(name)
        if self.has_joined and name not in self.partitions:
            self.controller.wake()

    def configure(self, min_isr: int) -> None:
        """This process learns of another min.insync.replicas."""
        self.min_isr = min_isr
        for partition in self.partitions.values():
            if partition.offline is None:
                partition.configure(replace(partition.log.config, min_insync_replicas=min_isr))

    def registration_changed(self) -> None:
        """This broker has a new registration, or none."""
        for name, partition in self.partitions.items():
            partition.apply(self.image.as_it_counts(self.image.states[name]), self.now_ms())
            if self.has_joined:
                self.replication.assign(name)
        if self.has_joined:
            self.groups.host()

    def brokers_changed(self) -> None:
        if self.has_joined:
            members = {broker: (epoch, ("127.0.0.1", broker)) for broker, epoch in self.image.epochs.items()}
            self.detect(self.swim.members_changed(members, self.now_ms()))
            self.replication.brokers_changed()
            self.controller.wake()

    # ---- the failure detector

    def detect(self, effects: Effects) -> None:
        """Perform its effects, and call it again at its next deadline."""
        for effect in effects:
            match effect:
                case Send((_, to), datagram):
                    self.world.send_datagram(self.broker_id, to, datagram)
                case Dead(broker, epoch):
                    self.controller.fencing.report_dead(broker, epoch, self.now_ms())
                    self.controller.wake()
                case Alive(broker):
                    self.controller.fencing.report_alive(broker)
        deadline_ms = self.swim.next_deadline_ms
        if deadline_ms is not None:
            self.tasks.at("swim", deadline_ms, lambda: self.detect(self.swim.tick(self.now_ms())))

    def datagram(self, raw: bytes, source: int) -> None:
        if self.has_joined:
            self.detect(self.swim.received(raw, ("127.0.0.1", source), self.now_ms()))

    # ---- what partitions ask for

    def change(self, partition: Partition, isr: frozenset[int], lacking: frozenset[int] = frozenset()) -> None:
        self.image.change_isr(partition, isr, lacking)

    def flush_soon(self, partition: Partition) -> None:
        """A flush takes up to 5 ms."""

        def flush() -> None:
            self.disk.flush(partition.topic)
            partition.flushed()

        self.tasks.at(("flush", partition.topic), self.heap.now_ms + self.heap.random.uniform(0, 5), flush)

    # ---- requests of producers

    def produce(self, batch: bytes, reply: Reply) -> None:
        """acks=all, as `api/produce` does it."""
        partition = self.partitions.get(DATA)
        if partition is None or not partition.is_leader:
            reply((ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1))
        elif not partition.state.has_min_isr:
            reply((ErrorCode.NOT_ENOUGH_REPLICAS, -1, -1))
        else:
            self._append(partition, batch, reply)

    def _append(self, partition: Partition, batch: bytes, reply: Reply) -> None:
        try:
            appended = partition.append(batch, self.wall_ms())
        except AppendRefused as refused:
            reply((refused.code, -1, -1))
        except StorageFailed:
            reply((ErrorCode.KAFKA_STORAGE_ERROR, -1, -1))
        else:
            end, base, epoch = appended.last_offset + 1, appended.base_offset, partition.leader_epoch
            deadline_ms = self.now_ms() + ACK_TIMEOUT_MS
            partition.when_committed(end, deadline_ms, lambda error: reply((error, base, epoch)))

    def serve_group(self, request: Any, version: int, client_id: str, reply: Callable[[Any], None]) -> None:
        """What the coordinator of groups answers; nothing before it listens.

        A coordinator that was replaced, and does not know it because it cannot reach the store, answers an OffsetFetch
        from what it has, as in Kafka (docs/SKIPPED.md): this answer is lost here, and counted.
        """

        def answer(body: Any) -> None:
            state = self.world.state(CONSUMER_OFFSETS)
            elected = state.leader, state.leader_broker_epoch
            if isinstance(request, OffsetFetchRequest) and elected != (self.broker_id, self.image.own_epoch):
                self.world.stale_reads += not error_of(body)
            else:
                reply(body)

        if self.has_joined:
            self.groups.serve(request, version, client_id, answer)


def new_disk(new_log: Callable[..., MemoryLog], *, flushes: bool, min_isr: int) -> Disk:
    """The empty disk of a machine."""
    config = LogConfig(
        min_insync_replicas=min_isr, flush_messages=1 if flushes else None, timestamp_after_max_ms=1 << 60
    )
    return Disk({name: new_log(replace(config)) for name in (DATA, CONSUMER_OFFSETS)})
