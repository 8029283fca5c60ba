"""The brokers of a test run."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, TRANSACTION_STATE
from rota.testing.commands import Commands
from rota.testing.host import Host, until
from rota.testing.hosted_broker import NotRunning


async def test_the_only_broker_needs_no_id() -> None:
    host = Host()
    await host.start()
    try:
        assert host.get() is host.running()
        assert host.bootstrap == host.get().address
        with pytest.raises(NotRunning, match="no broker 7"):
            host.get(7)
    finally:
        await host.stop()
    with pytest.raises(NotRunning):
        host.running()


async def test_the_brokers_of_a_cluster_know_each_other_when_it_has_started() -> None:
    host = Host(count=3)
    await host.start()
    try:
        assert [each.broker_id for each in host] == [1, 2, 3]
        assert len(set(host.bootstrap.split(","))) == 3
        assert all(set(each.broker.topics.brokers) == {1, 2, 3} for each in host)
        with pytest.raises(NotRunning, match="no broker None"):
            host.get()
    finally:
        await host.stop()


async def test_kt11_a_cluster_has_its_internal_topics_when_it_loses_a_broker() -> None:
    host = Host(count=3)
    await host.start()
    try:
        assert CONSUMER_OFFSETS not in host.running().broker.topics
        for lost in (3, 2):
            await Commands(host).perform("kill", {"broker": lost})
            topics = host.running().broker.topics
            replicas = [len(topics.get(name).partitions[0].replicas) for name in (CONSUMER_OFFSETS, TRANSACTION_STATE)]
            assert replicas == [3, 3]
    finally:
        await host.stop()


async def test_each_broker_of_a_cluster_has_its_own_folder(tmp_path: Path) -> None:
    host = Host(count=2, data=tmp_path)
    await host.start()
    await host.stop()
    assert {path.name for path in tmp_path.iterdir()} == {"broker-1", "broker-2"}


async def test_waiting_ends_with_the_reason() -> None:
    with pytest.raises(TimeoutError, match="nothing came"):
        await until(lambda: False, "nothing came", within_s=0)
