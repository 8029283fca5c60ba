"""A fault-injecting proxy: N listeners in front of one broker, which look like a cluster of N brokers to a client.

    async with FaultProxy(bootstrap, nodes=3) as proxy:
        proxy.lead(TopicPartition("t", 0), 2)               # node 2 leads, in a new epoch
        lost = proxy.close(PRODUCE, after=True)             # the next produce is done, its answer is lost
        ... a client on proxy.bootstrap ...
        await lost.happened()

Laws
    Every fault is requested by the test, happens the given number of times, and can be awaited.
    Answers leave in the order of the requests of a connection, as a broker's do.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from types import TracebackType
from typing import Any, Self

from tests.client.fault_table import FETCH, METADATA, Table
from tests.client.refusals import OF_A_SESSION, refusal

from rota.client.types import TopicPartition
from rota.protocol.compiler import codec
from rota.protocol.header import read_request, read_response_header, request_header, response_header
from rota.protocol.messages.metadata import MetadataRequest
from rota.protocol.registry import APIS

PATIENCE_S = 20.0
HOST = "127.0.0.1"


class FaultKind(Enum):
    """The kinds of faults."""

    REFUSE = "an error code instead of the answer"
    CLOSE = "the connection ends"
    SWALLOW = "silence from here on, the connection stays: half-open"
    HOLD = "it waits until it is released"
    CUT = "half of the answer, then the connection ends"


class Fault:
    """A fault of the next `times` matching requests (None: of all) until `end`."""

    def __init__(
        self,
        kind: FaultKind,
        api: int | None,
        *,
        after: bool = False,
        node: int | None = None,
        times: int | None = 1,
        code: int = 0,
        when: Callable[[Any], bool] | None = None,
    ) -> None:
        self.kind, self.api, self.after, self.node, self.times, self.code = kind, api, after, node, times, code
        self._when = when
        self.hits = 0
        self._hit = asyncio.Event()
        self.released = asyncio.Event()

    def matches(self, node: int, request: Any) -> bool:
        """Whether this request gets the fault; counts it."""
        if self.times == 0 or self.api not in (None, request.KEY) or self.node not in (None, node):
            return False
        if self._when is not None and not self._when(request):
            return False
        self.hits += 1
        self.times = None if self.times is None else self.times - 1
        self._hit.set()
        return True

    async def happened(self, hits: int = 1) -> None:
        """Return when it has happened `hits` times."""
        async with asyncio.timeout(PATIENCE_S):
            while self.hits < hits:
                self._hit.clear()
                await self._hit.wait()

    def release(self) -> None:
        """Let held requests go on."""
        self.released.set()

    def end(self) -> None:
        """Stop the fault and let held requests go on."""
        self.times = 0
        self.release()


class FaultProxy:
    """Node ids are 1 to `nodes`. Until changed, node p mod nodes + 1 leads partition p and the last node coordinates
    every group."""

    def __init__(self, upstream: str, nodes: int = 3, connection: type[ProxyConnection] | None = None) -> None:
        """`connection` is the class of the proxy's connections."""
        host, _, port = upstream.rpartition(":")
        self.connection = ProxyConnection if connection is None else connection
        self.upstream = host, int(port)
        self.brokers = {node: ProxyBroker(self, node) for node in range(1, nodes + 1)}
        self.table = Table(tuple(self.brokers), lambda node: (HOST, self.brokers[node].port))
        self.faults: list[Fault] = []
        self.requests: list[tuple[int, Any]] = []  # (node, request), in the order in which they came
        self.on_request: Callable[[int, Any], None] | None = None  # called instead of recording, when set

    async def __aenter__(self) -> Self:
        for broker in self.brokers.values():
            await broker.open()
        await self._learn()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fault in self.faults:
            fault.end()
        for broker in self.brokers.values():
            await broker.close()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{broker.port}" for broker in self.brokers.values())

    def request_count(self, api: int, node: int | None = None) -> int:
        """How many requests of this API came to this node, or to all."""
        return sum(1 for at, request in self.requests if api == request.KEY and node in (None, at))

    def record_request(self, node: int, request: Any) -> None:
        if self.on_request is not None:
            self.on_request(node, request)
        else:
            self.requests.append((node, request))

    # ---- who does what

    def lead(self, partition: TopicPartition, node: int) -> None:
        """`node` leads the partition from now on, in a new epoch."""
        self.table.lead(partition, node)

    def leader(self, partition: TopicPartition) -> int:
        return self.table.now.leader(partition)

    def coordinate(self, group: str, node: int) -> None:
        """`node` coordinates the group from now on."""
        self.table.coordinate(group, node)

    def coordinator(self, group: str) -> int:
        return self.table.now.coordinator(group)

    def serve_old_metadata(self, *nodes: int) -> None:
        """These nodes (none given: all) answer with today's metadata until `serve_current_metadata`."""
        for node in nodes or self.brokers:
            self.table.old_views[node] = self.table.now.copy()

    def serve_current_metadata(self, *nodes: int) -> None:
        for node in nodes or self.brokers:
            self.table.old_views.pop(node, None)

    # ---- what goes wrong

    def refuse(self, api: int, code: int, **more: Any) -> Fault:
        """An error code instead of the answer; `after=True`: though it was done."""
        return self._fault(Fault(FaultKind.REFUSE, api, code=code, **more))

    def close(self, api: int | None, **more: Any) -> Fault:
        """The connection ends instead of the answer; `after=True`: though it was done."""
        return self._fault(Fault(FaultKind.CLOSE, api, **more))

    def swallow(self, api: int | None, **more: Any) -> Fault:
        """The connection falls silent; `after=True`: the request is done."""
        return self._fault(Fault(FaultKind.SWALLOW, api, **more))

    def hold(self, api: int | None, **more: Any) -> Fault:
        """The request waits for `release`; `after=True`: it is done and its answer waits."""
        return self._fault(Fault(FaultKind.HOLD, api, **more))

    def cut(self, api: int | None, **more: Any) -> Fault:
        """Half of the answer's bytes, then the end of the connection."""
        return self._fault(Fault(FaultKind.CUT, api, after=True, **more))

    def _fault(self, fault: Fault) -> Fault:
        self.faults.append(fault)
        return fault

    def match_fault(self, node: int, request: Any) -> Fault | None:
        return next((fault for fault in self.faults if fault.matches(node, request)), None)

    # ---- brokers that stop and start

    async def stop_brokers(self, *nodes: int) -> None:
        """Close the listeners and reset the connections of these nodes; none given: of all."""
        for node in nodes or self.brokers:
            await self.brokers[node].close()

    async def start_brokers(self, *nodes: int) -> None:
        for node in nodes or self.brokers:
            await self.brokers[node].open()

    def freeze(self, *nodes: int) -> None:
        """Connections to these nodes, old and new, get no bytes; nothing is closed."""
        for node in nodes or self.brokers:
            self.brokers[node].is_running.clear()

    def thaw(self, *nodes: int) -> None:
        for node in nodes or self.brokers:
            self.brokers[node].is_running.set()

    def reset(self, *nodes: int) -> int:
        """Reset every connection to these nodes; return how many."""
        return sum(self.brokers[node].reset() for node in nodes or self.brokers)

    async def _learn(self) -> None:
        """Read the broker's topic ids, so that no client has to ask first."""
        reader, writer = await asyncio.open_connection(*self.upstream)
        try:
            frame = request_header(METADATA, 12, 1, "proxy") + codec(MetadataRequest, 12).encode(
                MetadataRequest(topics=None, allow_auto_topic_creation=False)
            )
            writer.write(len(frame).to_bytes(4, "big") + frame)
            answer = await _frame(reader)
            at = read_response_header(answer, METADATA, 12)[1]
            self.table.learn(codec(APIS[METADATA].response, 12).decode(answer, at)[0])
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


