"""Faults at the handlers of a broker: what is checked before, and that order is kept."""

from __future__ import annotations

import asyncio
import re
import struct

import pytest

from rota.testing.commands import Commands
from rota.testing.errors import CommandRefused
from rota.testing.host import Host
from rota.testing.reply_faults import check_rule
from rota.testing.reply_rules import Action, ReplyRule

API_VERSIONS = struct.pack(">hhih", 18, 0, 0, -1)


def request(correlation_id: int) -> bytes:
    frame = API_VERSIONS[:4] + struct.pack(">i", correlation_id) + API_VERSIONS[8:]
    return struct.pack(">i", len(frame)) + frame


async def correlation_ids(reader: asyncio.StreamReader, count: int) -> list[int]:
    ids = []
    for _ in range(count):
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        frame = await reader.readexactly(size)
        ids.append(struct.unpack(">i", frame[:4])[0])
    return ids


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"action": "delay", "delay_ms": 10}, [1, 2, 3]),
        ({"action": "duplicate"}, [1, 1, 2, 3]),
        ({"action": "delay", "delay_ms": 10, "times": 2, "skip": 1}, [1, 2, 3]),
    ],
)
async def test_replies_keep_the_order_of_their_requests(fault: dict[str, object], expected: list[int]) -> None:
    host = Host()
    await host.start()
    try:
        await Commands(host).perform("add_fault", fault)
        address, port = host.bootstrap.split(":")
        reader, writer = await asyncio.open_connection(address, int(port))
        writer.write(b"".join(map(request, (1, 2, 3))))
        assert sorted(await correlation_ids(reader, len(expected))) == expected
        writer.close()
    finally:
        await host.stop()


@pytest.mark.parametrize("action", ["drop", "close"])
async def test_a_lost_reply_ends_the_connection(action: str) -> None:
    host = Host()
    await host.start()
    try:
        await Commands(host).perform("add_fault", {"action": action, "api": "ApiVersions"})
        address, port = host.bootstrap.split(":")
        reader, writer = await asyncio.open_connection(address, int(port))
        writer.write(request(1))
        assert await reader.read() == b""
        writer.close()
    finally:
        await host.stop()


def test_rules_are_checked_before_they_meet_a_client() -> None:
    check_rule(ReplyRule(action=Action.ERROR, api="Heartbeat", error="NOT_COORDINATOR"))
    with pytest.raises(ValueError, match="no error 'NOT_AN_ERROR'"):
        check_rule(ReplyRule(action=Action.ERROR, api="Heartbeat", error="NOT_AN_ERROR"))
    with pytest.raises(ValueError, match=re.escape("no error replies for Fetc*")):
        check_rule(ReplyRule(action=Action.ERROR, api="Fetc*", error="NOT_COORDINATOR"))


@pytest.mark.parametrize(
    "fields",
    [{"api": 5}, {"client_id": None}, {"times": "x"}, {"skip": None}, {"probability": "1"}, {"delay_ms": "x"}],
)
async def test_a_fault_with_a_field_of_another_type_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(CommandRefused, match=f"{next(iter(fields))} cannot be"):
        await Commands(Host()).perform("add_fault", {"action": "delay", **fields})


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"times": 0}, "times is 0"),
        ({"times": -1}, "times is -1"),
        ({"times": True}, "times cannot be True"),
        ({"skip": -1}, "skip is -1"),
        ({"probability": 1.5}, "probability is 1.5"),
        ({"probability": float("nan")}, "probability is nan"),
        ({"delay_ms": -1}, "delay_ms is -1"),
        ({"delay_ms": float("inf")}, "delay_ms is inf"),
        ({"api": "OffsetComit"}, "no API of the broker matches 'OffsetComit'; there are OffsetCommit"),
        ({"api": "Nothing*"}, "there are Produce, Fetch, ListOffsets"),
    ],
)
async def test_a_fault_that_could_never_happen_is_refused(fields: dict[str, object], why: str) -> None:
    """A test would pass whatever the application does."""
    with pytest.raises(CommandRefused, match=re.escape(why)):
        await Commands(Host()).perform("add_fault", {"action": "delay", **fields})
