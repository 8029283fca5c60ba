"""Finds out why a listener closes a connection without a response: a second connection tests whether it uses TLS.

Nothing is sent but an ApiVersions request, which every listener answers before any authentication, or the first message
of a TLS handshake. Most listeners need no such test: they refuse with an alert of TLS.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from typing import Final

PROBE_SECONDS: Final = 2.0
_CORRELATION: Final = 1
_REQUEST: Final = struct.pack(">ihhih", 10, 18, 0, _CORRELATION, -1)  # ApiVersions 0 without a client id
_HEAD: Final = struct.Struct(">ii")


async def is_plaintext_server(address: str, port: int) -> bool:
    """Return whether a Kafka broker answers there without TLS, within PROBE_SECONDS."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                writer.write(_REQUEST)
                _, correlation = _HEAD.unpack(await reader.readexactly(_HEAD.size))
            finally:
                writer.transport.abort()
    except (OSError, EOFError):
        return False
    return bool(correlation == _CORRELATION)


async def is_tls_server(address: str, port: int) -> bool:
    """Return whether a TLS handshake succeeds there, or is refused with an alert, within PROBE_SECONDS. No certificate
    is verified, since nothing is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(address, port, ssl=context)
    except ssl.SSLError as refusal:
        return "_ALERT_" in (refusal.reason or "")
    except (OSError, EOFError):
        return False
    writer.transport.abort()
    return True
