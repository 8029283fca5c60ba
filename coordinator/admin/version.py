"""`rota version`: the release, and which of the optional fast parts this installation has."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from rota.protocol.records import COMPILED


def version_document() -> dict[str, str | bool | None]:
    """Return the parts of the line as JSON; `uvloop` is None where the broker runs on asyncio's event loop."""
    try:
        uvloop = version("uvloop")
    except PackageNotFoundError:
        uvloop = None
    return {
        "version": version("rota"),
        "compiled_codecs": COMPILED,
        "python": platform.python_version(),
        "uvloop": uvloop,
    }


def version_line() -> str:
    """For example `rota 0.1.0 (compiled codecs, Python 3.12.3, uvloop 0.22.1)`."""
    parts = version_document()
    codecs = "compiled codecs" if parts["compiled_codecs"] else "interpreted codecs"
    loop = "asyncio's event loop" if parts["uvloop"] is None else f"uvloop {parts['uvloop']}"
    return f"rota {parts['version']} ({codecs}, Python {parts['python']}, {loop})"
