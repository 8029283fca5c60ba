"""Members for tests: each is polled whenever it has something to do, and keeps what its callbacks were told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from tests.interop.kit import PATIENCE_S

from rota.client.config import ConsumerConfig
from rota.client.group.assignors.strategies import resolve
from rota.client.group.effects import Partitions
from rota.client.group.membership import Membership
from rota.client.network.cluster import Cluster
from rota.client.types import TopicPartition

LOOK_EVERY_S = 0.01


class Reader:
    """A user of a Membership: polls in a loop, keeps what its callbacks were told."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig) -> None:
        self.awake = asyncio.Event()
        assignors = resolve(config.partition_assignment_strategy)
        self.member = Membership(cluster, config, assignors, self, wake=self.awake.set)
        self.owned: set[TopicPartition] = set()
        self.events: list[tuple[str, Partitions]] = []
        self.generations: list[int] = []
        self.polling: asyncio.Task[None] | None = None
        self.every_s: float | None = None

    async def before_rejoin(self) -> None:
        pass

    async def revoked(self, partitions: Partitions) -> None:
        self.events.append(("revoked", partitions))
        assert self.owned.issuperset(partitions)
        self.owned -= set(partitions)

    async def lost(self, partitions: Partitions) -> None:
        self.events.append(("lost", partitions))
        assert self.owned.issuperset(partitions)
        self.owned -= set(partitions)

    async def assigned(self, owned: Partitions, added: Partitions) -> None:
        self.events.append(("assigned", added))
        assert not self.owned & set(added)
        self.owned |= set(added)
        assert self.owned == set(owned)
        self.generations.append(self.member.group.generation_id)

    def answers(self, what: str) -> list[int]:
        return [item.partition for kind, partitions in self.events if kind == what for item in partitions]

    def start(self) -> None:
        """Poll whenever there is something to do."""
        self.polling = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        while True:
            self.awake.clear()
            await self.member.poll()
            self.member.returning()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.every_s):
                    await self.awake.wait()

    def poll_again_every(self, seconds: float) -> None:
        """Also without a reason, so that it counts as alive."""
        self.every_s = seconds
        self.awake.set()

    async def stop(self) -> None:
        if self.polling is not None:
            self.polling.cancel()
            with suppress(asyncio.CancelledError):
                await self.polling
            self.polling = None

    async def close(self) -> None:
        await self.stop()
        await self.member.close("the consumer is being closed", before_leaving=nothing, timeout_ms=5_000)


async def nothing() -> None:
    pass


async def until(look: Callable[[], object], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not look():
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        raise AssertionError(f"waited {PATIENCE_S} s for {what}") from None


Join = Callable[..., Awaitable[Reader]]


@asynccontextmanager
async def readers(bootstrap: str, group: str, **defaults: object) -> AsyncIterator[Join]:
    """`reader = await join(topic, setting=…)`: a reader that polls; all are closed in the end."""
    async with AsyncExitStack() as stack:

        async def join(topics: str | re.Pattern[str], *, polls: bool = True, **settings: object) -> Reader:
            given = {"bootstrap_servers": bootstrap, "group_id": group}
            if (defaults | settings).get("group_protocol", "classic") == "classic":  # else the coordinator decides
                given |= {"heartbeat_interval_ms": 100, "session_timeout_ms": 10_000}
            config = ConsumerConfig(**{**given, **defaults, **settings})
            cluster = Cluster(config)
            await cluster.start()
            stack.push_async_callback(cluster.close)
            reader = Reader(cluster, config)
            stack.push_async_callback(reader.close)
            reader.member.subscribe(topics if isinstance(topics, re.Pattern) else frozenset({topics}))
            if polls:
                reader.start()
            return reader

        yield join


def shares(*members: Reader) -> list[int]:
    return sorted(len(reader.owned) for reader in members)


def all_owned(*members: Reader) -> list[TopicPartition]:
    return sorted(item for reader in members for item in reader.owned)


def settled(*members: Reader) -> bool:
    return all(reader.member.is_settled and reader.member.state == "STABLE" for reader in members)
