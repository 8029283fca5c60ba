"""R3, R4: the assignments that members compute and the coordinator distributes."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from tests.interop import clients
from tests.interop.clients import CLIENTS
from tests.interop.conftest import Join
from tests.interop.kit import create_topic, produce, until
from tests.interop.layouts import describe, layout, until_layout, until_sizes

EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS)
ROUND_ROBIN = [{0, 3, 6, 9}, {1, 4, 7}, {2, 5, 8}]


@EVERY_CLIENT
def test_r4_range(bootstrap: str, join: Join, group: str, client: str) -> None:
    topic = create_topic(bootstrap, 10)
    members = [join(client, group=group, topics=[topic], client_id=f"member-{n}") for n in range(3)]
    until_layout(members, {0, 1, 2, 3}, {4, 5, 6}, {7, 8, 9})


@EVERY_CLIENT
def test_r4_round_robin(bootstrap: str, join: Join, group: str, client: str) -> None:
    topic = create_topic(bootstrap, 10)
    members = [
        join(client, group=group, topics=[topic], client_id=f"member-{n}", assignors=["roundrobin"]) for n in range(3)
    ]
    until_layout(members, *ROUND_ROBIN)


@pytest.mark.parametrize(
    ("client", "assignor"),
    [
        # not aiokafka: its sticky assignor keeps the last assignment in its class, which members of one process share
        ("kafka-python", "sticky"),
        ("kafka-python", "cooperative-sticky"),
        ("confluent-kafka", "cooperative-sticky"),
    ],
)
def test_r4_sticky_is_balanced_first_and_sticky_second(
    bootstrap: str, join: Join, group: str, client: str, assignor: str
) -> None:
    topic = create_topic(bootstrap, 10)
    members = [
        join(client, group=group, topics=[topic], client_id=f"member-{n}", assignors=[assignor]) for n in range(3)
    ]
    until(lambda: sorted(len(owned) for owned in layout(members)) == [3, 3, 4], "a balanced layout")
    first, second, _ = layout(members)
    members.pop().close()
    until_sizes(members, 5, 5)
    assert first <= members[0].partitions
    assert second <= members[1].partitions


class RangeThenSticky(StickyPartitionAssignor):  # type: ignore[misc]
    """The range layout while a group grows, and sticky when a member is gone."""

    _members_max = 0

    def assign(self, cluster: Any, members: Any) -> Any:
        if len(members) < self._members_max:
            return super().assign(cluster, members)
        self._members_max = len(members)
        return RangePartitionAssignor.assign(cluster, members)


def test_r4_sticky_when_the_third_member_of_the_range_layout_dies(
    bootstrap: str, join: Join, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(clients.KAFKA_PYTHON_ASSIGNORS, "range-then-sticky", RangeThenSticky)
    topic = create_topic(bootstrap, 10)
    members = []
    for number in range(3):
        name, assignors = f"member-{number}", ["range-then-sticky"]
        members.append(join("kafka-python", group=group, topics=[topic], client_id=name, assignors=assignors))
        until(lambda: sum(map(len, layout(members))) == 10 and all(layout(members)), f"{len(members)} members")
    until_layout(members, {0, 1, 2, 3}, {4, 5, 6}, {7, 8, 9})
    members.pop().close()
    until_sizes(members, 5, 5)
    assert members[0].partitions >= {0, 1, 2, 3}
    assert members[1].partitions >= {4, 5, 6}


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"])
def test_cooperative_sticky_revokes_only_moving_partitions(bootstrap: str, join: Join, group: str, client: str) -> None:
    """KIP-429: who keeps a partition never stops reading it."""
    topic = create_topic(bootstrap, 4)
    first = join(client, group=group, topics=[topic], assignors=["cooperative-sticky"])
    until_sizes([first], 4)
    second = join(client, group=group, topics=[topic], assignors=["cooperative-sticky"])
    until_sizes([first, second], 2, 2)
    taken = frozenset().union(*first.lost)
    assert taken == second.owned
    assert not any(part & first.owned for part in first.lost)
    produce(bootstrap, topic, [b"%d" % number for number in range(20)])
    until(lambda: len(first.values) + len(second.values) == 20, "each record once")


def test_the_protocol_that_all_members_know_is_chosen(
    bootstrap: str, admin: AdminClient, join: Join, group: str
) -> None:
    topic = create_topic(bootstrap, 2)
    first = join("confluent-kafka", group=group, topics=[topic], assignors=["range", "roundrobin"])
    until_sizes([first], 2)
    assert describe(admin, group).partition_assignor == "range"
    second = join("aiokafka", group=group, topics=[topic], assignors=["roundrobin"])
    until_sizes([first, second], 1, 1)
    assert describe(admin, group).partition_assignor == "roundrobin"


class Original(AbstractPartitionAssignor):  # type: ignore[misc]
    """R3: sort partitions and members; N = ceil(partitions / members); member i takes i*N to (i+1)*N-1."""

    name = "original"
    version = 0

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> dict[str, Any]:
        topic = members[0].metadata.topics[0]
        partitions = sorted(cluster.partitions_for_topic(topic) or ())
        ids = sorted(member.member_id for member in members)
        share = -(-len(partitions) // len(ids))
        return {
            member_id: ConsumerProtocolAssignment(0, [(topic, partitions[i * share : (i + 1) * share])], b"")
            for i, member_id in enumerate(ids)
        }

    @classmethod
    def metadata(cls, topics: Any) -> Any:
        return ConsumerProtocolSubscription(0, sorted(topics), b"")

    @classmethod
    def on_assignment(cls, assignment: Any, generation: int) -> None:
        pass


def test_r3_an_assignor_that_the_coordinator_never_heard_of(
    bootstrap: str, admin: AdminClient, join: Join, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(clients.KAFKA_PYTHON_ASSIGNORS, "original", Original)
    topic = create_topic(bootstrap, 10)
    members = [
        join("kafka-python", group=group, topics=[topic], client_id=f"member-{n}", assignors=["original"])
        for n in range(3)
    ]
    until_layout(members, {0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9})
    assert describe(admin, group).partition_assignor == "original"
