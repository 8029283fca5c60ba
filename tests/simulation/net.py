"""Links in memory: bytes arrive in order, late, in pieces of any size; links break, or become silent.

Laws
    Received bytes are a prefix of the sent bytes.
    A broken link notifies both ends; a silent link notifies neither.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.loop import SimLoop

Address = tuple[str, int]

WHO: ContextVar[str] = ContextVar("who", default="")  # whose doing this is: tasks, timers and links inherit it
HIGH_WATER_BYTES = 64 * 1024
READ_BYTES_MAX = 64 * 1024
FIRST_PORT = 20_000


class Network:
    """Who listens where, and how the links are. `delay_s` is the mean of a link's delay."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop, self.random = loop, loop.random
        self.delay_s = 0.002
        self.pieces = 0.3  # of the deliveries come in pieces
        self.links: list[Link] = []
        self.silent: set[Address] = set()  # listeners that swallow who knocks
        self._listening: dict[Address, Server] = {}
        self._port = FIRST_PORT
        self.hosts: dict[str, str] = {}  # of processes that have one of their own, by name
        self.blocked: set[tuple[str, str]] = set()  # (from, to): hosts between which nothing arrives
        self.datagrams = Datagrams(self)

    def port(self) -> int:
        """One that nobody has."""
        self._port += 1
        return self._port

    def listen(self, made: Callable[[], Any], where: Address) -> Server:
        host, port = where
        where = host, port or self.port()
        if where in self._listening:
            raise OSError(98, f"{where} is in use")
        server = self._listening[where] = Server(self, made, where)
        return server

    def closed(self, where: Address) -> None:
        self._listening.pop(where, None)

    async def connect(self, made: Callable[[], Any], where: Address) -> tuple[Any, Any]:
        await asyncio.sleep(self.delay())
        here = self.hosts.get(WHO.get(), "127.0.0.1")
        if where in self.silent or self.is_blocked(here, where[0]):
            await self.loop.create_future()  # until whoever knocks has had enough
        server = self._listening.get(where)
        if server is None:
            raise ConnectionRefusedError(111, f"nobody listens at {where}")
        link = Link(self, (here, self.port()), where, WHO.get())
        self.links.append(link)
        protocol = made()
        link.client.adopt(protocol, copy_context())
        link.server.adopt(server.made(), server.context.copy())
        protocol.connection_made(link.client)
        server.context.copy().run(link.server.protocol.connection_made, link.server)
        return link.client, protocol

    def block(self, here: str, there: str, *, both: bool) -> None:
        """Drop everything that `here` sends to `there`, and with `both` everything in the other direction.

        A connection needs both directions, so the open ones never deliver anything again.
        """
        self.blocked |= {(here, there), (there, here)} if both else {(here, there)}
        for link in self.open_links():
            if {link.client_host, link.address[0]} == {here, there}:
                link.silence()

    def is_blocked(self, here: str, there: str) -> bool:
        """Whether no connection can be made between them."""
        return (here, there) in self.blocked or (there, here) in self.blocked

    def close_of(self, host: str) -> None:
        """Nobody listens on that host any more: its process has crashed."""
        for where in [where for where in self._listening if where[0] == host]:
            del self._listening[where]
        self.datagrams.close_of(host)

    def delay(self) -> float:
        return self.random.expovariate(1 / self.delay_s) if self.delay_s else 0.0

    def open_links(self) -> list[Link]:
        self.links = [link for link in self.links if not link.is_over]
        return self.links


class Link:
    """Two ends. `cut` breaks it, `hush` makes it silent for good. `who` made it."""

    def __init__(self, network: Network, client: Address, server: Address, who: str) -> None:
        self.network, self.address, self.who, self.client_host = network, server, who, client[0]
        self.is_silent = self.is_cut = False
        self.client, self.server = End(self, client, server), End(self, server, client)
        self.client.other, self.server.other = self.server, self.client

    @property
    def is_over(self) -> bool:
        return self.client.is_lost and self.server.is_lost

    def cut(self) -> None:
        """Whatever is under way is lost; each end hears of it in its own time."""
        if not self.is_cut:
            self.is_cut = True
            for end in (self.client, self.server):
                end.inbox.clear()
                end.break_off(ConnectionResetError(104, "cut"))

    def silence(self) -> None:
        """Nothing arrives any more, in either direction, and nobody is told."""
        self.is_silent = True


