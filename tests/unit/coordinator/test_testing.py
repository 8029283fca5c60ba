"""The broker that other people's tests start: a real client works with it, and it leaves nothing behind."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.testing import running_broker

PATIENCE_S = 20


def topics(address: str) -> set[str]:
    admin = AdminClient({"bootstrap.servers": address})
    return set(admin.list_topics(timeout=PATIENCE_S).topics)


def create(address: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(PATIENCE_S)


def test_two_brokers_side_by_side_know_nothing_of_each_other() -> None:
    with running_broker() as one, running_broker({"num.partitions": "4"}) as other:
        assert one != other
        create(one, "mine")
        assert topics(one) == {"mine"}
        assert topics(other) == set()


def test_it_is_gone_when_the_block_ends() -> None:
    others = set(threading.enumerate())  # a broker of another test's fixture may run beside
    with running_broker() as address:
        host, _, port = address.rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 1).close()
    assert "rota" not in {thread.name for thread in set(threading.enumerate()) - others}


def test_a_folder_outlives_it(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as address:
        create(address, "kept")
    with running_broker(data=tmp_path) as address:
        assert topics(address) == {"kept"}


def test_what_keeps_it_from_starting_is_raised_here(tmp_path: Path) -> None:
    with running_broker(data=tmp_path), pytest.raises(StorageFailed), running_broker(data=tmp_path):
        raise AssertionError("two brokers on one folder")
