"""Why a listener hangs up without a word: a second connection asks it in plain text what it is.

Nothing but an ApiVersions request is sent, which every listener answers before any authentication.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Final

PROBE_SECONDS: Final = 2.0
_CORRELATION: Final = 1
_REQUEST: Final = struct.pack(">ihhih", 10, 18, 0, _CORRELATION, -1)  # ApiVersions 0 without a client id
_HEAD: Final = struct.Struct(">ii")


async def answers_in_plain_text(address: str, port: int) -> bool:
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
