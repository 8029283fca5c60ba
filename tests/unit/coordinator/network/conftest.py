"""A real server on a free port of the loopback, on both event loops, and a peer that speaks raw bytes.

The API is Heartbeat, and Fetch, whose replies are those of the test. Heartbeat's group id says what becomes of the
request: `now`, `later` and `mute` (parked), `never` (no reply), `boom` and `slip` (our own mistakes), `big` (a megabyte
of reply). The reply carries its generation.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from rota.coordinator.api.node import Call
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.network.call import Route
from rota.coordinator.network.connections import Connections
from rota.coordinator.network.listener import Listener
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.scheduling.timers import Timers
from rota.protocol.compiler import codec
from rota.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.messages.fetch import FetchRequest, FetchResponse
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

FETCH, FIND_COORDINATOR, HEARTBEAT, LIST_GROUPS, API_VERSIONS = 1, 10, 12, 16, 18
BIG_BYTES = 1 << 20
FETCH_BODY = codec(FetchRequest, 12).encode(FetchRequest(max_wait_ms=0, min_bytes=0, topics=()))


class Peer:
    """A client that sees bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def send_request(self, generation: int, group: str = "now", **head: Any) -> None:
        """One Heartbeat v4; its generation is its correlation id too."""
        body = codec(HeartbeatRequest, 4).encode(
            HeartbeatRequest(group_id=group, generation_id=generation, member_id="m", group_instance_id=None)
        )
        self.send(request(HEARTBEAT, 4, generation, body, **head))

    def send_fetch(self, correlation_id: int = 0) -> None:
        """One Fetch v12 of nothing: the test has the answer."""
        self.send(request(FETCH, 12, correlation_id, FETCH_BODY))

    async def frame(self) -> bytes:
        async with asyncio.timeout(20):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def answers(self) -> int:
        """The generation in the next reply, whose correlation id is the same."""
        frame = await self.frame()
        correlation_id, tags = struct.unpack_from(">ib", frame)
        response, end = codec(HeartbeatResponse, 4).decode(frame, 5)
        assert (tags, end, response.throttle_time_ms) == (0, len(frame), correlation_id)
        return int(correlation_id)

    async def ended(self) -> bool:
        """The server closes; nothing more comes."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


def request(
    key: int, version: int, correlation_id: int, body: bytes, *, client: bytes = b"test", tags: bytes = b"\0"
) -> bytes:
    head = struct.pack(">hhih", key, version, correlation_id, len(client)) + client
    return framed(head + tags + body)


def framed(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


class World:
    """The server, what it was asked, and what waits to be answered."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0", **properties})
        self.now_ms = 1_000_000
        self.timers = Timers(lambda: self.now_ms)
        self.calls: list[Call] = []
        self.requests: list[int] = []
        self.delayed_reply: dict[int, DelayedReply[HeartbeatResponse]] = {}
        self.fetched: list[FetchResponse | DelayedReply[FetchResponse]] = []  # the replies to the next Fetches
        self.abandoned: list[int] = []
        self.expedited: list[int] = []
        self.changed = asyncio.Condition()
        node: Any = SimpleNamespace(config=self.config, timers=self.timers, now_ms=lambda: self.now_ms)
        self.connections = Connections(node, self._routes(), asyncio.get_running_loop().call_soon)
        self.listener = Listener(self.connections, self.timers, lambda: self.now_ms)
        self.port = 0
        self.bound: list[Endpoint] = []
        self.peers: list[Peer] = []

    def _routes(self) -> dict[int, Route]:
        listed = Route(LIST_GROUPS, "ListGroups", range(6), 3, ListGroupsRequest, ListGroupsResponse, self._list)
        versions = ApiVersionsRequest.VERSIONS
        find = Route(
            FIND_COORDINATOR,
            "FindCoordinator",
            range(7),
            3,
            FindCoordinatorRequest,
            FindCoordinatorResponse,
            self._find,
        )
        return {
            FETCH: Route(FETCH, "Fetch", range(4, 19), 12, FetchRequest, FetchResponse, self._fetch),
            FIND_COORDINATOR: find,
            HEARTBEAT: Route(HEARTBEAT, "Heartbeat", range(5), 4, HeartbeatRequest, HeartbeatResponse, self._heartbeat),
            LIST_GROUPS: listed,
            API_VERSIONS: Route(
                API_VERSIONS,
                "ApiVersions",
                versions,
                3,
                ApiVersionsRequest,
                ApiVersionsResponse,
                _versions,
                _unsupported_version,
            ),
        }

    def _heartbeat(self, node: Any, call: Call, request: HeartbeatRequest) -> Any:
        generation = request.generation_id
        self.requests.append(generation)
        self.calls.append(call)
        response = HeartbeatResponse(error_code=0, throttle_time_ms=generation)
        match request.group_id:
            case "now":
                return response
            case "never":
                return None
            case "throttled":
                assert call.mute is not None
                call.mute(generation)
                return response
            case "boom":
                raise RuntimeError("nobody foresaw this")
            case "slip":
                raise IndexError("nobody foresaw this either")
            case "at once":
                delayed_reply: DelayedReply[HeartbeatResponse] = DelayedReply(mutes=True)
                delayed_reply.answer(response)
                return delayed_reply
            case waits:
                delayed_reply = self.delayed_reply[generation] = DelayedReply(mutes=waits in ("mute", "join"))
                if waits != "join":
                    delayed_reply.on_abandon(lambda: self.abandoned.append(generation))
                delayed_reply.on_expedite(lambda: self.expedited.append(generation))
                return delayed_reply

    def _fetch(self, node: Any, call: Call, request: FetchRequest) -> FetchResponse | DelayedReply[FetchResponse]:
        self.requests.append(-FETCH)
        self.calls.append(call)
        return self.fetched.pop(0)

    def _list(self, node: Any, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
        self.requests.append(-1)
        return ListGroupsResponse(error_code=0, groups=[ListedGroup(group_id="x" * 30_000, protocol_type="")] * 35)

    def _find(self, node: Any, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        self.requests.append(-10)
        return FindCoordinatorResponse(error_code=0)

    def answer(self, generation: int) -> None:
        self.delayed_reply.pop(generation).answer(HeartbeatResponse(error_code=0, throttle_time_ms=generation))

    async def peer(self) -> Peer:
        peer = Peer(*await asyncio.open_connection("127.0.0.1", self.port))
        self.peers.append(peer)
        return peer

    async def until(self, true: Callable[[], bool]) -> None:
        """Let the loop turn until something is so."""
        async with asyncio.timeout(20):
            while not true():
                await asyncio.sleep(0)


def _versions(node: Any, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=0, api_keys=[ApiVersion(api_key=12, min_version=0, max_version=4)])


def _unsupported_version(node: Any, call: Call) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)])


Serve = Callable[..., Awaitable[World]]
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, LoopFactory]:
    """What is about sockets holds on both loops."""
    loops: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    if "serve" in getattr(item, "fixturenames", ()):
        loops["uvloop"] = uvloop.new_event_loop
    return loops


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start a server with these properties."""
    worlds: list[World] = []

    async def start(**properties: str) -> World:
        world = World({name.replace("_", "."): value for name, value in properties.items()})
        worlds.append(world)
        world.bound = await world.listener.start(world.config.listens)
        world.port = world.bound[0].port
        return world

    yield start
    for world in worlds:
        for peer in world.peers:
            await peer.close()
        await world.listener.stop(0)
        world.timers.stop()
        assert len(world.connections) == 0
        assert world.connections.request_memory.held_bytes == 0