class End(asyncio.Transport):
    """One end of a link, as a protocol sees it."""

    def __init__(self, link: Link, here: Address, there: Address) -> None:
        from tests.simulation.loop import FakeSocket

        super().__init__({"sockname": here, "peername": there, "socket": FakeSocket(here)})
        self.link, self.loop = link, link.network.loop
        self.other: End
        self.protocol: Any = None
        self.inbox: deque[bytes] = deque()  # arrived, not read
        self.is_lost = self._is_closing = self._is_eof = self._reads_not = self._is_write_paused = False
        self._on_the_way = 0  # bytes that we sent and the other end has not read
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._arrives_at = 0.0

    def adopt(self, protocol: Any, context: Context) -> None:
        """Whatever is told to the protocol is told in this context."""
        self.protocol, self.context = protocol, context

    # ---- what protocols ask of a transport

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not self._reads_not

    def pause_reading(self) -> None:
        self._reads_not = True

    def resume_reading(self) -> None:
        self._reads_not = False
        self.loop.call_soon(self._read, context=self.context)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return self._on_the_way

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._is_eof:
            self._is_eof = True
            if not self.link.is_silent:
                self._later(self.other, self.other._arrive, b"")

    def write(self, data: Any) -> None:
        data = bytes(data)
        if self.is_lost or self._is_eof or not data:
            return
        self.loop.trace.update(data)
        self._on_the_way += len(data)
        if not self.link.is_silent and not self.link.is_cut:
            draw = self.link.network.random
            while data:
                size = min(len(data), READ_BYTES_MAX)
                if draw.random() < self.link.network.pieces:
                    size = draw.randrange(size) + 1
                piece, data = data[:size], data[size:]
                self._later(self.other, self.other._arrive, piece)
        if self._on_the_way > self._high and not self._is_write_paused:
            self._is_write_paused = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if self._is_closing:
            return
        self.write_eof()
        self._is_closing = True
        self.loop.call_soon(self._lost, None, context=self.context)

    def abort(self) -> None:
        self._is_closing = self._is_eof = True
        if not self.link.is_silent:
            self._later(self.other, self.other._reset)
        self.loop.call_soon(self._lost, None, context=self.context)

    # ---- the wire

    def _later(self, end: End, call: Callable[..., None], *args: Any) -> None:
        """In the order in which it was sent."""
        if self.loop.is_closed():
            return
        self._arrives_at = max(self._arrives_at, self.loop.time() + self.link.network.delay())
        self.loop.call_at(self._arrives_at, self._delivered, call, args, context=end.context)
        self._arrives_at += 1e-6

    def _delivered(self, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        if not self.link.is_silent and not self.link.is_cut:
            call(*args)

    def _arrive(self, piece: bytes) -> None:
        if not self.is_lost:
            self.inbox.append(piece)
            self._read()

    def _read(self) -> None:
        while self.inbox and not self._reads_not and not self.is_lost and not self._is_closing:
            piece = self.inbox.popleft()
            if piece:
                self.loop.call_soon(self.other._was_read, len(piece), context=self.other.context)
                self.protocol.data_received(piece)
            else:
                self._end()

    def _end(self) -> None:
        """The other side closed."""
        if not self.protocol.eof_received():
            self._is_closing = True
            self.loop.call_soon(self._lost, None, context=self.context)

    def _was_read(self, size: int) -> None:
        self._on_the_way -= size
        if self._is_write_paused and self._on_the_way <= self._low and not self.is_lost:
            self._is_write_paused = False
            self.protocol.resume_writing()

    def _reset(self) -> None:
        self._lost(ConnectionResetError(104, "reset by peer"))

    def break_off(self, why: Exception) -> None:
        self.loop.call_later(self.link.network.delay(), self._lost, why, context=self.context)

    def _lost(self, why: Exception | None) -> None:
        if self.is_lost:
            return
        self.is_lost = self._is_closing = self._is_eof = True
        self.inbox.clear()
        self.protocol.connection_lost(why)


class Server:
    """What `create_server` gives."""

    def __init__(self, network: Network, made: Callable[[], Any], where: Address) -> None:
        self._network, self.made, self.where = network, made, where
        self.context = copy_context()

    @property
    def sockets(self) -> tuple[Any, ...]:
        from tests.simulation.loop import FakeSocket

        return (FakeSocket(self.where),)

    def is_serving(self) -> bool:
        return True

    async def start_serving(self) -> None: ...

    def close(self) -> None:
        self._network.closed(self.where)

    async def wait_closed(self) -> None: ...


class Datagrams:
    """Datagrams may be lost, come late, twice, and in another order."""

    def __init__(self, network: Network) -> None:
        self.network, self._bound = network, dict[Address, DatagramEnd]()
        self.lost = 0.0  # of all
        self.doubled = 0.0

    def bind(self, protocol: Any, where: Address) -> tuple[Any, Any]:
        host, port = where
        end = DatagramEnd(self, (host, port or self.network.port()), protocol)
        self._bound[end.where] = end
        protocol.connection_made(end)
        return end, protocol

    def closed(self, end: DatagramEnd) -> None:
        if self._bound.get(end.where) is end:
            del self._bound[end.where]

    def close_of(self, host: str) -> None:
        """The sockets of a process that has crashed."""
        for where in [where for where in self._bound if where[0] == host]:
            del self._bound[where]

    def send(self, data: bytes, here: Address, there: Address) -> None:
        network = self.network
        network.loop.trace.update(data)
        if (here[0], there[0]) in network.blocked or network.random.random() < self.lost:
            return
        for _ in range(2 if network.random.random() < self.doubled else 1):
            end = self._bound.get(there)
            if end is not None:
                network.loop.call_later(network.delay(), self._arrive, end, data, here, context=end.context)

    def _arrive(self, end: DatagramEnd, data: bytes, source: Address) -> None:
        if self._bound.get(end.where) is end:
            end.protocol.datagram_received(data, source)


class DatagramEnd(asyncio.DatagramTransport):
    """One bound socket."""

    def __init__(self, datagrams: Datagrams, where: Address, protocol: Any) -> None:
        from tests.simulation.loop import FakeSocket

        super().__init__({"sockname": where, "peername": "", "socket": FakeSocket(where)})
        self._datagrams, self.where, self.protocol = datagrams, where, protocol
        self.context = copy_context()
        self._is_closing = False

    def sendto(self, data: Any, addr: Any = None) -> None:
        if not self._is_closing:
            self._datagrams.send(bytes(data), self.where, addr[:2])

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._datagrams.closed(self)
            loop = self._datagrams.network.loop
            if not loop.is_closed():
                loop.call_soon(self.protocol.connection_lost, None, context=self.context)

    abort = close
