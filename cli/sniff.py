"""`rota sniff`: a proxy that prints what clients and brokers say to each other.

Clients connect to --listen. In the responses each broker has the address of a local port of its own, so that clients
stay on the proxy.

Laws
    Requests reach the broker unchanged; of responses only addresses are changed (sniff_messages).
    The end of one side of a connection is the end of the other side.
"""

from __future__ import annotations

import asyncio
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from rota.cli import sniff_messages
from rota.cli.arguments import add_client_options, iso_time, whole
from rota.cli.session import Session, client_command
from rota.cli.settings import UsageError, config_of
from rota.cli.sniff_messages import Filter, Message
from rota.cli.text import escaped
from rota.client.types import address_text
from rota.protocol.registry import APIS
from rota.protocol.wire import DecodeError
from rota.transport.frames import LENGTH_BYTES, Frames, InvalidFrame

READ_BYTES: Final = 1 << 18
PENDING_MAX: Final = 10_000  # requests of a connection that wait for their response
Address = tuple[str, int]


class PendingRequest(NamedTuple):
    """A request that waits for its response, and when it was sent (seconds of the loop)."""

    request: Message
    at_s: float


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Listen on a port, pass everything on to a broker, and print requests and responses, decoded. Clients that "
        "connect to this port stay on the proxy: each broker of the cluster gets a local port. Not for TLS."
    )
    add = parser.add_argument
    add(
        "--listen", type=_address, default=("127.0.0.1", 0), metavar="HOST:PORT", help="unset: 127.0.0.1, any free port"
    )
    add("--api", action="append", type=_api, default=[], metavar="NAME", help="only this API: JoinGroup, Fetch, …")
    add("--client", action="append", default=[], metavar="CLIENT_ID", help="only this client id")
    add("--group", action="append", default=[], metavar="GROUP", help="only requests that name this group")
    add("--errors", action="store_true", help="only responses with an error code")
    add("--no-bodies", action="store_true", help="no contents of messages")
    add("--full", action="store_true", help="long contents in full; --json always has them")
    add("--max", type=whole(1), metavar="N", help="end after N printed messages")
    add_client_options(parser)
    parser.set_defaults(run=client_command(sniff))


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 0xFFFF:
        raise ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _api(text: str) -> str:
    names = {api.name.lower(): api.name for api in APIS.values()}
    if text.lower() not in names:
        from difflib import get_close_matches

        near = get_close_matches(text.lower(), names, n=1)
        advice = f"; did you mean {names[near[0]]}?" if near else ""
        raise ArgumentTypeError(f"there is no API {text!r}{advice}")
    return text.lower()


async def sniff(session: Session) -> None:
    from rota.client import AdminConfig

    config = config_of(AdminConfig, session.settings())
    await session.require_listener(config)
    proxy = Proxy(session)
    try:
        await proxy.listen(config.bootstrap[0], *session.options.listen)
    except OSError as failure:
        at = address_text(*session.options.listen)
        raise UsageError(f"cannot listen on {at}: {failure.strerror}; name another --listen") from failure
    try:
        await proxy.ended.wait()
        if proxy.failure is not None:
            raise proxy.failure
    finally:
        proxy.close()


