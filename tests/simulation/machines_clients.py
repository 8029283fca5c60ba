"""The clients of a simulated cluster: idempotent producers with several batches in flight, members, loners."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.member import VERSIONS, Member, VersionedRequest

from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.protocol.errors import ErrorCode
from rota.protocol.records.fast import Record
from rota.protocol.records.record import write_batch

if TYPE_CHECKING:
    from tests.simulation.machines_world import MachinesWorld

CLIENT: Final = 0  # the place of all clients
IN_FLIGHT_MAX: Final = 3
RETRY_MS: Final = 70.0
REQUEST_MS: Final = 1_300.0
PATIENCE_MS: Final = 5_000.0  # more than a rebalance takes
MOVED: Final = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}


class Batch:
    """A batch that is sent until it is acknowledged."""

    def __init__(self, sequence: int, values: list[bytes], producer_id: int) -> None:
        self.sequence, self.values, self.is_acknowledged, self.is_given_up = sequence, values, False, False
        records = [Record(at, 1, None, value) for at, value in enumerate(values)]
        self.data = write_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


class Producer:
    """Writes 0, 1, 2, … with acks=all, as `NAME.NUMBER`.

    Like real ones it has one batch in flight until the brokers know it, and never goes back to an earlier leader.
    """

    def __init__(self, world: MachinesWorld, name: str, producer_id: int) -> None:
        self.world, self.name, self._producer_id, self._next = world, name, producer_id, 0
        self.in_flight: list[Batch] = []
        self._leader, self._leader_epoch, self._is_known = CLIENT, -1, False
        self.think_ms = world.heap.random.choice((20.0, 120.0, 400.0))

    def act(self) -> None:
        """Send another batch, again and again until the run is over."""
        world, random = self.world, self.world.heap.random
        if world.is_over:
            return
        if len(self.in_flight) < (IN_FLIGHT_MAX if self._is_known else 1):
            count = random.choice((1, 1, 2, 5))
            values = [f"{self.name}.{self._next + at}".encode() for at in range(count)]
            batch = Batch(self._next, values, self._producer_id)
            self._next += count
            self.in_flight.append(batch)
            self._send(batch)
        world.heap.after(random.uniform(0, 2 * self.think_ms), self.act)

    def _send(self, batch: Batch) -> None:
        if batch.is_given_up:
            return
        leader, epoch = self.world.find("t")
        if epoch >= self._leader_epoch or self._leader == CLIENT:
            self._leader, self._leader_epoch = leader, epoch
        received = partial(self._received, batch, batch is self.in_flight[0])
        self.world.request(
            CLIENT, self._leader, lambda life, reply: life.produce(batch.data, reply), received, REQUEST_MS
        )

    def _received(self, batch: Batch, is_first: bool, answer: tuple[ErrorCode, int, int] | None) -> None:
        if answer is not None and answer[0] is ErrorCode.NONE:
            self.world.laws.acked(batch.values, *answer[1:])
            if batch.is_given_up:
                return
            batch.is_acknowledged = self._is_known = True
            while self.in_flight and self.in_flight[0].is_acknowledged:  # a broker remembers five batches
                del self.in_flight[0]
            return
        if answer is not None and answer[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if is_first and "t" in self.world.laws.unclean:
                self._begin_again()
            else:
                assert not is_first, f"PD1: {batch.values} is out of order, and nothing is before it"
        self.world.heap.after(RETRY_MS, lambda: self._send(batch))

    def _begin_again(self) -> None:
        """After an unclean election the leader lacks batches: as a new producer, without those in flight."""
        for batch in self.in_flight:
            batch.is_given_up = True
        self.in_flight.clear()
        self._producer_id, self._next, self._is_known = self._producer_id + 100, 0, False


class GroupClient:
    """A `Member` and its connection: one request after the other to the coordinator."""

    def __init__(self, world: MachinesWorld, member: Member, name: str) -> None:
        self.world, self.member, self.name, self.answers = world, member, name, 0

    def act(self) -> None:
        if self.world.is_settled:
            return
        coordinator, _ = self.world.find(CONSUMER_OFFSETS)
        if self.member.state == "left":
            self.member.state, self.member.member_id = "outside", ""
        request, version = self._next_request()
        self.send_request(coordinator, request, version, partial(self._received, request))

    def _next_request(self) -> VersionedRequest:
        """Once everything has healed a member of a group neither leaves nor commits: it waits for its assignment."""
        if self.world.is_over and self.member.state == "inside":
            request = self.member.heartbeat()
            return request, VERSIONS[request.KEY]
        return self.member.next(self.world.heap.now_ms)

    def send_request(self, coordinator: int, request: Any, version: int, received: Any) -> None:
        self.world.request(
            CLIENT,
            coordinator,
            lambda life, reply: life.serve_group(request, version, self.name, reply),
            received,
            PATIENCE_MS,
        )

    def _received(self, request: Any, answer: Any) -> None:
        self.member.received(request, answer, self.world.heap.now_ms)
        error = None if answer is None else error_of(answer)
        self.answers += answer is not None and error not in MOVED
        pause_ms = RETRY_MS if error is None or error in MOVED else self.world.heap.random.uniform(0, 300)
        self.world.heap.after(pause_ms, self.act)


def error_of(answer: Any) -> int:
    """The error of the answer, or that of its first partition."""
    if hasattr(answer, "error_code"):
        return int(answer.error_code)
    topics = getattr(answer, "topics", ())
    return int(topics[0].partitions[0].error_code) if topics else 0
