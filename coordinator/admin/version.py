"""`rota version`: the release, and which of the optional fast parts this installation has."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from rota.protocol.records import COMPILED


def version_line() -> str:
    """For example `rota 0.1.0 (compiled codecs, Python 3.12.3, uvloop 0.22.1)`."""
    codecs = "compiled codecs" if COMPILED else "interpreted codecs"
    try:
        loop = f"uvloop {version('uvloop')}"
    except PackageNotFoundError:
        loop = "asyncio's event loop"
    return f"rota {version('rota')} ({codecs}, Python {platform.python_version()}, {loop})"
