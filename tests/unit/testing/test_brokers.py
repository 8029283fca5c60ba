"""`running_broker` and `running_cluster` with real clients."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.testing.clients import consumer, produce, take

from rota.testing import CommandRefused, running_broker, running_cluster


@pytest.mark.parametrize("own_process", [False, True])
def test_acknowledged_records_and_commits_survive_a_kill(own_process: bool) -> None:
    with running_broker(own_process=own_process) as broker:
        produce(broker.bootstrap_servers, "t", "a", "b")
        with consumer(broker.bootstrap_servers, "g", "t") as member:
            member.commit(take(member, 1)[0], asynchronous=False)
            broker.kill()
            assert broker.info()["brokers"][0]["running"] is False
            broker.restart()
            assert [record.value() for record in take(member, 1)] == [b"b"]
            assert broker.group("g").committed() == {("t", 0): 1}


def test_a_frozen_broker_answers_when_it_is_thawed() -> None:
    with running_broker() as broker, ThreadPoolExecutor(1) as thread:
        produce(broker.bootstrap_servers, "t", "a")
        broker.freeze()
        written = thread.submit(produce, broker.bootstrap_servers, "t", "b")
        assert not written.done()
        broker.thaw()
        written.result()


def test_two_brokers_in_one_process_are_independent() -> None:
    with running_broker() as first, running_broker({"num.partitions": "4"}) as second:
        first.create_topic("mine")
        second.create_topic("mine")
        with pytest.raises(CommandRefused, match="already exists"):
            second.create_topic("mine")


def test_a_folder_outlives_its_broker(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as broker:
        produce(broker.bootstrap_servers, "kept", "a")
    with running_broker(data=tmp_path) as broker, consumer(broker.bootstrap_servers, "g", "kept") as member:
        assert take(member, 1)[0].value() == b"a"
        broker.stop()
        broker.restart()


def test_leaders_and_coordinators_move_and_clients_follow() -> None:
    with running_cluster(3) as cluster:
        cluster.create_topic("t")
        produce(cluster.bootstrap_servers, "t", "a", "b", "c", "d")
        with consumer(cluster.bootstrap_servers, "g", "t") as member:
            for broker in (1, 2, 3):
                cluster.move_leader("t", 0, broker)
                cluster.move_coordinator("g", broker)
                member.commit(take(member, 1)[0], asynchronous=False)
                assert cluster.group("g").describe()["coordinator"] == broker
            cluster.group("g").committed({("t", 0): 3})
        with pytest.raises(CommandRefused, match="not in the ISR"):
            cluster.move_leader("t", 0, 9)


def test_a_cluster_survives_a_kill() -> None:
    with running_cluster(3) as cluster:
        cluster.create_topic("t")
        cluster.move_leader("t", 0, 3)
        cluster.kill(3)
        produce(cluster.bootstrap_servers, "t", "a")
        cluster.restart(3)
        cluster.freeze(3)
        cluster.thaw(3)
        produce(cluster.bootstrap_servers, "t", "b")
        cluster.stop(3)


def test_a_cluster_has_more_than_one_broker() -> None:
    with pytest.raises(ValueError, match="2 brokers"), running_cluster(1):
        pass


def test_nothing_is_left_behind() -> None:
    with running_broker() as broker:
        address = broker.bootstrap_servers
        broker.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(address.partition(":")[2])), 1).close()


async def test_commands_work_from_a_coroutine() -> None:
    with running_broker() as broker:
        broker.advance(seconds=1)
        await asyncio.to_thread(broker.group("g").empty)
