"""Messages and internal records as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli.decoded import internal_record, plain
from rota.protocol import group_timeline
from rota.protocol.consumer_protocol import Subscription, encode_subscription
from rota.protocol.group_timeline import EventType, GroupEvent, TimelineKey
from rota.protocol.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from rota.protocol.messages.incremental_alter_configs import AlterableConfig
from rota.protocol.messages.join_group import JoinGroupRequestProtocol
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from rota.protocol.offsets_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)

SUBSCRIPTION = encode_subscription(Subscription(topics=("t",)))


def test_subscriptions_are_decoded_and_garbage_is_hexadecimal() -> None:
    assert plain(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION))["metadata"]["topics"] == ["t"]
    assert plain(JoinGroupRequestProtocol(name="range", metadata=b"\xff"))["metadata"] == "ff"
    assert plain(b"x" * 65).endswith("… (65 bytes)")


def test_of_passwords_tokens_and_secret_configs_only_the_length_is_shown() -> None:
    upsertion = ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"planted-secret"
    )
    jaas = AlterableConfig(name="listener.name.x.plain.sasl.jaas.config", config_operation=0, value="planted-secret")
    shown = json.dumps(plain((SaslAuthenticateRequest(auth_bytes=b"\0alice\0planted-secret"), upsertion, jaas)))
    assert "(21 bytes, hidden)" in shown
    assert "(14 bytes, hidden)" in shown
    assert "(14 characters, hidden)" in shown
    for secret in ("planted-secret", b"planted-secret".hex()):
        assert secret not in shown
    assert plain(AlterableConfig(name="retention.ms", config_operation=0, value="1"))["value"] == "1"


def test_a_committed_offset() -> None:
    key = encode_key(OffsetCommitKey(group="g", topic="t", partition=1))
    value = encode_value(OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7), 3)
    found = internal_record("__consumer_offsets", key, value)
    assert found is not None
    assert (found["kind"], found["key"]) == ("offset_commit", {"group": "g", "topic": "t", "partition": 1})
    assert (found["value"]["offset"], found["value"]["metadata"]) == (5, "m")
    assert internal_record("__consumer_offsets", key, None) == found | {"value": None}


def test_the_state_of_a_group() -> None:
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        session_timeout=1,
        subscription=SUBSCRIPTION,
        assignment=b"",
    )
    state = GroupMetadataValue(protocol_type="consumer", generation=3, protocol="range", leader="m", members=(member,))
    found = internal_record("__consumer_offsets", encode_key(GroupMetadataKey(group="g")), encode_value(state, 3))
    assert found is not None
    assert (found["kind"], found["value"]["generation"]) == ("group_metadata", 3)
    assert found["value"]["members"][0]["subscription"]["topics"] == ["t"]


def test_an_event_of_the_timeline() -> None:
    key = group_timeline.encode_key(TimelineKey(group="g", slot=1))
    value = group_timeline.encode_value(GroupEvent(time_ms=5, type=EventType.MEMBER_LEFT))
    found = internal_record(group_timeline.TOPIC, key, value)
    assert found is not None
    assert (found["kind"], found["key"]["group"], found["value"]["time_ms"]) == ("group_event", "g", 5)


@pytest.mark.parametrize("topic", ["__consumer_offsets", group_timeline.TOPIC, "orders"])
@given(st.none() | st.binary(), st.none() | st.binary())
def test_garbage_is_not_decoded(topic: str, key: bytes | None, value: bytes | None) -> None:
    json.dumps(internal_record(topic, key, value))