class Proxy:
    """The local ports, one for each broker, and what passes through them."""

    def __init__(self, session: Session) -> None:
        options = session.options
        self.ended = asyncio.Event()
        self.failure: OSError | None = None
        self._out, self._options = session.out, options
        self._filter = Filter(frozenset(options.api), frozenset(options.client), frozenset(options.group))
        self._servers: dict[Address, asyncio.Server] = {}
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = self._printed = 0

    async def listen(self, broker: Address, host: str, port: int = 0) -> int:
        """Open the local port of a broker, unless it is open; returns it. Raises OSError."""
        async with self._opening:
            if broker not in self._servers:

                async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                    await self._serve(broker, reader, writer)

                self._servers[broker] = await asyncio.start_server(accept, host, port)
                bound = self._servers[broker].sockets[0].getsockname()[1]
                found = {"event": "listening", "listen": f"{host}:{bound}", "broker": f"{broker[0]}:{broker[1]}"}
                self._write(found, f"listening on {found['listen']} for {found['broker']}")
            return int(self._servers[broker].sockets[0].getsockname()[1])

    def close(self) -> None:
        """Close all ports and connections."""
        for server in self._servers.values():
            server.close()
        for task in self._tasks:
            task.cancel()

    async def _serve(self, broker: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on both directions of one connection until one of them ends."""
        self._connections += 1
        number = self._connections
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            broker_reader, broker_writer = await asyncio.open_connection(*broker)
        except OSError as failure:
            self._note(number, f"no connection to {broker[0]}:{broker[1]}: {failure.strerror}")
            writer.close()
            return
        finally:
            self._tasks.discard(task)
        sent: deque[PendingRequest] = deque()
        local_host = writer.get_extra_info("sockname")[0]
        directions = [
            asyncio.create_task(self._requests(number, reader, broker_writer, sent)),
            asyncio.create_task(self._responses(number, broker_reader, writer, sent, local_host)),
        ]
        self._tasks.update(directions)
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
                self._tasks.discard(direction)
            for each in (writer, broker_writer):
                with suppress(OSError):
                    each.close()

    async def _requests(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: deque[PendingRequest]
    ) -> None:
        frames = Frames()
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                try:
                    for frame in frames.feed(data):
                        message = sniff_messages.read_request(frame)
                        if sniff_messages.has_response(message):
                            sent.append(PendingRequest(message, asyncio.get_running_loop().time()))
                        self._print(number, message)
                except (InvalidFrame, DecodeError) as failure:
                    self._note(number, f"the client sent no request of Kafka's protocol: {failure}")
                    return
                if len(sent) > PENDING_MAX:
                    self._note(number, f"the client has more than {PENDING_MAX} requests without a response")
                    return
                writer.write(data)
                await writer.drain()

    async def _responses(
        self,
        number: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        sent: deque[PendingRequest],
        host: str,
    ) -> None:
        frames = Frames()
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                try:
                    for frame in frames.feed(data):
                        passed = await self._response(number, frame, sent, host)
                        writer.write(len(passed).to_bytes(LENGTH_BYTES, "big") + passed)
                except (InvalidFrame, DecodeError) as failure:
                    self._note(number, f"the broker sent no response of Kafka's protocol: {failure}")
                    return
                await writer.drain()

    async def _response(self, number: int, frame: bytes, sent: deque[PendingRequest], host: str) -> bytes:
        """Print a response; return it as the client gets it."""
        if not sent:
            raise DecodeError("a response without a request")
        request, at_s = sent.popleft()
        duration_ms = round((asyncio.get_running_loop().time() - at_s) * 1000, 3)
        message = sniff_messages.read_response(request, frame, duration_ms)
        self._print(number, message)
        if message.header.api_key in sniff_messages.WITH_ADDRESSES:
            named = sorted(sniff_messages.addresses(message.body))
            ports = {address: await self.listen(address, host) for address in named}
            return sniff_messages.rewritten(message, frame, lambda *address: (host, ports[address]))
        return sniff_messages.rewritten(message, frame, lambda *address: address)

    def _print(self, number: int, message: Message) -> None:
        options = self._options
        if self.ended.is_set() or not self._filter.matches(message):
            return
        if options.errors and not message.error_names:
            return
        now = iso_time(int(time.time() * 1000)) or ""
        found = sniff_messages.document(message, number, now, with_body=not options.no_bodies)
        self._write(found, "" if self._out.as_json else sniff_messages.line(found, full=options.full))
        self._printed += 1
        if self._printed == options.max:
            self.ended.set()

    def _note(self, number: int, text: str) -> None:
        self._write({"event": "note", "connection": number, "text": text}, f"#{number}: {text}")

    def _write(self, found: Mapping[str, object], line: str) -> None:
        """Print; when that is not possible, as the reader of the output has gone, end."""
        try:
            self._out.event(found, escaped(line))
        except OSError as failure:
            self.failure = failure
            self.ended.set()
