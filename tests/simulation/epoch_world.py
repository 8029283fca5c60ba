"""A world of clients whose group has the consumer protocol (KIP-848), or changes between it and the classic one.

As `client_world`: one broker, a proxy that looks like three, real producers and consumers. Here the coordinator
assigns; in some worlds each member that comes has a protocol of its own, so that the group is upgraded and
downgraded while members with both are in it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tests.simulation.client_actors import HEARTBEAT_MS, SESSION_MS
from tests.simulation.client_history import ClientHistory
from tests.simulation.client_world import PASSING, LogLine, World
from tests.simulation.loop import SimLoop

from rota.client.group import epoch_member
from rota.coordinator.api import consumer_group_heartbeat, join_group

PROTOCOLS = (("consumer",), ("auto",), ("consumer", "classic"), ("auto", "classic"), ("consumer", "auto", "classic"))


class EpochWorld(World):
    """`play(seed, kind=EpochWorld)`."""

    passing = {
        **PASSING,
        8: (14, 15, 16),  # OffsetCommit
        68: (14, 15, 16),  # ConsumerGroupHeartbeat
    }

    def __init__(self, loop: SimLoop, seed: int, log_line: LogLine) -> None:
        super().__init__(loop, seed, log_line)
        self.protocols = self.random.choice(PROTOCOLS)
        self.assignor = self.random.choice((None, "uniform", "range"))
        # an empty group that a member of the other protocol joins is a new one, with generation 1, as in Kafka
        self.history = ClientHistory(generations_begin_again="classic" in self.protocols)
        self.interval_ms = self.random.choice((0, 1_000))
        log_line(f"protocols {self.protocols}, assignor {self.assignor}, classic members with {self.strategies}")

    @property
    def properties(self) -> dict[str, str]:
        return {
            **super().properties,
            "group.consumer.session.timeout.ms": str(SESSION_MS),
            "group.consumer.min.session.timeout.ms": str(SESSION_MS),
            "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
            "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
            "group.consumer.assignment.interval.ms": str(self.interval_ms),
        }

    def protocol(self, random: Random) -> dict[str, Any]:
        name = random.choice(self.protocols)
        if name == "classic":
            return super().protocol(random)
        classic = super().protocol(random) if name == "auto" else {}
        return {**classic, "group_protocol": name, "group_remote_assignor": self.assignor}

    @contextlib.asynccontextmanager
    async def _broker(self) -> AsyncIterator[str]:
        ids = itertools.count(1)

        def draw() -> str:
            return f"drawn-{next(ids)}"

        with (
            mock.patch.object(epoch_member, "uuid", SimpleNamespace(uuid4=draw)),
            mock.patch.object(consumer_group_heartbeat, "new_id", draw),
            mock.patch.object(join_group, "new_id", draw),
        ):
            async with super()._broker() as address:
                yield address
