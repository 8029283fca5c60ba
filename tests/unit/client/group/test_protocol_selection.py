"""group_protocol=auto: the consumer protocol where the coordinator takes the member, else the classic one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.group.script import ENDED, FOUND, NODE, POLL, RETURNING, fires
from tests.unit.client.group.test_epoch_member import EpochScript, assignment, stable

from rota.client.config import ConsumerConfig
from rota.client.errors import BrokerError, Unsupported
from rota.client.group import effects as out
from rota.client.group import events, notes
from rota.client.group.assignors.strategies import resolve
from rota.client.group.epoch_member import EpochMember
from rota.client.group.protocol_selection import classic_successor, first_member, step, why_classic
from rota.client.group.state import Member
from rota.client.group.states import MemberState
from rota.client.types import GroupMetadata
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rota.protocol.messages.join_group import JoinGroupRequest

S = MemberState
REFUSED = [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION]
USE_CLASSIC = ("use classic protocol",)


def config(**settings: Any) -> ConsumerConfig:
    return ConsumerConfig(bootstrap_servers="h:1", group_id="g", **{"group_protocol": "auto", **settings})


def automatic() -> EpochScript:
    return EpochScript(group_protocol="auto").does(POLL, FOUND)


def successor(script: EpochScript) -> tuple[Member, list[out.Effect]]:
    member, first = classic_successor(script.m, resolve("range"))
    return member, [effect for event in first for effect in step(member, event, script.now_ms)]


def sent(effects: list[out.Effect]) -> list[Any]:
    return [effect.request for effect in effects if isinstance(effect, out.SendRequest)]


def test_eo2_the_successor_knows_the_last_generation() -> None:
    script = automatic()
    script.m.last_group = GroupMetadata("g", 3, "a")
    assert successor(script)[0].last_group == script.m.last_group


# ---- the first member


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, EpochMember),
        ({"group_remote_assignor": "range"}, EpochMember),
        ({"group_protocol": "consumer"}, EpochMember),
        ({"group_protocol": "classic"}, Member),
        ({"session_timeout_ms": 10_000}, Member),
        ({"heartbeat_interval_ms": 100}, Member),
        ({"partition_assignment_strategy": ("sticky",)}, Member),
    ],
)
def test_a_setting_of_the_classic_protocol_keeps_a_member_classic(settings: dict[str, Any], kind: type[Member]) -> None:
    given = config(**settings)
    assert type(first_member(given, resolve(given.partition_assignment_strategy))) is kind


def test_the_setting_that_keeps_a_member_classic_is_named() -> None:
    why = why_classic(config(session_timeout_ms=10_000))
    assert why is not None
    assert "session_timeout_ms" in why
    assert why_classic(config()) is None
    assert why_classic(config(group_protocol="classic", session_timeout_ms=10_000)) is None


# ---- the choice


def test_a_coordinator_that_takes_the_member_is_told_in_a_note() -> None:
    script = automatic()
    response = ConsumerGroupHeartbeatResponse(member_epoch=1, heartbeat_interval_ms=100, assignment=assignment(t=(0,)))
    effects = step(script.m, events.ResponseReceived(script.ticket, response), 0)
    assert notes.CONSUMER_PROTOCOL in [effect.event for effect in effects if isinstance(effect, out.Note)]


@pytest.mark.parametrize("code", REFUSED)
def test_a_refused_member_goes_on_with_joingroup(code: ErrorCode) -> None:
    """E6. The successor waits in the same poll, with the coordinator that is known, and joins at once."""
    script = automatic().answers(0, code)
    assert script.outputs == [USE_CLASSIC]
    member, effects = successor(script)
    assert member.state is S.JOINING
    [request] = sent(effects)
    assert isinstance(request, JoinGroupRequest)
    assert request.group_id == "g"


def test_a_broker_that_does_not_know_the_request_makes_the_member_classic() -> None:
    script = automatic().breaks(Unsupported("no ConsumerGroupHeartbeat"))
    assert script.outputs == [USE_CLASSIC]
    assert [type(request) for request in sent(successor(script)[1])] == [JoinGroupRequest]


def test_a_refusal_between_two_polls_joins_with_the_next_poll() -> None:
    script = automatic().does(ENDED, RETURNING).answers(0, ErrorCode.GROUP_ID_NOT_FOUND)
    member, effects = successor(script)
    assert sent(effects) == []
    assert "poll" in member.armed, "max.poll.interval.ms goes on"
    assert [type(request) for request in sent(step(member, POLL, 0))] == [JoinGroupRequest]


def test_late_events_of_the_predecessor_change_nothing() -> None:
    """E6. Tickets go on where they were."""
    script = automatic()
    old = script.ticket
    member, effects = successor(script.answers(0, ErrorCode.GROUP_ID_NOT_FOUND))
    [request] = [effect for effect in effects if isinstance(effect, out.SendRequest)]
    assert request.ticket > old
    late = ConsumerGroupHeartbeatResponse(member_epoch=1, heartbeat_interval_ms=100)
    assert step(member, events.ResponseReceived(old, late), 0) == []


@pytest.mark.parametrize("code", REFUSED)
def test_a_member_that_had_joined_gives_up_its_partitions_before_it_is_classic(code: ErrorCode) -> None:
    script = stable(group_protocol="auto").does(fires("heartbeat")).answers(0, code)
    assert script.outputs == [("wake",)]
    assert script.does(POLL).outputs == [("lose", "t-0", "t-1")]
    assert script.done().outputs == [("heartbeat", 0)], "it tries the consumer protocol once more"
    assert script.answers(0, code).outputs == [USE_CLASSIC]


@pytest.mark.parametrize(
    "code", [ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.UNRELEASED_INSTANCE_ID]
)
def test_another_refusal_is_raised(code: ErrorCode) -> None:
    script = automatic().answers(0, code)
    assert USE_CLASSIC not in script.outputs
    assert isinstance(script.failure, BrokerError)


def test_a_moving_coordinator_is_no_refusal() -> None:
    script = automatic().answers(0, ErrorCode.NOT_COORDINATOR)
    assert script.outputs == [("forget", NODE), ("find coordinator",)]


def test_a_closing_member_stays_what_it_is() -> None:
    script = automatic().does(events.Close("over")).answers(0, ErrorCode.UNSUPPORTED_VERSION)
    assert USE_CLASSIC not in script.outputs


# ---- without auto


@pytest.mark.parametrize("code", REFUSED)
def test_without_auto_the_refusal_is_raised_with_a_remedy(code: ErrorCode) -> None:
    """A group that takes no member of the consumer protocol was asked again and again, without a pause, for ever."""
    script = EpochScript().does(POLL, FOUND).answers(0, code)
    assert [shown[0] for shown in script.outputs] == ["fail"]
    assert isinstance(script.failure, BrokerError)
    assert "group_protocol=auto" in str(script.failure)
    assert isinstance(script.requests, ConsumerGroupHeartbeatRequest)
