"""One broker from start to stop: what comes back after a restart, what a start refuses, and in which words."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from tests.chaos.line import Line
from tests.chaos.requests import batch, commit, committed, create_topic, produce, produced, producer_id, records_of

from rota.coordinator.admin.serve import EXIT_CANNOT_START
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.group_coordinator import group_config
from rota.coordinator.hosted_topic import SEGMENT_BYTES_MIN
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.files import FileSystem
from rota.coordinator.metadata.changes import DEFAULT_NAME, ConfigKind
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.network.listener import CannotListen
from rota.coordinator.runtime.shard import ShardState
from rota.coordinator.scheduling.clock import Clock
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.metadata import MetadataRequest

COMMITS = 2_500
MANY_BYTES = 100_000  # that a socket takes at once
NOTE = "n" * 2_000  # so that segments fill

# What a broker alone, in plain text, without compressed batches, does not need for its first answer.
NOT_FOR_THE_FIRST_ANSWER = (
    *("aiohttp", "argparse", "cramjam", "cryptography", "jwt", "kazoo", "prometheus_client"),
    *("rota.cli", "rota.client", "rota.testing"),
    *(f"rota.coordinator.{name}" for name in ("cluster", "controller", "controller_service", "membership")),
    "rota.coordinator.replication",
)
FIRST_ANSWER = """
import asyncio, struct, sys
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig

