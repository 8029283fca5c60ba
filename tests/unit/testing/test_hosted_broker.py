"""One broker that is started, stopped, killed and started again."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from rota.testing.host import PROPERTIES
from rota.testing.hosted_broker import HostedBroker, NotRunning
from rota.testing.reply_rules import ReplyRules


def hosted_broker(data: Path | None = None) -> HostedBroker:
    properties = {**PROPERTIES, **({} if data is None else {"log.dirs": str(data)})}
    return HostedBroker(properties, rules=ReplyRules(), data=data)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("kill", [False, True])
async def test_topics_and_address_survive_a_stop_and_a_kill(tmp_path: Path, on_disk: bool, kill: bool) -> None:
    hosted = hosted_broker(tmp_path if on_disk else None)
    await hosted.start()
    address = hosted.address
    await hosted.broker.topics.create("t", 2, 1)
    await (hosted.kill() if kill else hosted.stop())
    assert not hosted.is_running
    await hosted.start()
    assert hosted.address == address
    assert hosted.broker.topics.partition("t", 1) is not None
    await hosted.stop()
    hosted.discard()


async def test_a_killed_broker_closes_its_connections_and_listens_no_more() -> None:
    hosted = hosted_broker()
    await hosted.start()
    host, port = hosted.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    await hosted.kill()
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))
    with pytest.raises(NotRunning):
        _ = hosted.broker
    hosted.discard()


async def test_kt10_the_port_of_a_killed_broker_is_nobody_elses() -> None:
    hosted = hosted_broker()
    await hosted.start()
    host, port = hosted.address.split(":")
    await hosted.kill()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((host, int(port)))
    await hosted.start()
    await hosted.stop()
    hosted.discard()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # old connections are in TIME_WAIT
        other.bind((host, int(port)))


async def test_elapsed_time_stops_while_the_broker_is_frozen() -> None:
    hosted = hosted_broker()
    await hosted.start()
    hosted.freeze()
    before = hosted.broker.now_ms()
    await asyncio.sleep(0.005)
    assert hosted.broker.now_ms() == before
    hosted.thaw()
    assert hosted.broker.now_ms() < before + 5
    hosted.freeze()
    await hosted.stop()
    hosted.discard()
