"""Giving up, discovery, JoinGroup: a conversation for each branch."""

from __future__ import annotations

import pytest
from tests.unit.client.group.script import (
    BACKOFF_MS,
    ENDED,
    FOUND,
    HEARTBEAT_MS,
    POLL,
    SESSION_MS,
    Done,
    Script,
    arm,
    breaks,
    cooperative,
    disarm,
    fires,
    heartbeat_reply,
    join_refused,
    joined,
    joining,
    knows,
    reads,
    stable,
    subscribes,
)

from rota.client.errors import AssignmentFailed, BrokerError, FencedInstance, KafkaError, TimedOut, Unsupported
from rota.client.group import notes
from rota.client.group.events import CoordinatorNotFound
from rota.client.group.join import LAPSE_MS
from rota.client.group.refusals import java_name
from rota.client.group.states import MemberState
from rota.protocol.consumer_protocol import decode_subscription
from rota.protocol.errors import ErrorCode

S = MemberState
E = ErrorCode
GIVEN_ID = "need to re-join with the given member-id: a"


# ---- from nothing


def test_a_new_member_finds_its_coordinator_and_joins_with_the_id_that_it_is_given() -> None:
    script = Script()
    assert script >> POLL << ("find coordinator",)
    script.is_in(S.DISCOVERING, -1)
    assert (
        script
        >> FOUND
        << ("join", "", "")
        >> join_refused(E.MEMBER_ID_REQUIRED, "a")
        << ("join", "a", GIVEN_ID)
        >> joined(1)
        << arm("heartbeat", HEARTBEAT_MS)
        << arm("session", SESSION_MS)
        << disarm("session")
        << ("sync", 1, ())
    )
    script.is_in(S.SYNCING, 1).emitted(notes.JOINED, group="g", member="a", generation=1, leader=False)


def test_without_a_poll_nothing_begins() -> None:
    script = Script()
    assert script >> knows(t=3)
    assert script >> subscribes("u") << ("want", ("u",))
    script.is_in(S.DOWN, -1)


def test_without_a_subscription_nothing_begins() -> None:
    script = Script()
    script.m.subscription = None
    assert script >> POLL
    assert not script.m.is_due


def test_a_poll_that_is_given_up_lets_the_joining_go_on() -> None:
    script = Script().does(POLL, ENDED)
    assert script >> FOUND << ("join", "", "")


def test_a_join_request_has_the_fields_of_the_java_client() -> None:
    request = joining("u", "t", strategy="range,cooperative-sticky", client_rack="r").request("join")
    assert (request.group_id, request.session_timeout_ms, request.rebalance_timeout_ms) == ("g", SESSION_MS, 60_000)
    assert (request.protocol_type, request.group_instance_id) == ("consumer", None)
    assert [protocol.name for protocol in request.protocols] == ["range", "cooperative-sticky"]
    decoded = decode_subscription(request.protocols[0].metadata)
    assert (decoded.topics, decoded.owned_partitions, decoded.generation_id, decoded.rack_id) == (
        ("t", "u"),
        (),
        -1,
        "r",
    )


def test_a_join_may_take_as_long_as_a_rebalance() -> None:
    assert joining().requests["join"].timeout_ms == 60_000 + LAPSE_MS
    assert joining(max_poll_interval_ms=(1 << 31) - 1).requests["join"].timeout_ms == (1 << 31) - 1
    assert joining(max_poll_interval_ms=1_000).requests["join"].timeout_ms == 30_000


def test_a_pattern_is_matched_against_fresh_metadata_first() -> None:
    script = Script(pattern="[tu]").does(POLL)
    assert script >> FOUND << ("refresh metadata",) >> reads(t=1, u=1, v=1) << ("join", "", "")
    assert decode_subscription(script.request("join").protocols[0].metadata).topics == ("t", "u")


# ---- giving up


def test_eager_gives_everything_up_before_it_joins() -> None:
    script = stable().does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS))
    assert (
        script
        >> POLL
        << disarm("poll")
        << ("before_rejoin",)
        >> Done()
        << ("revoke", "t-0")
        >> Done()
        << disarm("heartbeat")
        << disarm("session")
        << ("join", "a", "group is already rebalancing")
    )
    assert not script.m.owned


def test_a_cooperative_rejoin_names_the_owned_partitions() -> None:
    script = cooperative("t-0", "t-1").does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS))
    script.does(POLL, Done())
    decoded = decode_subscription(script.request("join").protocols[0].metadata)
    assert [(item.topic, item.partitions) for item in decoded.owned_partitions] == [("t", (0, 1))]
    assert decoded.generation_id == 1
    assert not script.m.is_due  # reads on while it joins


def test_a_cooperative_member_revokes_unsubscribed_partitions() -> None:
    script = cooperative().does(subscribes("u"), POLL)
    assert script >> Done() << ("revoke", "t-0")
    script.does(Done())
    assert script.request("join").reason == "subscription has changed"


def test_a_hook_waits_for_a_poll() -> None:
    script = stable().does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL, ENDED)
    script.does(Done())
    script.is_in(S.REVOKING, 1)
    assert script >> POLL << ("revoke", "t-0")


def test_an_exception_of_on_revoked_is_raised_by_poll_and_the_join_continues() -> None:
    script = stable().does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL, Done())
    _ = script >> Done(ValueError("mine"))
    script.includes(("fail", "ValueError"), ("join", "a", "group is already rebalancing"))
    assert isinstance(script.failure, ValueError)


# ---- discovery


