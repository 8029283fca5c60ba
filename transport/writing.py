"""Bytes in parts to a transport.

Law
    N12 The transport notices a peer that does not read: asyncio's `writelines` in Python 3.12.0 to 3.12.8 and 3.13.0 to
        3.13.1 calls no `pause_writing` (CVE-2024-12254), so that the parts are joined there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Final

NO_PAUSES: Final = ((3, 12), (3, 12, 9)), ((3, 13), (3, 13, 2))
JOINS: Final = any(since <= sys.version_info < until for since, until in NO_PAUSES)


def write_parts(transport: asyncio.WriteTransport, parts: Sequence[bytes | bytearray | memoryview]) -> None:
    """Write them in this order."""
    if JOINS:
        transport.write(b"".join(parts))
    else:
        transport.writelines(parts)
