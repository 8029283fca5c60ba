"""`rota bench`: a bounded load of produce, consume and heartbeats against any broker, with its latencies.

Laws
    Each phase ends after --records (or --heartbeats), and after --seconds at the latest.
    The topic and the group that it makes are deleted in the end, also after a failure and Ctrl-C.
"""

from __future__ import annotations

import asyncio
import secrets
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rota.cli.arguments import add_client_options, positive_float, whole
from rota.cli.progress import Progress
from rota.cli.session import Session, client_command
from rota.cli.settings import config_of
from rota.cli.text import Table
from rota.client.errors import BrokerError, DeliveryFailed
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.client import Admin, Delivery
    from rota.client.network.cluster import Cluster

PHASES: Final = ("produce", "consume", "heartbeat")
RECORDS_MAX: Final = 100_000_000
RECORD_BYTES_MAX: Final = 1_000_000
UNACKNOWLEDGED_MAX: Final = 5_000
SAMPLES_MAX: Final = 100_000  # latencies that are kept; beyond it every n-th
SESSION_MS: Final = 30_000
POLL_MS: Final = 200
PROTOCOL_TYPE, PROTOCOL = "rota-bench", "none"  # of the group: not a consumer group
COLUMNS: Final = ("PHASE", "COUNT", "SECONDS", "PER SECOND", "MB/S", "P50 MS", "P99 MS", "MAX MS")


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Measure produce, consume and heartbeats of a cluster: a topic is created, filled, read and deleted. It is a "
        "load: do not run it on a cluster that others need."
    )
    add = parser.add_argument
    add("--phase", choices=PHASES, action="append", help="as often as needed; unset: all")
    add("--records", type=whole(1, RECORDS_MAX), default=50_000, metavar="N", help="default %(default)s")
    add("--size", type=whole(1, RECORD_BYTES_MAX), default=100, metavar="BYTES", help="of a value; default %(default)s")
    add("--heartbeats", type=whole(1, RECORDS_MAX), default=2_000, metavar="N", help="default %(default)s")
    add("--partitions", type=whole(1, 10_000), default=1, metavar="N", help="of the topic; default %(default)s")
    add("--seconds", type=positive_float, default=30.0, help="of each phase at most; default %(default)s")
    add("--acks", choices=("0", "1", "all"), default="all", help="default %(default)s")
    add("--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none", help="default %(default)s")
    add_client_options(parser)
    parser.set_defaults(run=client_command(bench))


async def bench(session: Session) -> None:
    options = session.options
    phases = [phase for phase in PHASES if not options.phase or phase in options.phase]
    name = f"rota-bench-{secrets.token_hex(4)}"
    results = []
    async with session.admin() as admin, _topic(admin, name, options.partitions):
        if "produce" in phases or "consume" in phases:
            results.append(await _produce(session, name))
        if "consume" in phases:
            results.append(await _consume(session, name, results[0]["count"]))
        if "heartbeat" in phases:
            results.append(await _heartbeat(session, admin, name))
    rows = [tuple(result.values()) for result in results]
    session.out.show(
        {"topic": name, "record_bytes": options.size, "acks": options.acks, "phases": results}, Table(COLUMNS, rows)
    )


@asynccontextmanager
async def _topic(admin: Admin, name: str, partitions: int) -> AsyncIterator[None]:
    from rota.client import NewTopic

    await admin.create_topics([NewTopic(name, partitions)])
    try:
        yield
    finally:
        await admin.delete_topics([name])


class Measured:
    """Counts and latencies of one phase, which begins when this is made."""

    def __init__(self, phase: str, seconds_max: float, record_bytes: int = 0) -> None:
        self._phase, self._bytes = phase, record_bytes
        self._now: Callable[[], float] = asyncio.get_running_loop().time
        self._began = self._now()
        self._ends = self._began + seconds_max
        self._latencies: list[float] = []
        self.count = 0

    @property
    def is_over(self) -> bool:
        """Whether the time of the phase is over."""
        return self._now() >= self._ends

    def add(self, began: float | None = None) -> None:
        """Count one; with the time at which it began, also its latency."""
        self.count += 1
        if began is not None and (len(self._latencies) < SAMPLES_MAX or self.count % 10 == 0):
            self._latencies.append((self._now() - began) * 1000)

    def document(self) -> dict[str, Any]:
        """Return the result as JSON."""
        seconds = max(self._now() - self._began, 1e-6)
        ordered = sorted(self._latencies)
        return {
            "phase": self._phase,
            "count": self.count,
            "seconds": round(seconds, 3),
            "per_second": round(self.count / seconds),
            "megabytes_per_second": round(self.count * self._bytes / seconds / 1e6, 3) if self._bytes else None,
            "p50_ms": percentile(ordered, 0.5),
            "p99_ms": percentile(ordered, 0.99),
            "max_ms": percentile(ordered, 1.0),
        }


