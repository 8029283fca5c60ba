"""One group of Rota's own consumers, librdkafka's (or aiokafka's) and Java's: whoever leads, all understand it.

librdkafka has no `sticky`, aiokafka no `cooperative-sticky`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from tests.client.java_members import JavaMember, JavaMembers
from tests.client.rota_member import RotaMember
from tests.interop.clients import CLIENTS, Confluent
from tests.interop.java_kit import needs_java
from tests.interop.kit import create_topic, produce, until
from tests.interop.layouts import until_sizes
from tests.interop.members import Member, Settings

Join = Callable[..., Member]
OTHER_CLIENT = {
    "range": "confluent-kafka",
    "roundrobin": "confluent-kafka",
    "sticky": "aiokafka",
    "cooperative-sticky": "confluent-kafka",
}
JAVA = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
STICKY = ("sticky", "cooperative-sticky")
EVERY = pytest.mark.parametrize("assignor", OTHER_CLIENT)
WHO_LEADS = [
    ("range", "ours"),
    ("roundrobin", "theirs"),
    *((assignor, leads) for assignor in STICKY for leads in ("ours", "theirs")),
]
PARTITIONS = 12
HALF, THIRD = PARTITIONS // 2, PARTITIONS // 3


def with_java(test: Callable[..., None]) -> Callable[..., None]:
    for mark in needs_java:
        test = mark(test)
    return test


@pytest.fixture
def join(bootstrap: str) -> Iterator[Join]:
    """`join(client, group=…, topics=…)`; what still lives in the end is closed."""
    members: list[Member] = []

    def start(client: str, **settings: Any) -> Member:
        make = RotaMember if client == "rota" else CLIENTS[client]
        members.append(make(bootstrap, Settings(auto_commit=True, **settings)))
        return members[-1]

    yield start
    for member in members:
        member.stop()
    for member in members:
        member.close()


@pytest.fixture(scope="session")
def javas() -> Iterator[JavaMembers]:
    """One Java for all members of all groups."""
    members = JavaMembers()
    yield members
    members.close()


def owned(members: Sequence[Member | JavaMember]) -> list[set[int]]:
    return [set(member.partitions) for member in members]


def until_shared(members: Sequence[Member | JavaMember]) -> list[set[int]]:
    """Wait until everybody has an equal share, and each partition one owner. Who has what."""
    until_sizes(members, *[PARTITIONS // len(members)] * len(members))  # type: ignore[arg-type]
    return owned(members)


def until_reading(members: Sequence[Member]) -> None:
    """Wait until librdkafka's members have found where to begin.

    The timer of librdkafka 2.16 that repeats that look-up outlives a revocation: a partition that is revoked meanwhile
    and comes back before the timer fires is read from its beginning again, whatever is committed.
    """

    def is_reading(member: Member) -> bool:
        (topic,) = member.settings.topics
        return all((member.position(topic, partition) or 0) >= 0 for partition in member.partitions)

    until(lambda: all(map(is_reading, [each for each in members if isinstance(each, Confluent)])), "their positions")


def kept(before: Sequence[set[int]], now: Sequence[set[int]]) -> int:
    return sum(len(mine & still) for mine, still in zip(before, now, strict=True))


def until_read(members: Sequence[Member | JavaMember], count: int) -> None:
    """Wait until so many records have been read by all together, none of them twice."""

    def values() -> list[bytes | None]:
        return [value for member in members for value in member.values]

    until(lambda: len(values()) >= count, f"{count} records")
    read_by = [sorted(member.values, key=str) for member in members]
    assert sorted(values(), key=str) == sorted((b"%d" % number for number in range(count)), key=str), read_by


@pytest.mark.parametrize(("assignor", "leads"), WHO_LEADS)
def test_rota_and_other_clients_share_a_group(
    bootstrap: str, join: Join, group: str, assignor: str, leads: str
) -> None:
    """The first one leads; when it closes, another one must."""
    topic = create_topic(bootstrap, PARTITIONS)
    clients = ("rota", OTHER_CLIENT[assignor], "rota") if leads == "ours" else (OTHER_CLIENT[assignor], "rota", "rota")
    members: list[Member] = []
    layouts: list[list[set[int]]] = []
    for client in clients:
        members.append(join(client, group=group, topics=[topic], assignors=[assignor]))
        layouts.append(until_shared(members))
        until_reading(members)
    produce(bootstrap, topic, [b"%d" % number for number in range(12)])
    until_read(members, 12)
    if assignor == "cooperative-sticky":
        assert not any(lost & member.owned for member in members for lost in member.lost)
    leader = members.pop(0)
    leader.close()
    after = until_shared(members)
    produce(bootstrap, topic, [b"%d" % number for number in range(12, 24)])
    until_read([leader, *members], 24)
    if assignor in STICKY:
        assert kept(layouts[0], layouts[1][:1]) == HALF
        assert kept(layouts[1], layouts[2][:2]) == 2 * THIRD
        assert kept(layouts[2][1:], after) == 2 * THIRD


@with_java
@EVERY
def test_java_and_rota_clients_lead_each_other(
    bootstrap: str, join: Join, javas: JavaMembers, group: str, assignor: str
) -> None:
    """Rota leads and Java follows; Rota leaves, so Java leads; a second Rota and another library's client follow."""
    topic = create_topic(bootstrap, PARTITIONS)
    ours = {"group": group, "topics": [topic], "assignors": [assignor]}
    first = join("rota", **ours)
    until_shared([first])
    java = javas.join(bootstrap, group, topic, JAVA[assignor])
    until_shared([first, java])
    produce(bootstrap, topic, [b"%d" % number for number in range(12)])
    until_read([first, java], 12)
    first.close()
    until_shared([java])
    second = join("rota", **ours)
    two = until_shared([java, second])
    third = join(OTHER_CLIENT[assignor], **ours)
    three = until_shared([java, second, third])
    produce(bootstrap, topic, [b"%d" % number for number in range(12, 24)])
    until_read([first, java, second, third], 24)
    java.close()
    rest = until_shared([second, third])
    if assignor in STICKY:
        assert kept(two, three[:2]) == 2 * THIRD
        assert kept(three[1:], rest) == 2 * THIRD
