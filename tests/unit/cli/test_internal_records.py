"""Messages and internal records as JSON."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli.internal_records import internal_record, plain
from rota.coordinator.transaction.transitions import CODES, TransactionState
from rota.protocol import consumer_group_records, group_timeline, transaction_records
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
from rota.protocol.transaction_records import TransactionLogValue

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


@pytest.mark.parametrize("decoded", consumer_group_records.VALUES)
def test_every_record_of_a_group_of_the_consumer_protocol_has_a_kind(decoded: type[Any]) -> None:
    names = {each.name for each in fields(decoded)}
    texts = {"group": "g", "member_id": "m", "regular_expression": "o.*"}
    key = consumer_group_records.encode_key(decoded(**{name: text for name, text in texts.items() if name in names}))
    found = internal_record("__consumer_offsets", key, None)
    assert found is not None
    assert found["kind"].startswith("consumer_group_")
    assert (found["key"]["group"], found["value"]) == ("g", None)


def test_a_target_assignment() -> None:
    value = consumer_group_records.TargetMemberValue(
        topic_partitions=(consumer_group_records.TargetPartitions(topic_id=b"i" * 16, partitions=(0, 2)),)
    )
    key = consumer_group_records.TargetMemberKey(group="g", member_id="m")
    found = internal_record(
        "__consumer_offsets", consumer_group_records.encode_key(key), consumer_group_records.encode_value(value)
    )
    assert found == {
        "kind": "consumer_group_target_assignment_member",
        "key": {"group": "g", "member_id": "m"},
        "value": {"topic_partitions": [{"topic_id": (b"i" * 16).hex(), "partitions": [0, 2]}]},
    }


@pytest.mark.parametrize("state", TransactionState)
def test_the_states_of_a_transactional_id(state: TransactionState) -> None:
    value = TransactionLogValue(
        producer_id=1, producer_epoch=2, transaction_timeout_ms=3, transaction_status=CODES[state],
        transaction_last_update_timestamp_ms=4, transaction_start_timestamp_ms=5,
    )  # fmt: skip
    key = transaction_records.encode_key("billing")
    found = internal_record("__transaction_state", key, transaction_records.encode_value(value))
    assert found is not None
    assert (found["kind"], found["key"]) == ("transaction", {"transactional_id": "billing"})
    assert (found["value"]["transaction_status"], found["value"]["producer_id"]) == (state.value, 1)
    assert internal_record("__transaction_state", key, None) == found | {"value": None}


def test_a_state_that_is_not_known_stays_a_number() -> None:
    value = TransactionLogValue(
        producer_id=1, producer_epoch=2, transaction_timeout_ms=3, transaction_status=99,
        transaction_last_update_timestamp_ms=4, transaction_start_timestamp_ms=5,
    )  # fmt: skip
    raw = transaction_records.encode_value(value)
    found = internal_record("__transaction_state", transaction_records.encode_key("billing"), raw)
    assert found is not None
    assert found["value"]["transaction_status"] == 99


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", group_timeline.TOPIC, "orders"])
@given(st.none() | st.binary(), st.none() | st.binary())
def test_garbage_is_not_decoded(topic: str, key: bytes | None, value: bytes | None) -> None:
    json.dumps(internal_record(topic, key, value))
