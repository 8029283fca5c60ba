"""R12, R23, R28: members that crash, and static members that return."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from tests.interop.clients import CLIENTS
from tests.interop.conftest import Join
from tests.interop.kit import create_topic, produce, until
from tests.interop.layouts import describe, layout, until_sizes

EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS)
SESSION_MS = 1_500
GRACE_S = 4.0  # for a slow machine, on top of the session timeout


@contextmanager
def other_process(bootstrap: str, client: str, group: str, topic: str) -> Iterator[subprocess.Popen[str]]:
    """A member in a process of its own, so that it can die without a word."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.interop.lone_member", bootstrap, client, group, topic, str(SESSION_MS)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@EVERY_CLIENT
def test_a_killed_member_is_replaced_within_its_session_timeout(
    bootstrap: str, join: Join, group: str, client: str
) -> None:
    topic = create_topic(bootstrap, 4)
    survivor = join(client, group=group, topics=[topic], session_ms=SESSION_MS)
    until_sizes([survivor], 4)
    with other_process(bootstrap, client, group, topic) as victim:
        until_sizes([survivor], 2)
        victim.kill()
        victim.wait()
        until_sizes([survivor], 4, seconds=SESSION_MS / 1000 + GRACE_S)
    produce(bootstrap, topic, [b"%d" % number for number in range(40)])
    until(lambda: len(survivor.values) == 40, "the records of all partitions")


@EVERY_CLIENT
def test_a_static_member_restarts_without_a_rebalance(
    bootstrap: str, admin: AdminClient, join: Join, group: str, client: str
) -> None:
    topic = create_topic(bootstrap, 4)
    # the one that stays leads: a static leader that comes back is told to lead, and a client may then rebalance
    stays = join("kafka-python", group=group, topics=[topic], instance="stays")
    until_sizes([stays], 4)
    leaves = join(client, group=group, topics=[topic], instance="leaves")
    until_sizes([stays, leaves], 2, 2)
    generation = stays.run_in_thread(lambda consumer: consumer.group_metadata().generation_id)
    before = layout([stays, leaves]), stays.assigned_times, list(stays.lost)
    leaves.close()
    assert {member.group_instance_id for member in describe(admin, group).members} == {"stays", "leaves"}
    back = join(client, group=group, topics=[topic], instance="leaves")
    until(lambda: (layout([stays, back]), stays.assigned_times, stays.lost) == before, "the old layout")
    produce(bootstrap, topic, [b"%d" % number for number in range(40)])
    until(lambda: len(stays.values) + len(back.values) == 40, "all records")
    assert stays.run_in_thread(lambda consumer: consumer.group_metadata().generation_id) == generation
    assert (stays.assigned_times, stays.lost) == before[1:]


def test_a_second_member_with_the_same_instance_fences_the_first(bootstrap: str, join: Join, group: str) -> None:
    """Both believe that they own both partitions; the commits of the first are refused."""
    topic = create_topic(bootstrap, 2)
    first = join("confluent-kafka", group=group, topics=[topic], instance="one")
    until_sizes([first], 2)
    second = join("kafka-python", group=group, topics=[topic], instance="one")
    until_sizes([second], 2)
    offset = [confluent_kafka.TopicPartition(topic, 0, 1)]
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        first.run_in_thread(lambda consumer: consumer.commit(offsets=offset, asynchronous=False))
    assert refused.value.args[0].name() in ("FENCED_INSTANCE_ID", "_FATAL")
    second.commit(topic, 0, 5)
    assert second.committed(topic, 0) == 5
