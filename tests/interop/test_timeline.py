"""The timeline of a real group: members join, leave and expire; a static id is used twice; restarts and SIGKILL.

The records are read by librdkafka and decoded by the tables of docs/TIMELINE.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.interop.broker import _ready
from tests.interop.clients import CLIENTS
from tests.interop.kit import create_topic, unique, until
from tests.interop.layouts import until_sizes
from tests.interop.members import Member, Settings
from tests.unit.protocol.timeline_page import decode
from tools.ports import free_port

from rota.coordinator.observe.explain import sentences
from rota.coordinator.observe.rebalances import Outcome, rebalances
from rota.protocol.group_timeline import EventType, GroupEvent, Trigger, decode_value

TOPIC = "__rota_group_timeline"
STOP_SECONDS = 20
ROOT = Path(__file__).parents[2]


class Served:
    """`rota serve` on a folder and a fixed port, so that clients find it again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        read_fd, write_fd = os.pipe()
        rota = Path(sys.executable).with_name("rota")
        settings = ["--set", "group.initial.rebalance.delay.ms=0", "--set", "group.min.session.timeout.ms=1000"]
        place = ["--data", str(self.folder / "data"), "--listen", self.address]
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [rota, "serve", *place, *settings, "--ready-fd", str(write_fd)],
                pass_fds=[write_fd],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        os.close(write_fd)
        try:
            _ready(read_fd, self.folder / "broker.log")
        finally:
            os.close(read_fd)

    def stop(self, number: int) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(number)
            process.wait(STOP_SECONDS)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    served.start()
    yield served
    served.stop(signal.SIGKILL)


def timeline(address: str, group: str) -> list[GroupEvent]:
    """Return the group's events as any client reads them, oldest first."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": unique("reader"), "enable.auto.commit": False})
    try:
        partitions = consumer.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
        own = [TopicPartition(TOPIC, index) for index in partitions]
        ends = {each.partition: consumer.get_watermark_offsets(each, timeout=10)[1] for each in own}
        consumer.assign([TopicPartition(TOPIC, index, 0) for index in partitions])
        found: dict[int, bytes] = {}
        while any(at.offset < ends[at.partition] for at in consumer.position(own) if ends[at.partition]):
            message = consumer.poll(10)
            assert message is not None
            assert message.error() is None
            if message.value() is not None:
                fields: dict[str, Any] = decode(message.key(), message.value())
                if fields["group"] == group:
                    found[fields["slot"]] = message.value()
        return sorted(map(decode_value, found.values()), key=lambda event: event.sequence)
    finally:
        consumer.close()


def join(served: Served, client: str, group: str, topic: str, client_id: str, **more: Any) -> Member:
    settings = Settings(group=group, topics=[topic], client_id=client_id, session_ms=10_000, **more)
    return CLIENTS[client](served.address, settings)


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"])
def test_the_timeline_of_a_group_survives_a_restart_and_sigkill(served: Served, client: str) -> None:
    group, topic = unique("group"), create_topic(served.address, 4)
    alpha = join(served, client, group, topic, "alpha")
    until_sizes([alpha], 4)
    beta = join(served, client, group, topic, "beta")
    until_sizes([alpha, beta], 2, 2)
    beta.close()
    until_sizes([alpha], 4)
    lone = [sys.executable, "-m", "tests.interop.lone_member", served.address, client, group, topic, "1500"]
    with subprocess.Popen(lone, cwd=ROOT, stdin=subprocess.PIPE) as victim:
        until_sizes([alpha], 2)
        victim.kill()
    until_sizes([alpha], 4)
    alpha.close()
    _check_timeline(timeline(served.address, group))
    for number in (signal.SIGTERM, signal.SIGKILL):
        before = timeline(served.address, group)
        loads = _of(before, EventType.LOADED)
        served.stop(number)
        served.start()
        until(partial(_was_loaded, served, group, loads), "the loaded group")
        after = timeline(served.address, group)
        assert after[: len(before)] == before
        _check_timeline(after)


def test_a_static_id_that_two_clients_use(served: Served) -> None:
    group, topic = unique("group"), create_topic(served.address, 2)
    first = join(served, "confluent-kafka", group, topic, "first", instance="i")
    until_sizes([first], 2)
    second = join(served, "confluent-kafka", group, topic, "second", instance="i")
    until(lambda: _count(served, group, EventType.REQUESTS_REFUSED), "the fenced request of the first")
    replaced = _last(served, group, EventType.STATIC_MEMBER_REPLACED)
    assert replaced is not None
    assert [member.client_id for member in replaced.members] == ["second", "first"]
    second.close()
    first.stop()


def _was_loaded(served: Served, group: str, loads: int) -> bool:
    return _of(timeline(served.address, group), EventType.LOADED) > loads


def _check_timeline(events: list[GroupEvent]) -> None:
    assert [event.sequence for event in events] == list(range(len(events)))
    # kafka-python's leader joins again when it reads the topic's metadata only after its first JoinGroup
    found = [each for each in rebalances(events) if each.trigger != Trigger.LEADER_REJOINED]
    assert [(each.trigger, each.triggered_by[0].client_id.split("-")[0]) for each in found] == [
        (Trigger.MEMBER_JOINED, "alpha"),
        (Trigger.MEMBER_JOINED, "beta"),
        (Trigger.MEMBER_LEFT, "beta"),
        (Trigger.MEMBER_JOINED, "client"),
        (Trigger.MEMBER_EXPIRED, "client"),
        (Trigger.MEMBER_LEFT, "alpha"),
    ]
    assert found[-1].outcome == Outcome.EMPTY
    joined, left = found[1], found[2]
    assert joined.waited_for[0].client_id == "alpha"
    assert sum(move.gained_count for move in joined.moves) == sum(move.lost_count for move in joined.moves) == 2
    assert sum(move.kept_count for move in left.moves) == 2
    assert all(sentences(each) for each in found)


def _of(events: list[GroupEvent], event_type: EventType) -> int:
    return sum(event.type == event_type for event in events)


def _count(served: Served, group: str, event_type: EventType) -> int:
    return _of(timeline(served.address, group), event_type)


def _last(served: Served, group: str, event_type: EventType) -> GroupEvent | None:
    return next((event for event in reversed(timeline(served.address, group)) if event.type == event_type), None)