async def main():
    async with Broker(BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0"}), memory=True) as broker:
        reader, writer = await asyncio.open_connection(*broker.address)
        writer.write(struct.pack(">ihhih", 10, 18, 0, 1, -1))  # ApiVersions v0
        assert await reader.readexactly(10)
        print(*sys.modules, sep="\\n")
        writer.close()

asyncio.run(main())
"""

Config = Callable[..., BrokerConfig]
Connect = Callable[[Broker], Awaitable[Line]]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    def made(**settings: str) -> BrokerConfig:
        """Names of settings with underscores for dots."""
        basics = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "data")}
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return BrokerConfig(basics | {"offsets.topic.num.partitions": "4", "rota.drain.timeout.ms": "1000"} | named)

    return made


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    lines: list[Line] = []

    async def opened(broker: Broker) -> Line:
        host, port = broker.address
        lines.append(await Line.open(f"{host}:{port}"))
        assert (await lines[-1].send_request(FindCoordinatorRequest(key="g"), 2)).error_code == ErrorCode.NONE
        return lines[-1]

    yield opened
    for line in lines:
        await line.close()


async def metadata(line: Line) -> Any:
    return await line.send_request(MetadataRequest(topics=None), 10)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.002)


# ---- a life


async def test_in_memory_it_serves_and_forgets(config: Config, connect: Connect, tmp_path: Path) -> None:
    for _ in range(2):
        async with Broker(config(), memory=True) as broker:
            line = await connect(broker)
            assert await committed(line, "g", 0) == (-1, "")
            await create_topic(line)
            assert produced(await line.send_request(produce(0, batch(b"a")), 9)) == (ErrorCode.NONE, 0)
            await line.send_request(commit("g", 0, 5), 8)
            assert await committed(line, "g", 0) == (5, "")
    assert list(tmp_path.iterdir()) == []


async def test_on_disk_records_offsets_and_metadata_survive_a_restart(config: Config, connect: Connect) -> None:
    async with Broker(config()) as broker:
        line = await connect(broker)
        topic_id = await create_topic(line)
        await line.send_request(produce(0, batch(b"a", b"b")), 9)
        await line.send_request(commit("g", 0, 5, "note"), 8)
        first, before = await producer_id(line), await metadata(line)
    async with Broker(config()) as broker:
        line = await connect(broker)
        after = await metadata(line)
        assert after.cluster_id == before.cluster_id != ""
        assert after.topics == before.topics
        assert topic_id in {topic.topic_id for topic in after.topics}
        assert list((await records_of(line, 0)).values()) == [b"a", b"b"]
        assert await committed(line, "g", 0) == (5, "note")
        assert await producer_id(line) > first


@pytest.mark.skipif(sys.platform != "linux", reason="records are sent from files on Linux")
async def test_f18_a_megabyte_of_records_is_sent_from_its_file(
    config: Config, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []

    def sendfile(system: FileSystem, socket_fd: int, fd: int, count: int, position: int) -> int:
        sent.append(os.sendfile(socket_fd, fd, position, count))
        return sent[-1]

    monkeypatch.setattr(FileSystem, "sendfile", sendfile)
    async with Broker(config()) as broker:
        line = await connect(broker)
        await create_topic(line)
        values = [bytes([number]) * 100_000 for number in range(12)]
        for number, value in enumerate(values):
            assert produced(await line.send_request(produce(0, batch(value)), 9)) == (ErrorCode.NONE, number)
        assert await records_of(line, 0) == dict(enumerate(values))
    assert max(sent) > MANY_BYTES


async def test_it_stops_while_clients_are_connected(config: Config, connect: Connect) -> None:
    async with Broker(config()) as broker:
        line = await connect(broker)
    assert await line.send(FindCoordinatorRequest(key="g"), 2) is None


def test_the_group_config_follows_the_settings(config: Config) -> None:
    effective = group_config(
        config(group_max_size="7", offsets_retention_minutes="2", group_min_session_timeout_ms="1")
    )
    assert (effective.group_size_max, effective.offsets_retention_ms, effective.session_min_ms) == (7, 120_000, 1)


# ---- the offsets topic


async def test_a_single_broker_keeps_one_offsets_replica_and_logs_it_once(config: Config, connect: Connect) -> None:
    with structlog.testing.capture_logs() as logs:
        async with Broker(config(offsets_topic_replication_factor="3"), memory=True) as broker:
            for _ in range(2):
                await connect(broker)
            topic = broker.topics.get(CONSUMER_OFFSETS)
            assert topic is not None
            assert [state.replicas for state in topic.partitions] == [(broker.config.node_id,)] * 4
    assert [line["configured"] for line in logs if line["event"].startswith("Offsets topic gets fewer")] == [3]


async def test_an_offsets_partition_that_cannot_be_opened_does_not_affect_the_others(
    config: Config, connect: Connect, tmp_path: Path
) -> None:
    async with Broker(config()) as broker:
        line = await connect(broker)
        await create_topic(line)
        await line.send_request(commit("g", 0, 5), 8)
        home = broker.groups.ready("g")
    assert not isinstance(home, ErrorCode)
    folder = tmp_path / "data" / f"{CONSUMER_OFFSETS}-{(home.index + 1) % 4}"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("no folder")
    async with Broker(config()) as broker:
        shard = broker.groups.shards[(home.index + 1) % 4]
        assert shard.state is ShardState.DOWN
        line = await connect(broker)
        assert await committed(line, "g", 0) == (5, "")
        folder.unlink()
        async with asyncio.timeout(20):  # no restart
            while shard.state is not ShardState.READY:
                await asyncio.sleep(0.01)


async def test_commits_survive_compaction_and_a_restart(config: Config, connect: Connect) -> None:
    settings = {"offsets_topic_num_partitions": "1", "offsets_topic_segment_bytes": "1"}  # one that no topic may have
    began_s, is_writing = time.monotonic(), True  # no upkeep while this writes: its rounds wait for the clock
    clock = Clock(monotonic_s=lambda: began_s if is_writing else time.monotonic())
    async with Broker(config(**settings), clock=clock) as broker:
        line = await connect(broker)
        await create_topic(line)
        for begin in range(1, COMMITS, 100):
            offsets = range(begin, begin + 100)
            await asyncio.gather(*(line.send(commit(f"g{at % 10}", at % 3, at, NOTE), 8) for at in offsets))
        offsets = {(f"g{at}", part): await committed(line, f"g{at}", part) for at in range(10) for part in range(3)}
        log = broker.partitions.get(CONSUMER_OFFSETS, 0).log  # type: ignore[union-attr]
        end, before_bytes = log.log_end_offset, log.size_bytes
        assert before_bytes > 4 * SEGMENT_BYTES_MIN
        is_writing = False
        await until(lambda: log.size_bytes < 2 * SEGMENT_BYTES_MIN)
        assert {place: await committed(line, *place) for place in offsets} == offsets
    with structlog.testing.capture_logs() as logs:
        async with Broker(config(**settings)) as broker:
            line = await connect(broker)
            assert {place: await committed(line, *place) for place in offsets} == offsets
            log = broker.partitions.get(CONSUMER_OFFSETS, 0).log  # type: ignore[union-attr]
            assert (log.log_end_offset, len(broker.groups.shards[0].machines)) == (end, 10)
    (loaded,) = [line for line in logs if line["event"] == "Loaded shard"]
    assert loaded["records"] < end // 2, "it reads what compaction left"


# ---- what a start refuses


async def test_a_folder_in_use_is_left_to_its_broker(config: Config, connect: Connect) -> None:
    async with Broker(config()) as broker:
        with pytest.raises(StorageFailed, match="another broker runs on"):
            await Broker(config()).start()
        await connect(broker)


async def test_a_folder_of_another_node_is_refused(config: Config) -> None:
    async with Broker(config()):
        pass
    with pytest.raises(StorageFailed, match="belongs to node"):
        await Broker(config(node_id="77")).start()


async def test_an_address_in_use_is_reported_and_the_folder_is_unlocked(config: Config, tmp_path: Path) -> None:
    """CM5. The folder of a broker that stopped in order stays so."""
    async with Broker(config()):
        pass
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CannotListen, match=address):
            await Broker(config(listeners=f"PLAINTEXT://{address}")).start()
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    async with Broker(config()):
        pass


async def test_a_damaged_journal_is_reported_and_not_changed(config: Config, connect: Connect, tmp_path: Path) -> None:
    async with Broker(config()) as broker:
        line = await connect(broker)
        await create_topic(line)
    journal = tmp_path / "data" / "metadata.journal"
    data = bytearray(journal.read_bytes())
    data[20] ^= 1
    journal.write_bytes(data)
    with pytest.raises(StoreFailed, match="damaged at byte 0"):
        await Broker(config()).start()
    assert journal.read_bytes() == data


# ---- the same on the command line


async def serve(data: Path) -> tuple[int | None, str]:
    """Exit code and stderr of a start that fails."""
    command = ["-m", "rota.coordinator", "serve", "--data", str(data), "--listen", "127.0.0.1:0"]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stderr=asyncio.subprocess.PIPE)
    _, standard_error = await process.communicate()
    return process.returncode, standard_error.decode()


async def test_the_command_line_reports_a_folder_in_use(config: Config, tmp_path: Path) -> None:
    async with Broker(config()):
        code, standard_error = await serve(tmp_path / "data")
    assert code == EXIT_CANNOT_START
    assert standard_error.count("\n") == 1
    assert standard_error.startswith("rota: another broker runs on ")


async def test_the_command_line_reports_a_damaged_journal(config: Config, tmp_path: Path) -> None:
    async with Broker(config()):
        pass
    journal = tmp_path / "data" / "metadata.journal"
    journal.write_bytes(b"\0\0\0\1" + journal.read_bytes()[4:] * 2)
    code, standard_error = await serve(tmp_path / "data")
    assert code == EXIT_CANNOT_START
    assert standard_error.count("\n") == 1
    assert "metadata.journal is damaged at byte" in standard_error


@pytest.mark.parametrize("connect", ["zookeeper://127.0.0.1:2181", "127.0.0.1:99999", "127.0.0.1:2181/a//b"])
async def test_a_malformed_zookeeper_connect_is_a_refused_setting(connect: str) -> None:
    pytest.importorskip("kazoo")
    broker = Broker(BrokerConfig({"zookeeper.connect": connect}), memory=True)
    with pytest.raises(ConfigRefused, match=r"zookeeper\.connect"):
        await broker.start()


@pytest.mark.parametrize("timeout", ["zookeeper.session.timeout.ms", "zookeeper.connection.timeout.ms"])
async def test_a_zookeeper_that_does_not_answer_is_an_error_with_advice(timeout: str) -> None:
    pytest.importorskip("kazoo")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connect = f"127.0.0.1:{silent.getsockname()[1]}"
        properties = {"zookeeper.connect": connect, timeout: "500"}
        with pytest.raises(StoreFailed, match=rf"{connect} for 500 ms: .* is zookeeper\.connect right\?"):
            await Broker(BrokerConfig(properties), memory=True).start()


async def test_dynamic_configs_outlive_a_restart(config: Config) -> None:
    async with Broker(config()) as broker:
        await broker.topics.configs.update(ConfigKind.BROKERS, DEFAULT_NAME, lambda _: {"message.max.bytes": "5000"})
        assert broker.config.message_max_bytes == 5000
    async with Broker(given := config(message_max_bytes="4000")) as broker:
        assert broker.config.message_max_bytes == broker.groups.config.record_bytes_max == 5000
        await broker.topics.configs.update(ConfigKind.BROKERS, DEFAULT_NAME, lambda _: {})
        assert broker.config.message_max_bytes == broker.groups.config.record_bytes_max == 4000
    assert given.message_max_bytes == 4000


async def test_an_existing_group_follows_changed_settings(config: Config, connect: Connect) -> None:
    async with Broker(config(), memory=True) as broker:
        line = await connect(broker)
        await create_topic(line, "t", 1)
        await line.send_request(commit("g", 0, 1), 8)
        (group,) = (each for shard in broker.groups.shards for each in shard.machines.values())
        await broker.topics.configs.update(ConfigKind.BROKERS, DEFAULT_NAME, lambda _: {"message.max.bytes": "5000"})
        assert group.config.record_bytes_max == 5000


def test_the_first_answer_imports_no_optional_part() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_ANSWER], capture_output=True, text=True, check=True, timeout=60)
    modules = done.stdout.splitlines()
    assert "rota.coordinator.api.api_versions" in modules
    assert [name for name in NOT_FOR_THE_FIRST_ANSWER if name in modules] == []