def percentile(ordered: list[float], share: float) -> float | None:
    """Return the value below which that share of the ascending values lies; None of no values."""
    return round(ordered[min(int(len(ordered) * share), len(ordered) - 1)], 3) if ordered else None


async def _produce(session: Session, topic: str) -> dict[str, Any]:
    from rota.client import Producer, ProducerConfig

    options = session.options
    settings = session.settings() | {"acks": options.acks, "compression.type": options.compression}
    value = secrets.token_bytes(options.size)
    now = asyncio.get_running_loop().time
    free = asyncio.Semaphore(UNACKNOWLEDGED_MAX)
    failures: list[DeliveryFailed] = []
    async with Producer(config_of(ProducerConfig, settings)) as producer:
        measured = Measured("produce", options.seconds, options.size)
        with Progress("produce", "records", options.records) as progress:

            def acknowledged(began: float, delivery: Delivery) -> None:
                free.release()
                try:
                    delivery.result()
                except DeliveryFailed as failure:
                    failures.append(failure)
                    return
                measured.add(began)
                progress.advance(1)

            sent = 0
            while sent < options.records and not measured.is_over:
                await free.acquire()
                delivery = await producer.send(topic, value)
                delivery.add_done_callback(partial(acknowledged, now()))
                sent += 1
                if failures:
                    raise failures[0]
            await producer.flush()
            for _ in range(UNACKNOWLEDGED_MAX):  # each callback runs in the loop, after its delivery is done
                await free.acquire()
    if failures:
        raise failures[0]
    return measured.document()


async def _consume(session: Session, topic: str, records: int) -> dict[str, Any]:
    from rota.client import Consumer, ConsumerConfig

    options = session.options
    settings = session.settings() | {"enable.auto.commit": "false"}
    settings.pop("group.id", None)
    async with Consumer(config_of(ConsumerConfig, settings)) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(options.partitions)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        measured = Measured("consume", options.seconds, options.size)
        with Progress("consume", "records", records) as progress:
            while measured.count < records and not measured.is_over:
                for batch in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                    measured.count += len(batch)
                    progress.advance(len(batch))
    return measured.document()


async def _heartbeat(session: Session, admin: Admin, group: str) -> dict[str, Any]:
    from rota.client import AdminConfig
    from rota.client.network.cluster import Cluster

    options = session.options
    cluster = Cluster(config_of(AdminConfig, session.settings()))
    await cluster.start()
    try:
        member = await Member.join(cluster, group)
        measured = Measured("heartbeat", options.seconds)
        with Progress("heartbeat", "heartbeats", options.heartbeats) as progress:
            while measured.count < options.heartbeats and not measured.is_over:
                began = asyncio.get_running_loop().time()
                await member.heartbeat()
                measured.add(began)
                progress.advance(1)
        result = measured.document()
        await member.leave()
    finally:
        await cluster.close()
    await admin.delete_groups([group])
    return result


class Member:
    """A member that does nothing but heartbeats: the only one of its group."""

    def __init__(self, cluster: Cluster, group: str, node: int, member_id: str, generation: int) -> None:
        self._cluster, self._group, self._node = cluster, group, node
        self._member_id, self._generation = member_id, generation

    @classmethod
    async def join(cls, cluster: Cluster, group: str) -> Member:
        """Join and sync. Raises BrokerError."""
        from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
        from rota.protocol.messages.sync_group import SyncGroupRequest

        node = await cluster.coordinator(group)
        member_id = ""
        while True:
            request = JoinGroupRequest(
                group_id=group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=SESSION_MS,
                member_id=member_id,
                group_instance_id=None,
                protocol_type=PROTOCOL_TYPE,
                protocols=(JoinGroupRequestProtocol(name=PROTOCOL, metadata=b""),),
            )
            joined = await cluster.send_request(node, request)
            if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED or member_id:
                break
            member_id = joined.member_id
        _check(joined.error_code, "joining the group", group)
        sync = SyncGroupRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id,
                                group_instance_id=None, protocol_type=PROTOCOL_TYPE,
                                protocol_name=PROTOCOL, assignments=())  # fmt: skip
        _check((await cluster.send_request(node, sync)).error_code, "syncing the group", group)
        return cls(cluster, group, node, joined.member_id, joined.generation_id)

    async def heartbeat(self) -> None:
        """Send a heartbeat and wait for the response. Raises BrokerError."""
        from rota.protocol.messages.heartbeat import HeartbeatRequest

        request = HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._member_id,
                                   group_instance_id=None)  # fmt: skip
        _check((await self._cluster.send_request(self._node, request)).error_code, "heartbeat", self._group)

    async def leave(self) -> None:
        """Leave the group; whatever the broker answers."""
        from rota.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity

        members = (MemberIdentity(member_id=self._member_id, group_instance_id=None, reason="the benchmark is over"),)
        await self._cluster.send_request(self._node, LeaveGroupRequest(group_id=self._group, members=members))


def _check(code: int, what: str, group: str) -> None:
    if code:
        raise BrokerError(code, what, group=group)
