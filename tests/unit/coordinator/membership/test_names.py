from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from rota.coordinator.membership.names import resolve


async def test_a_name_is_its_first_address_of_the_family() -> None:
    assert await resolve("localhost", 9, socket.AF_INET) == "127.0.0.1"
    with pytest.raises(socket.gaierror):
        await resolve("::1", 9, socket.AF_INET)
    with pytest.raises(UnicodeError):
        await resolve("a..b", 9, socket.AF_INET)


def test_who_is_cancelled_waits_for_no_thread_and_no_thread_for_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, answer, errors = threading.Event(), threading.Event(), list[Any]()
    monkeypatch.setattr(threading, "excepthook", errors.append)

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        begun.set()
        answer.wait(30)
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", 9))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def cancelled() -> None:
        resolving = asyncio.create_task(resolve("hangs", 9, socket.AF_INET))
        await asyncio.to_thread(begun.wait, 30)
        resolving.cancel()
        await asyncio.wait([resolving])
        assert resolving.cancelled()

    asyncio.run(cancelled())
    (thread,) = [each for each in threading.enumerate() if each.name == "rota-names"]
    assert thread.daemon, "a process that ends does not wait for it"
    answer.set()
    thread.join()
    assert errors == []
