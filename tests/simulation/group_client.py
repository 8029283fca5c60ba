"""A member of a group, or a client that commits without membership, connected to the current coordinator."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from tests.chaos.line import Line
from tests.simulation.member import Member

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest

if TYPE_CHECKING:
    from tests.simulation.cluster_world import ClusterWorld

CONNECT_S = 2.0
PATIENCE_S = 15.0  # more than a rebalance takes
MOVED = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}


class GroupClient:
    """`act` until the run is over, then until one fetch of the offsets has succeeded."""

    def __init__(self, world: ClusterWorld, member: Member, random: Random) -> None:
        self.world, self.member, self.random = world, member, random
        self.answers = 0

    async def act(self) -> None:
        while not self.world.is_over:
            try:
                await self._use(await self._connect())
            except (OSError, TimeoutError):
                await asyncio.sleep(self.random.choice((0.05, 0.5)))
        self.member.claim(self._now_ms())

    async def read_offsets(self) -> None:
        """Soon after the run the offsets can be read."""
        while True:
            try:
                line = await self._connect()
                request = self.member.fetch(self._now_ms())
                answer = await self._send_request(line, request, 7)
                await line.close()
            except (OSError, TimeoutError):
                answer = None
            if answer is not None and not answer.error_code:
                return
            await asyncio.sleep(0.5)

    def _now_ms(self) -> float:
        return self.world.loop.time() * 1000

    async def _use(self, line: Line) -> None:
        """Ask one thing after the other, until the connection breaks or the coordinator has moved."""
        try:
            while not self.world.is_over:
                request, version = self.member.next(self._now_ms())
                answer = await self._send_request(line, request, version)
                if answer is None or _error(answer) in MOVED:
                    await asyncio.sleep(0.05)
                    return
                self.answers += 1
                await asyncio.sleep(self.random.choice((0.0, 0.02, 0.3)))
        finally:
            await line.close()

    async def _send_request(self, line: Line, request: Any, version: int) -> Any:
        """The answer; None when the connection broke, or it took too long."""
        try:
            answer = await asyncio.wait_for(line.send(request, version), PATIENCE_S)
        except TimeoutError:
            answer = None
        self.member.received(request, answer, self._now_ms())
        return answer

    async def _connect(self) -> Line:
        """Raises OSError, TimeoutError."""
        process = self.random.choice(list(self.world.brokers.values()))
        line = await asyncio.wait_for(Line.open(f"{process.host}:{process.port}"), CONNECT_S)
        try:
            found = await asyncio.wait_for(line.send(FindCoordinatorRequest(key=self.member.group), 3), CONNECT_S)
        finally:
            await line.close()
        if found is None or found.error_code:
            raise ConnectionError("no coordinator")
        return await asyncio.wait_for(Line.open(f"{found.host}:{found.port}"), CONNECT_S)


def _error(answer: Any) -> int:
    if hasattr(answer, "error_code"):
        return int(answer.error_code)
    topics = getattr(answer, "topics", ())
    return int(topics[0].partitions[0].error_code) if topics else 0
