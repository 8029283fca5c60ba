from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld, join_request

from rota.coordinator.api.consumer_group_heartbeat import consumer_group_heartbeat
from rota.coordinator.api.join_group import CONNECTING_MS, INITIAL_DELAY_MIN_MS, PREFIX_CHARS_MAX, join_group
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rota.protocol.messages.join_group import JoinGroupRequestProtocol


@pytest.mark.parametrize("version", range(4))
def test_a_member_without_an_id_gets_one_and_leads(version: int) -> None:
    answer = GroupWorld().open().send_request(join_group, join_request(), version)
    assert answer.error_code == 0
    assert answer.member_id.startswith("test-")
    assert answer.leader == answer.member_id
    assert answer.generation_id == 1
    assert answer.protocol_name == "range"
    assert [member.member_id for member in answer.members] == [answer.member_id]


@pytest.mark.parametrize("version", range(4, 10))
def test_from_version_4_on_the_id_is_to_be_brought_back(version: int) -> None:
    world = GroupWorld().open()
    first = world.send_request(join_group, join_request(), version)
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert (first.protocol_name, first.protocol_type) == ((None, None) if version >= 7 else ("", None))
    second = world.send_request(join_group, join_request(member_id=first.member_id), version)
    assert (second.error_code, second.member_id) == (0, first.member_id)


def test_a_static_member_is_named_after_its_instance() -> None:
    answer = GroupWorld().open().send_request(join_group, join_request(group_instance_id="rack-7"), 5)
    assert answer.error_code == 0
    assert answer.member_id.startswith("rack-7-")


def test_a_member_id_has_an_end_however_long_the_instances_is() -> None:
    answer = GroupWorld().open().send_request(join_group, join_request(group_instance_id="x" * 32_767), 5)
    assert answer.error_code == 0
    assert len(answer.member_id) == PREFIX_CHARS_MAX + 37


@pytest.mark.parametrize(("version", "instance"), [(3, None), (9, None), (5, "i"), (9, "i")])
def test_cg26_a_group_of_the_consumer_protocol_gives_ids_without_a_name(version: int, instance: str | None) -> None:
    world = GroupWorld().open()
    joins: dict[str, Any] = {"member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 1, "topic_partitions": ()}
    request = ConsumerGroupHeartbeatRequest(group_id="g", subscribed_topic_names=("t",), **joins)
    assert not world.send_request(consumer_group_heartbeat, request, 1).error_code
    answer = world.send_request(join_group, join_request(group_instance_id=instance), version)
    assert len(b64decode(answer.member_id + "==", b"-_", validate=True)) == 16


@pytest.mark.parametrize("session_ms", [0, 5_999, 1_800_001])
def test_a_session_timeout_outside_the_bounds_is_refused(session_ms: int) -> None:
    answer = GroupWorld().open().send_request(join_group, join_request(session_timeout_ms=session_ms), 3)
    assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_an_empty_group_id_is_refused() -> None:
    answer = GroupWorld().open().send_request(join_group, join_request(""), 3)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_before_the_offsets_topic_exists_this_is_not_the_coordinator() -> None:
    answer = GroupWorld().send_request(join_group, join_request(), 3)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR


def test_a_join_that_waits_for_others_mutes_its_connection() -> None:
    world = GroupWorld().open()
    world.member()
    waiting = world.join()
    assert isinstance(waiting, DelayedReply)
    assert waiting.mutes
    assert not waiting.answered


def test_a_subscription_is_not_larger_than_a_message_may_be() -> None:
    world = GroupWorld({"message.max.bytes": "1000"}).open()
    fits = (JoinGroupRequestProtocol(name="range", metadata=bytes(600)),)
    assert world.send_request(join_group, join_request(protocols=fits), 3).error_code == 0
    halves = tuple(JoinGroupRequestProtocol(name=name, metadata=bytes(501)) for name in ("range", "sticky"))
    assert (
        world.send_request(join_group, join_request("h", protocols=halves), 3).error_code
        == ErrorCode.UNKNOWN_SERVER_ERROR
    )


@pytest.mark.parametrize(
    ("ago_ms", "delay_ms"), [(0, INITIAL_DELAY_MIN_MS), (CONNECTING_MS - 1, INITIAL_DELAY_MIN_MS), (CONNECTING_MS, 0)]
)
def test_a_first_rebalance_waits_for_other_clients_while_clients_connect(ago_ms: int, delay_ms: int) -> None:
    """Law GJ1: an initial delay of 0 is a few ms while clients start, and 0 for those that have been connected."""
    world = GroupWorld().open()
    world.node.connected_ms = world.now_ms - ago_ms
    reply = world.join()
    for _ in range(delay_ms - 1):
        world.turn()
        assert not reply.answered
    for _ in range(3):
        world.turn()
    assert reply.answered
