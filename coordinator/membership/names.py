"""Names of brokers to addresses, each in a thread of its own.

A server of names that is silent takes ten seconds or more, and no such call can be cancelled. The threads that an event
loop has for names are few (uvloop: four), and connections need them, too.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future


async def resolve(host: str, port: int, family: int) -> str:
    """Return the first address of that family. Raises OSError, and UnicodeError for what can be no name.

    Who is cancelled waits no more; the thread ends when the call does, or with the process.
    """
    found: Future[str] = Future()
    threading.Thread(target=_run, args=(found, host, port, family), daemon=True, name="rota-names").start()
    return await asyncio.wrap_future(found)


def _run(found: Future[str], host: str, port: int, family: int) -> None:
    if not found.set_running_or_notify_cancel():
        return
    try:
        addresses = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM)
        found.set_result(str(addresses[0][4][0]))
    except BaseException as error:  # noqa: BLE001  # who waits gets it
        found.set_exception(error)
