"""A broker whose metadata journal is on a slow or failing disk: requests go on, and nothing is forgotten in silence."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import os
import socket
import stat
import threading
from pathlib import Path

import pytest
from tests.chaos.line import Line
from tests.unit.coordinator.network.test_open_files import open_files

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.files import FileSystem
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import Store, StoreFailed
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.metadata.tree_session import TreeSession
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.metadata import MetadataRequest


def broker_on(path: Path) -> Broker:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(path), "offsets.topic.num.partitions": "2"}
    return Broker(BrokerConfig(settings))


def create(*names: str) -> CreateTopicsRequest:
    topics = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    return CreateTopicsRequest(topics=topics, timeout_ms=10_000)


async def topic_names(line: Line) -> set[str]:
    answer = await line.send_request(MetadataRequest(topics=None), 10)
    return {topic.name for topic in answer.topics}


async def test_a11_a_broker_on_a_file_system_that_ignores_case_refuses_names_that_differ_only_in_it(
    tmp_path: Path,
) -> None:
    (tmp_path / ".LOCK").touch()  # as `.lock` is found there
    async with broker_on(tmp_path) as broker:
        line = await Line.open("{}:{}".format(*broker.address))
        answers = [await line.send_request(create(name), 7) for name in ("Orders", "orders", "other")]
        codes = [answer.topics[0].error_code for answer in answers]
        assert codes == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE]
        await line.close()


async def test_n13_connections_leave_an_open_file_for_each_log(tmp_path: Path) -> None:
    with open_files(2_000):
        broker = broker_on(tmp_path)
        await broker.start()
    connections = broker.listener.connections
    before = connections._files_max
    line = await Line.open("{}:{}".format(*broker.address))
    await line.send_request(create("a", "b", "c"), 7)
    assert connections._files_max == before - 3
    await line.close()
    await broker.stop()


@pytest.mark.parametrize(
    ("code", "starts"), [(errno.EINVAL, True), (errno.ENOTSUP, True), (errno.ENOSYS, True), (errno.EIO, False)]
)
async def test_a12_a_file_system_that_syncs_no_folders_is_one_for_a_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, *, starts: bool
) -> None:
    fsync = os.fsync

    def sync_files_only(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(file)

    monkeypatch.setattr(os, "fsync", sync_files_only)
    broker = broker_on(tmp_path)
    if not starts:
        with pytest.raises((StorageFailed, StoreFailed)):
            await broker.start()
        return
    async with broker:
        line = await Line.open("{}:{}".format(*broker.address))
        assert (await line.send_request(create("t"), 7)).topics[0].error_code == ErrorCode.NONE
        await line.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EIO])
def test_a12_a_file_that_cannot_be_synced_is_an_error_whatever_the_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fails(_: int) -> None:
        raise OSError(code, os.strerror(code))

    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match=os.strerror(code)):
        FileSystem().sync_path(tmp_path / "file")


async def test_a_slow_journal_holds_up_topics_and_no_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_free, syncs, fdatasync = threading.Event(), list[int](), os.fdatasync

    def slow(file: int) -> None:
        syncs.append(file)
        assert is_free.wait(20)
        fdatasync(file)

    async with broker_on(tmp_path / "data") as broker:
        host, port = broker.address
        admin, member = await Line.open(f"{host}:{port}"), await Line.open(f"{host}:{port}")
        await member.send_request(FindCoordinatorRequest(key="g"), 2)
        monkeypatch.setattr(os, "fdatasync", slow)
        creating = [admin.send(create("t"), 7)]
        while not syncs:
            await asyncio.sleep(0)
        others = [await Line.open(f"{host}:{port}") for _ in range(3)]
        creating += [line.send(create(f"t{number}", f"u{number}"), 7) for number, line in enumerate(others)]
        for _ in range(20):
            heartbeat = await member.send_request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)
            assert heartbeat.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert await topic_names(member) == {"__consumer_offsets"}
        assert not any(task.done() for task in creating)
        is_free.set()
        for answer in await asyncio.gather(*creating):
            assert {topic.error_code for topic in answer.topics} == {ErrorCode.NONE}
        assert len(syncs) <= 3  # seven topics: one for the first, one for all that came meanwhile, perhaps in two turns
        assert len(await topic_names(member)) == 8
        for line in (admin, member, *others):
            await line.close()


async def test_after_a_failed_fsync_changes_are_refused_and_the_stop_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    broker = broker_on(tmp_path / "data")
    host, port = await broker.start()
    line = await Line.open(f"{host}:{port}")
    await line.send_request(create("kept"), 7)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fails)
        answer = await line.send_request(create("lost"), 7)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    answer = await line.send_request(create("later"), 7)
    assert "out of use until the broker has read it again" in answer.topics[0].error_message
    await line.close()
    with pytest.raises(StoreFailed, match="out of use"):
        await broker.stop()
    async with broker_on(tmp_path / "data") as again:
        assert not again.storage.was_clean
        assert again.topics.names() == ["kept"]
        host, port = again.address
        line = await Line.open(f"{host}:{port}")
        assert (await line.send_request(create("later"), 7)).topics[0].error_code == ErrorCode.NONE
        await line.close()


async def test_concurrent_requests_create_the_offsets_topic_once(tmp_path: Path) -> None:
    async with broker_on(tmp_path / "data") as broker:
        host, port = broker.address
        lines = [await Line.open(f"{host}:{port}") for _ in range(5)]
        answers = await asyncio.gather(*(line.send_request(FindCoordinatorRequest(key="g"), 2) for line in lines))
        assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 5
        for line in lines:
            await line.close()


async def test_a_topic_with_a_config_of_another_release_is_led_and_followed() -> None:
    """BC4, IM1. The image does not stop at it, and the controller goes on."""
    tree = SharedTree()

    async def open_store() -> Store:
        return TreeSession(tree)

    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "min.insync.replicas": "1"}
    async with Broker(BrokerConfig(settings), memory=True, open_store=open_store) as broker:
        other = TreeSession(tree)
        topic = await broker.topics.create("t")
        assert isinstance(topic, Topic)
        configs = {"of.a.later.release": "1", "retention.ms": "5000"}
        await other.set(znodes.config_path("t"), znodes.config_node(configs))
        leaderless = dataclasses.replace(topic.partitions[0], leader=-1, leader_epoch=7)
        await other.set(znodes.state_path("t", 0), znodes.state_node(leaderless))
        async with asyncio.timeout(10):
            while broker.topics.get("t").partitions[0].leader_epoch < 8:  # type: ignore[union-attr]
                await asyncio.sleep(0)
        partition = broker.partitions.get("t", 0)
        assert partition is not None
        assert partition.is_leader
        assert partition.log.config.retention_ms == 5_000


async def test_a_broker_of_a_cluster_on_every_interface_has_one_address_in_all_answers() -> None:
    """EP1."""

    async def open_store() -> Store:
        return TreeSession(SharedTree())

    settings = {
        "listeners": "OUTSIDE://0.0.0.0:0,PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "rota.allow.plaintext.beyond.loopback": "true",
    }
    async with Broker(BrokerConfig(settings), memory=True, open_store=open_store) as broker:
        port = broker.address[1]
        line = await Line.open(f"127.0.0.1:{port}")
        (described,) = (await line.send_request(MetadataRequest(topics=()), 9)).brokers
        resource = DescribeConfigsResource(
            resource_type=4, resource_name=str(described.node_id), configuration_keys=("advertised.listeners",)
        )
        (result,) = (await line.send_request(DescribeConfigsRequest(resources=(resource,)), 4)).results
        assert (described.host, described.port) == (socket.gethostname(), port)
        assert result.configs[0].value == f"OUTSIDE://{described.host}:{port}"
        await line.close()


async def test_a_change_of_another_broker_opens_no_log_of_a_broker_that_has_closed_its_logs(tmp_path: Path) -> None:
    """IM3. The broker waits for the end of its session then."""
    tree = SharedTree()

    async def open_store() -> Store:
        return TreeSession(tree)

    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "data")}
    broker, other, changing = Broker(BrokerConfig(settings), open_store=open_store), TreeSession(tree), []
    await broker.start()
    topic = await broker.topics.create("t")
    assert isinstance(topic, Topic)
    close = broker.partitions.close

    def close_and_change() -> None:
        close()
        state = znodes.state_node(dataclasses.replace(topic.partitions[0], leader=-1, leader_epoch=7))
        changing.append(asyncio.ensure_future(other.set(znodes.state_path("t", 0), state)))

    broker.partitions.close = close_and_change  # type: ignore[method-assign]
    await broker.stop()
    await asyncio.wait(changing)
    assert broker.partitions.all() == []
