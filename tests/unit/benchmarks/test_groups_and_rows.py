"""Programs of the benchmarks on a broker: what they leave behind, and more members than `select` can wait for."""

from __future__ import annotations

import fcntl
import resource
import socket
from collections.abc import Iterator

import pytest
from benchmarks import rows
from benchmarks.brokers import PROPERTIES, allow_open_files
from benchmarks.groups import Member, answered, find_coordinator, rebalance, settled
from benchmarks.memory import join_groups
from benchmarks.wire import Wire
from confluent_kafka.admin import AdminClient

from rota.testing import RunningBroker, running_broker

BEYOND_SELECT = 1_500


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker(PROPERTIES) as running:
        yield running


def topics(broker: RunningBroker) -> set[str]:
    listed = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=5).topics
    return {name for name in listed if not name.startswith("__")}


def test_rows_of_records_leave_no_topic_behind(broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows.settings, "seconds", 0.01)
    assert rows.produce(100, 1_000)(broker.bootstrap_servers) > 0
    assert rows.consume(100, 1_000, total_bytes=20_000)(broker.bootstrap_servers) > 0
    assert topics(broker) == set()


def test_every_group_has_a_member_that_stays(broker: RunningBroker) -> None:
    join_groups(broker.bootstrap_servers, 70)
    for group in ("joined-0", "joined-69"):
        assert broker.group(group).generation == 1
        assert len(broker.group(group).describe()["members"]) == 1


def test_a_rebalance_gets_every_member_into_the_next_generation(broker: RunningBroker) -> None:
    members = settled(find_coordinator(broker.bootstrap_servers, "rebalanced"), "rebalanced", 3)
    (generation,) = {member.generation for member in members}
    assert rebalance(members) > 0
    assert {member.generation for member in members} == {generation + 1}
    for member in members:
        member.wire.close()


@pytest.fixture
def many_open_files() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    allow_open_files()
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_member_whose_socket_has_a_number_beyond_select_is_waited_for(many_open_files: None) -> None:
    near, far = socket.socketpair()
    high = socket.socket(fileno=fcntl.fcntl(near.fileno(), fcntl.F_DUPFD, BEYOND_SELECT))
    with near, far, high:
        wire = Wire.__new__(Wire)
        wire.socket = high
        members = [Member("group", wire)]
        assert answered(members, [0]) == []
        far.sendall(b"answer")
        assert answered(members, [0]) == [0]
