"""Topics out of members' own bytes."""

from __future__ import annotations

import pytest

from rota.coordinator.group.effects import GroupValue, MemberValue
from rota.coordinator.group.events import MemberId
from rota.coordinator.group.state import topics_of
from rota.protocol.consumer_protocol import Subscription, TopicPartition, encode_subscription


def value(*subscriptions: bytes, protocol_type: str = "consumer") -> GroupValue:
    members = tuple(
        MemberValue(
            member_id=MemberId(str(n)),
            instance_id=None,
            client_id="",
            client_host="",
            rebalance_ms=1,
            session_ms=1,
            subscription=raw,
            assignment=b"",
        )
        for n, raw in enumerate(subscriptions)
    )
    return GroupValue(
        protocol_type=protocol_type, generation=1, protocol="range", leader=None, state_ms=0, members=members
    )


def of(*topics: str, version: int = 3) -> bytes:
    owned = (TopicPartition(topic="owned", partitions=(1, 2)),)
    return encode_subscription(Subscription(topics=topics, owned_partitions=owned if version else ()), version)


@pytest.mark.parametrize("version", range(4))
def test_the_topics_of_all_members_together(version: int) -> None:
    assert topics_of(value(of("t", "u", version=version), of("u", "v"))) == {"t", "u", "v"}


def test_members_that_want_nothing() -> None:
    assert topics_of(value(of(), of())) == frozenset()
    assert topics_of(value()) == frozenset()


def test_a_record_of_a_later_version_is_read_by_its_known_fields() -> None:
    assert topics_of(value(b"\0\x63" + of("t")[2:] + b"new fields")) == {"t"}


@pytest.mark.parametrize("raw", [b"", b"\0", b"\0\1\0\0\0\1\0\5t", b"\0\0\x7f\xff\xff\xff"])
def test_an_unreadable_subscription_makes_the_topics_unknown(raw: bytes) -> None:
    assert topics_of(value(of("t"), raw)) is None


def test_other_protocol_types_are_not_looked_into() -> None:
    assert topics_of(value(of("t"), protocol_type="connect")) is None
    assert topics_of(None) is None