class ProxyBroker:
    """One listener. It keeps its port when it is stopped and started."""

    def __init__(self, proxy: FaultProxy, node: int) -> None:
        self.proxy, self.node, self.port = proxy, node, 0
        self.is_running = asyncio.Event()
        self.is_running.set()
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], None] = {}  # in their order

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def open(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, HOST, self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is None:
            return
        server, self._server = self._server, None
        await self._stop_accepting(server)
        server.close()
        connections = list(self._connections)
        self.reset()
        if connections:
            await asyncio.wait(connections)
        await server.wait_closed()

    @staticmethod
    async def _stop_accepting(server: asyncio.Server) -> None:
        """Who was accepted already comes in first: asyncio forgets the socket of whoever comes after `close`."""
        loop = asyncio.get_running_loop()
        for item in server.sockets:
            loop.remove_reader(item.fileno())
        for _ in range(3):
            await asyncio.sleep(0)

    def reset(self) -> int:
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        return len(connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:  # it connected while the listener was being closed
            writer.transport.abort()
            return
        connection = asyncio.get_running_loop().create_task(
            self.proxy.connection(self, reader, writer).run(), name=f"proxy {self.node}"
        )
        self._connections[connection] = None
        connection.add_done_callback(lambda done: self._connections.pop(done, None))


class Slot:
    """A request whose answer is to be sent in its turn; None says that the connection ends."""

    __slots__ = ("answer", "code", "correlation", "fault", "request", "rewrite", "version")

    def __init__(self, request: Any, version: int, correlation: int, rewrite: Callable[[Any], Any]) -> None:
        self.request, self.version, self.correlation, self.rewrite = request, version, correlation, rewrite
        self.fault: Fault | None = None
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class ConnectionEnds(Exception):
    """The connection ends here; what was answered before has been sent."""


class ProxyConnection:
    """One client's connection to a node of the proxy, with its own connection to the broker."""

    def __init__(self, broker: ProxyBroker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.broker, self.proxy, self.table = broker, broker.proxy, broker.proxy.table
        self._reader, self._writer = reader, writer
        self._queue: asyncio.Queue[Slot] = asyncio.Queue()
        self._upstream: deque[Slot] = deque()

    async def run(self) -> None:
        """Until either side leaves, a fault ends it, or the node is stopped."""
        works: list[asyncio.Task[None]] = []
        writers = [self._writer]
        try:
            from_broker, self._to_broker = await asyncio.open_connection(*self.proxy.upstream)
            writers.append(self._to_broker)
            loop = asyncio.get_running_loop()
            works = [loop.create_task(work) for work in (self._requests(), self._replies(from_broker), self._answers())]
            done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            for work in done:
                if not isinstance(work.exception(), ConnectionEnds | OSError | asyncio.IncompleteReadError):
                    work.result()
            self._writer.close()
        except asyncio.CancelledError:
            self._writer.transport.abort()
        except OSError:
            self._writer.transport.abort()
        finally:
            for writer in writers:
                writer.close()
            for work in works:
                work.cancel()
            await asyncio.gather(*works, *(writer.wait_closed() for writer in writers), return_exceptions=True)

    # ---- in

    async def _requests(self) -> None:
        while True:
            frame = await _frame(self._reader)
            await self.broker.is_running.wait()
            header, request = read_request(frame)
            self.proxy.record_request(self.broker.node, request)
            fault = self.proxy.match_fault(self.broker.node, request)
            if fault is not None and not fault.after:
                if fault.kind is FaultKind.SWALLOW:
                    await self._be_silent()
                if fault.kind is FaultKind.HOLD:
                    await fault.released.wait()
            slot = Slot(request, header.api_version, header.correlation_id, lambda answer: answer)
            slot.fault = fault
            self._take(slot, header.client_id)
            if fault is not None and not fault.after and fault.kind is FaultKind.CLOSE:
                await self._be_silent()  # what came behind it on this connection is not served either

    def _take(self, slot: Slot, client_id: str) -> None:
        fault, request = slot.fault, slot.request
        if fault is not None and not fault.after and fault.kind is FaultKind.CLOSE:
            slot.answer.set_result(None)
            self._queue.put_nowait(slot)
            return
        if (
            fault is not None
            and not fault.after
            and fault.kind is FaultKind.REFUSE
            and not self._is_refused_after(fault, request)
        ):
            slot.answer.set_result(refusal(request, slot.version, fault.code))
            self._queue.put_nowait(slot)
            return
        proxied = self.table.proxied_request(self.broker.node, request, slot.version)
        slot.rewrite = proxied.rewrite_answer
        silent = request.KEY == 0 and request.acks == 0
        if proxied.request is None:
            slot.answer.set_result(None if silent else proxied.rewrite_answer(None))
            self._queue.put_nowait(slot)
            return
        self._forward(proxied.request, slot, client_id)
        if not silent:
            self._upstream.append(slot)
            self._queue.put_nowait(slot)

    @staticmethod
    def _is_refused_after(fault: Fault, request: Any) -> bool:
        """A fetch is done in any case, so that its session goes on; of topics only the broker knows all."""
        return (request.KEY == FETCH and fault.code not in OF_A_SESSION) or request.KEY == METADATA

    def _forward(self, request: Any, slot: Slot, client_id: str) -> None:
        body = codec(type(request), slot.version).encode(request)
        head = request_header(request.KEY, slot.version, slot.correlation, client_id)
        self._to_broker.write((len(head) + len(body)).to_bytes(4, "big") + head + body)

    # ---- out

    async def _replies(self, from_broker: asyncio.StreamReader) -> None:
        while True:
            frame = await _frame(from_broker)
            slot = self._upstream.popleft()
            key = slot.request.KEY
            _, at = read_response_header(frame, key, slot.version)
            version = slot.version if key != 18 or len(frame) < 6 or frame[4:6] != b"\0\x23" else 0
            slot.answer.set_result(slot.rewrite(codec(APIS[key].response, version).decode(frame, at)[0]))

    async def _answers(self) -> None:
        while True:
            slot = await self._queue.get()
            answer = await slot.answer
            fault = slot.fault
            if answer is None or (fault is not None and fault.after and fault.kind is FaultKind.CLOSE):
                raise ConnectionEnds
            if fault is not None and fault.kind is FaultKind.REFUSE:
                answer = self._refused(slot, fault, answer)
            if fault is not None and fault.after:
                if fault.kind is FaultKind.SWALLOW:
                    await self._be_silent()
                if fault.kind is FaultKind.HOLD:
                    await fault.released.wait()
            await self.broker.is_running.wait()
            await self._send(slot, answer)

    def _refused(self, slot: Slot, fault: Fault, answer: Any) -> Any:
        if slot.request.KEY == METADATA:
            return self._topics_refused(answer, fault.code)
        if slot.request.KEY == FETCH and fault.code not in OF_A_SESSION:
            codes = dict.fromkeys(self.table.session(slot.request), fault.code)
            return self.table.spoiled(answer, codes, slot.version)
        return refusal(slot.request, slot.version, fault.code)

    @staticmethod
    def _topics_refused(answer: Any, code: int) -> Any:
        for topic in answer.topics:
            topic.error_code, topic.partitions = code, ()
        return answer

    async def _send(self, slot: Slot, answer: Any) -> None:
        key = slot.request.KEY
        version = 0 if key == 18 and answer.error_code == 35 else slot.version
        frame = response_header(slot.correlation, key, version) + codec(type(answer), version).encode(answer)
        raw = len(frame).to_bytes(4, "big") + frame
        if slot.fault is not None and slot.fault.kind is FaultKind.CUT:
            self._writer.write(raw[: len(raw) // 2])
            raise ConnectionEnds
        self._writer.write(raw)
        await self._writer.drain()

    async def _be_silent(self) -> None:
        """For good: whoever waits has to give up by itself."""
        await asyncio.get_running_loop().create_future()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)


@contextlib.contextmanager
def proxy_in_thread(bootstrap: str, connection: type[ProxyConnection]) -> Iterator[str]:
    """HOST:PORT of a proxy to one broker, with connections of that class, in a thread and a loop of its own."""

    async def serve() -> None:
        async with FaultProxy(bootstrap, 1, connection) as proxy:
            opened.put((proxy.bootstrap, asyncio.get_running_loop(), done := asyncio.Event()))
            await done.wait()

    opened: queue.Queue[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = queue.Queue()
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    address, loop, done = opened.get(timeout=PATIENCE_S)
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(PATIENCE_S)
