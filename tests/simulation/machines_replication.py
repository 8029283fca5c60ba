"""How a simulated broker follows its leaders: the real fetch plan of the leader, the real decisions of the follower."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.machines_loop import Wait

from rota.coordinator.log.contract import AppendRefused, StorageFailed
from rota.coordinator.replica.fetch_plan import FetchPlan, Reader
from rota.coordinator.replica.follower import RetryLater, after_bounds
from rota.coordinator.replica.follower_log import StartedTruncation
from rota.coordinator.replica.leader_epochs import fence_leader
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.state import Role
from rota.coordinator.replication.fetch_responses import Outcome, apply_response, perform_action
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import FetchPartition, PartitionData

if TYPE_CHECKING:
    from tests.simulation.machines_broker import Life

WAIT_MS: Final = 300.0  # replica.fetch.wait.max.ms
TIMEOUT_MS: Final = 900.0
PAUSE_MS: Final = 60.0
DISK_MS: Final = 5.0
FETCH_BYTES: Final = 4_096


class Lookup:
    """The partitions of one broker by topic name."""

    def __init__(self, partitions: dict[str, Partition]) -> None:
        self._partitions = partitions

    def find(self, key: Any) -> Partition | None:
        return self._partitions.get(key[0])

    def missing(self, key: Any) -> ErrorCode:
        return ErrorCode.NONE if key[0] in self._partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Replication:
    """A coroutine for each partition that is followed."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self._is_running = False
        self._following: dict[str, tuple[int, int, object]] = {}  # by topic: leader, epoch, which coroutine
        self._pauses: dict[object, Callable[[], None]] = {}

    def start(self) -> None:
        self._is_running = True
        for name in self.life.partitions:
            self.assign(name)
        self._tick()

    def stop(self) -> None:
        self._is_running = False
        self._following.clear()

    def _tick(self) -> None:
        for partition in self.life.partitions.values():
            partition.tick(self.life.now_ms())
        self.life.tasks.after(self.life.world.LAG_MS / 2, self._tick)

    def assign(self, name: str) -> None:
        """RP1. Follow the present leader of that partition, if there is one elsewhere."""
        partition, state = self.life.partitions[name], self.life.image.states[name]
        if state.leader in (-1, self.life.broker_id) or partition.state.role is not Role.FOLLOWER:
            self._following.pop(name, None)
        elif self._is_running and self._following.get(name, ())[:2] != (state.leader, partition.leader_epoch):
            token = object()
            self._following[name] = state.leader, partition.leader_epoch, token
            self.life.tasks.spawn(self._follow(name, state.leader, partition.leader_epoch, token))

    def forget(self, name: str) -> None:
        self._following.pop(name, None)

    def brokers_changed(self) -> None:
        """A leader may have registered again: connect now."""
        for resume in list(self._pauses.values()):
            resume()

    async def _follow(self, name: str, leader: int, epoch: int, token: object) -> None:
        partition = self.life.partitions[name]
        while self._follows(name, token):
            response = await self._send_request(leader, name, self._position(partition))
            if not self._follows(name, token):
                return
            if response is None:
                self.life.detect(self.life.swim.accuse(leader, self.life.now_ms()))
                await self._pause()
                continue
            truncations: list[StartedTruncation] = []
            outcome = apply_response(partition, response, truncations)
            if outcome is Outcome.BEYOND:
                await self._look_up_bounds(partition, leader, token, truncations)
            for cut in truncations:
                await self._finish(cut)
            if outcome is Outcome.FAILED:
                await self._pause()

    async def _finish(self, cut: StartedTruncation) -> None:
        """What another thread does takes its time: meanwhile the partition may get another leader."""
        for work in (cut.write, cut.read):
            if work is not None:
                work()
            await self.life.tasks.sleep(self.life.heap.random.uniform(0, DISK_MS))
        if (change_files := cut.remove()) is not None:
            change_files()
        cut.finish()
        cut.then()

    def _follows(self, name: str, token: object) -> bool:
        """RF1."""
        following = self._following.get(name)
        return following is not None and following[2] is token

    async def _look_up_bounds(
        self, partition: Partition, leader: int, token: object, truncations: list[StartedTruncation]
    ) -> None:
        bounds = await self.life.world.send_request(
            self.life, leader, lambda of, reply: reply(of.replication.bounds(partition.topic, partition.leader_epoch))
        )
        if bounds is None or not self._follows(partition.topic, token):
            return
        if isinstance(bounds, ErrorCode):
            perform_action(partition, RetryLater(bounds), truncations)
        else:
            log = partition.log
            perform_action(partition, after_bounds(*bounds, log.log_start_offset, log.log_end_offset), truncations)

    def _pause(self) -> Wait:
        def begin(resume: Any) -> None:
            def go_on() -> None:
                if self._pauses.pop(resume, None) is not None:
                    resume(None, None)

            self._pauses[resume] = go_on
            self.life.tasks.after(PAUSE_MS, go_on)

        return Wait(begin)

    def _send_request(self, leader: int, name: str, position: FetchPartition) -> Wait:
        replica, epoch = self.life.broker_id, self.life.image.own_epoch
        return self.life.world.send_request(
            self.life,
            leader,
            lambda of, reply: of.replication.serve(name, position, replica, epoch, reply),
            TIMEOUT_MS,
        )

    def _position(self, partition: Partition) -> FetchPartition:
        log, sends = partition.log, self.life.world.sends_high_watermark
        more = {"high_watermark": partition.state.high_watermark} if sends else {}
        return FetchPartition(
            partition=0,
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=log.log_end_offset,
            last_fetched_epoch=log.latest_epoch,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=FETCH_BYTES,
            **more,
        )

    # ---- the leader

    def serve(
        self, name: str, request: FetchPartition, replica: int, epoch: int, reply: Callable[[PartitionData], None]
    ) -> None:
        """Answer a follower's fetch, now or when there is something to tell."""
        if self.life.image.epochs.get(replica) != epoch or name not in self.life.partitions:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            reply(PartitionData(partition_index=0, error_code=error, high_watermark=-1, records=b""))
            return
        partition = self.life.partitions[name]
        reader = Reader(replica_id=replica, now_ms=self.life.now_ms())
        plan = FetchPlan(Lookup(self.life.partitions), [((name, 0), request)], FETCH_BYTES, reader)  # type: ignore[arg-type]
        result = plan.read(wait=False)
        if result.loads:  # a thread loads them, however long the disk takes
            self.life.disk.loaded += 1
            self.life.tasks.after(self.life.disk.load_ms, lambda: reply(plan.read().responses[0][1]))
        elif result.must_answer or result.size_bytes:
            reply(result.responses[0][1])
        else:
            self._delay(partition, plan, reply)

    def _delay(self, partition: Partition, plan: FetchPlan, reply: Callable[[PartitionData], None]) -> None:
        is_answered = False

        def answer() -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                for watch in watches:
                    partition.unwatch(watch)
                reply(plan.read().responses[0][1])

        def soon() -> None:
            self.life.ticks.append(answer)

        watches = [partition.watch_appends(soon)]
        if self.life.world.sends_high_watermark:
            watches.append(partition.watch(soon))
        self.life.tasks.after(WAIT_MS, answer)

    def bounds(self, name: str, epoch: int) -> tuple[int, int] | ErrorCode:
        try:
            error = fence_leader(self.life.partitions[name], epoch)
            log = self.life.partitions[name].log
        except (AppendRefused, StorageFailed, KeyError):
            return ErrorCode.KAFKA_STORAGE_ERROR
        return (log.log_start_offset, log.log_end_offset) if error is ErrorCode.NONE else error