def test_discovery_is_tried_again_after_a_while_that_grows() -> None:
    script = Script().does(POLL)
    assert (
        script
        >> CoordinatorNotFound(TimedOut("late"))
        << arm("retry", BACKOFF_MS)
        >> fires("retry")
        << ("find coordinator",)
        >> CoordinatorNotFound(TimedOut("late"))
        << arm("retry", 2 * BACKOFF_MS)
    )


def test_a_group_authorization_failure_is_raised() -> None:
    script = Script().does(POLL)
    for wait_ms in (BACKOFF_MS, 2 * BACKOFF_MS):  # M7
        refused = CoordinatorNotFound(BrokerError(30, "looking"))
        assert script >> refused << arm("retry", wait_ms) << ("fail", "BrokerError")
        assert "READ" in str(script.failure)
        script.is_in(S.DOWN, -1)
        assert script.does(ENDED) >> POLL
        assert script >> fires("retry") << ("find coordinator",)


# ---- refusals


@pytest.mark.parametrize("code", [E.COORDINATOR_LOAD_IN_PROGRESS, E.NETWORK_EXCEPTION])
def test_a_join_that_may_succeed_later_is_sent_again(code: ErrorCode) -> None:
    script = joining()
    script.m.attempts = 0
    assert script >> join_refused(code) << arm("retry", BACKOFF_MS)
    _ = script >> fires("retry")
    assert script.out[0][:2] == ("join", "a")


@pytest.mark.parametrize(
    ("code", "member"),
    [(E.UNKNOWN_MEMBER_ID, ""), (E.ILLEGAL_GENERATION, "a"), (E.REBALANCE_IN_PROGRESS, "a")],
)
def test_a_refused_join_that_may_be_repeated_is_repeated_at_once(code: ErrorCode, member: str) -> None:
    script = joining()
    script.m.attempts = 0
    assert script >> join_refused(code) << ("join", member, f"rebalance failed due to {java_name(code)}")


def test_repeated_unknown_member_errors_back_off() -> None:
    script = joining()
    script.m.attempts = 0
    script.does(join_refused(E.UNKNOWN_MEMBER_ID))
    assert script >> join_refused(E.UNKNOWN_MEMBER_ID) << arm("retry", 2 * BACKOFF_MS)


def test_an_unknown_cooperative_member_loses_its_partitions_at_the_next_poll() -> None:
    script = cooperative().does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL, Done(), ENDED)
    assert script >> join_refused(E.UNKNOWN_MEMBER_ID) << ("wake",)
    script.is_in(S.DOWN, -1)
    assert (
        script
        >> POLL
        << ("lose", "t-0")
        >> Done()
        << (
            "join",
            "",
            "rebalance failed due to UnknownMemberIdException",
        )
    )


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_another_coordinator_is_looked_for(code: ErrorCode) -> None:
    script = joining()
    script.m.attempts = 0
    assert (
        script
        >> join_refused(code)
        << ("forget", 1)
        << arm("retry", 2 * BACKOFF_MS)
        >> fires("retry")
        << ("find coordinator",)
    )
    script.is_in(S.DISCOVERING, -1)


def test_a_connection_that_breaks_is_a_coordinator_to_look_for() -> None:
    script = joining()
    _ = script >> breaks("join")
    script.includes(("forget", 1)).is_in(S.DISCOVERING, -1)
    script.does(fires("retry"))
    assert script >> FOUND << ("join", "a", "rebalance failed due to DisconnectException")


def test_a_second_member_of_the_same_instance_fences_for_good() -> None:
    script = joining(group_instance_id="i")
    assert script >> join_refused(E.FENCED_INSTANCE_ID) << ("fail", "FencedInstance")
    assert isinstance(script.failure, FencedInstance)
    script.does(ENDED)
    assert script >> POLL << ("fail", "FencedInstance")
    assert script >> POLL << ("fail", "FencedInstance")


@pytest.mark.parametrize(
    ("code", "kind", "remedy"),
    [
        (E.GROUP_MAX_SIZE_REACHED, BrokerError, "group.max.size"),
        (E.INVALID_SESSION_TIMEOUT, BrokerError, "session_timeout_ms is 10000"),
        (E.INCONSISTENT_GROUP_PROTOCOL, AssignmentFailed, "partition_assignment_strategy"),
        (E.GROUP_AUTHORIZATION_FAILED, BrokerError, "READ"),
        (E.UNKNOWN_SERVER_ERROR, BrokerError, "JoinGroup was refused"),
    ],
)
def test_a_fatal_join_error_is_raised_with_a_remedy(code: ErrorCode, kind: type[Exception], remedy: str) -> None:
    script = joining()
    _ = script >> join_refused(code)
    script.includes(("fail", kind.__name__))
    assert type(script.failure) is kind
    assert remedy in str(script.failure)
    script.does(ENDED).is_in(S.DOWN, -1)
    assert script >> POLL
    _ = script >> fires("retry")  # M7: the next one tries again, after a wait
    script.includes(("join", "a", script.m.reason))


def test_a_group_of_another_kind_is_refused() -> None:
    script = joining()
    _ = script >> joined(1, protocol_type="connect")
    script.includes(("fail", "AssignmentFailed"))


def test_static_membership_on_an_old_broker_is_an_error() -> None:
    script = joining(group_instance_id="i")
    _ = script >> breaks("join", Unsupported("JoinGroup 5"))
    script.includes(("fail", "BrokerError"))
    assert "group_instance_id" in str(script.failure)


def test_a_join_request_that_cannot_be_encoded_is_raised() -> None:
    script = joining()
    _ = script >> breaks("join", KafkaError("a name that does not fit"))
    script.includes(("fail", "KafkaError")).is_in(S.DOWN, -1)
