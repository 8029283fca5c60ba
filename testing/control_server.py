"""The control port of a test server: commands as JSON over HTTP, on the loopback interface only.

POST /             {"command": "advance", "ms": 60000}
200                {"result": null}
400                {"error": "why"}

Law
    KT7 A page in a browser on this machine commands nothing: a request needs the Host of the loopback interface, and
        has no Origin.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from typing import Any, Final

from rota.testing.commands import Commands
from rota.testing.errors import CommandRefused

LOOPBACK: Final = "127.0.0.1"
LOOPBACK_NAMES: Final = (b"127.0.0.1", b"localhost", b"[::1]")
HEAD_BYTES_MAX: Final = 16 * 1024
BODY_BYTES_MAX: Final = 1 << 20


class ControlServer:
    """Serves the commands of one host."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> str:
        """Listen on a free port; return the URL."""
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0, limit=HEAD_BYTES_MAX)
        return f"http://{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}/"

    async def stop(self) -> None:
        """Accept no more and close the connections."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._open):
                writer.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
                while not writer.is_closing():
                    head = await reader.readuntil(b"\r\n\r\n")
                    status, body = await self._answer(head, reader)
                    writer.write(_response(status, body))
                    await writer.drain()
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(self, head: bytes, reader: asyncio.StreamReader) -> tuple[str, Any]:
        size = _content_length(head)
        if not head.startswith(b"POST ") or not 0 <= size <= BODY_BYTES_MAX:
            return "400 Bad Request", {"error": 'POST {"command": NAME, ...} with its Content-Length'}
        body = await reader.readexactly(size)
        if not _is_of_a_program(head):
            return "403 Forbidden", {"error": "the control port serves programs with its own Host, and no browser"}
        try:
            arguments = json.loads(body)
            command = arguments.pop("command")
            return "200 OK", {"result": await self._commands.perform(command, arguments)}
        except CommandRefused as why:
            return "400 Bad Request", {"error": str(why)}
        except (ValueError, KeyError, AttributeError, TypeError):
            return "400 Bad Request", {"error": 'the body is no JSON object with a "command"'}
        except Exception as why:  # noqa: BLE001  # the reply to the test that sent the command has the error
            return "500 Internal Server Error", {"error": repr(why)}


def _header(head: bytes, wanted: bytes) -> bytes | None:
    """Return the value of a header; None when the request has none of that name."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == wanted:
            return value.strip()
    return None


def _is_of_a_program(head: bytes) -> bool:
    """KT7: a browser sends an Origin with a POST; a name that an attacker lets point here is another Host."""
    host = _header(head, b"host") or b""
    name = host.rpartition(b":")[0] if re.search(rb":[0-9]*$", host) else host
    return name.lower() in LOOPBACK_NAMES and _header(head, b"origin") is None


def _content_length(head: bytes) -> int:
    """Return the length that a request announces; -1 for none or an invalid one."""
    value = _header(head, b"content-length") or b""
    return int(value) if value.isdigit() else -1


def _response(status: str, body: Any) -> bytes:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content
