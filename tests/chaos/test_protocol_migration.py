"""kill -9 of the coordinator while a group changes its type, under live members of both protocols. CG16, CG17, G5."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.chaos.daemon import Daemon
from tests.interop.clients import CLIENTS
from tests.interop.kit import create_topic, produce, until
from tests.interop.members import Settings
from tests.interop.test_consumer_protocol import member
from tests.interop.test_protocol_migration import until_shared

PARTITIONS = 6
SETTINGS = {  # what a member says in the moment of a crash is lost, also that it leaves: sessions end soon
    "group_consumer_min_heartbeat_interval_ms": "100",
    "group_consumer_heartbeat_interval_ms": "100",
    "group_consumer_min_session_timeout_ms": "1000",
    "group_consumer_session_timeout_ms": "5000",
}


async def killed(daemon: Daemon) -> None:
    daemon.kill()
    await daemon.start()


async def test_a_group_goes_on_in_either_type_when_its_coordinator_is_killed(tmp_path: Path) -> None:
    """It is killed right after the upgrade, with all members settled, and right after the downgrade."""
    async with Daemon(tmp_path / "data", **SETTINGS) as daemon:
        daemon.port = int(daemon.address.rpartition(":")[2])
        topic = await asyncio.to_thread(create_topic, daemon.address, PARTITIONS)
        of = Settings(group="g", topics=[topic], auto_commit=True)
        with CLIENTS["confluent-kafka"](daemon.address, of) as first, CLIENTS["aiokafka"](daemon.address, of) as second:
            classic = [first, second]
            await asyncio.to_thread(until_shared, classic, [], (3, 3))
            with member(daemon.address, "g") as consumer:
                consumer.subscribe([topic])
                await asyncio.to_thread(until, lambda: consumer.poll(0.05) or consumer.memberid(), "a member id")
                await killed(daemon)
                await asyncio.to_thread(until_shared, classic, [consumer], (2, 2, 2))
                await killed(daemon)
                await asyncio.to_thread(until_shared, classic, [consumer], (2, 2, 2))
            await killed(daemon)
            await asyncio.to_thread(until_shared, classic, [], (3, 3))
            await asyncio.to_thread(produce, daemon.address, topic, [b"%d" % number for number in range(60)])
            expected = {b"%d" % number for number in range(60)}
            await asyncio.to_thread(until, lambda: {*first.values, *second.values} == expected, "all records")
