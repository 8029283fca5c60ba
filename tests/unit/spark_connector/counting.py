"""A proxy that counts what passes it on the way to a broker: connections, and requests by name."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.client.fault_proxy import ProxyConnection, proxy_in_thread


@contextlib.contextmanager
def counting(bootstrap: str) -> Iterator[tuple[str, Counter[str]]]:
    """The address of the proxy and the counts; ApiVersionsRequest is one for each connection."""
    counts: Counter[str] = Counter()

    class Counted(ProxyConnection):
        async def _send(self, slot: Any, answer: Any) -> None:
            counts[type(answer).__name__.removesuffix("Response")] += 1
            await super()._send(slot, answer)

    with proxy_in_thread(bootstrap, Counted) as address:
        yield address, counts
