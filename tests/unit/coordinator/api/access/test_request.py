"""What one request may do: who asks, from where, and what is written about it."""

from __future__ import annotations

from structlog.testing import capture_logs
from tests.unit.coordinator.api.access.access_world import AccessWorld, call, granted

from rota.coordinator.api.access.request import CLUSTER, TOPIC, RequestAccess, after
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.operations import Operation


def access(*grants: str) -> RequestAccess:
    authorizer = granted(*grants)
    return RequestAccess(AccessWorld(authorizer, secrets=False).node, authorizer, call(1), "fetch")


def test_refused_actions_are_in_the_audit_log_and_hidden_resources_are_not() -> None:
    request = access("TOPIC:LITERAL:t READ")
    with capture_logs() as logs:
        assert request.authorize(Operation.READ, TOPIC, "t")
        assert not request.is_allowed(Operation.READ, TOPIC, "x")
        assert not request.is_allowed(Operation.ALTER, CLUSTER)
    assert logs == []
    with capture_logs() as logs:
        assert not request.authorize(Operation.ALTER, CLUSTER)
    assert [(line["api"], line["resource"], line["host"]) for line in logs] == [("fetch", "kafka-cluster", "127.0.0.1")]
    assert request.node.denials is not None
    assert request.node.denials.total == 1


def test_items_are_split_and_one_without_a_name_is_left_to_the_api() -> None:
    request = access("TOPIC:LITERAL:t READ")
    assert request.split(Operation.READ, TOPIC, ["t", "x", ""], lambda name: name or None) == (["t", ""], ["x"])


def test_a_response_is_finished_when_it_is_given() -> None:
    delayed: DelayedReply[int] = DelayedReply()
    finished = after(delayed, str)
    delayed.answer(7)
    assert (finished.value, after(7, str)) == ("7", "7")
