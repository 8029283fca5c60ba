"""The audit log of denials: what an event says, and how many there are."""

from __future__ import annotations

from structlog.testing import capture_logs

from rota.coordinator.scheduling.timers import TimerHeap
from rota.coordinator.security.acl import Acl, Entry, ResourcePattern
from rota.coordinator.security.authorizer import Action, Decision, Reason
from rota.coordinator.security.denials import (
    EVENTS_PER_REPEAT_MAX,
    NAME_CHARS_MAX,
    OMITTED,
    REMEMBERED_MAX,
    REPEAT_MS,
    Denials,
)
from rota.coordinator.security.operations import Operation, ResourceType
from rota.coordinator.security.principal import Principal

DEFAULT = Decision(False, Reason.DEFAULT)


def action(name: str = "orders") -> Action:
    return Action(Principal("User", "alice"), "10.0.0.1", Operation.READ, ResourceType.TOPIC, name)


def test_an_event_has_principal_operation_resource_and_acl() -> None:
    acl = Acl(ResourcePattern.parse("TOPIC:PREFIXED:ord"), Entry.parse("DENY READ * User:*"))
    with capture_logs() as logs:
        Denials(TimerHeap().at).add("fetch", action(), Decision(False, Reason.ACL, acl), 0)
    assert logs == [
        {
            "event": "Denied",
            "log_level": "warning",
            "principal": "User:alice",
            "host": "10.0.0.1",
            "api": "fetch",
            "operation": "READ",
            "resource_type": "TOPIC",
            "resource": "orders",
            "reason": "an ACL decides",
            "acl": "TOPIC:PREFIXED:ord DENY READ * User:*",
            "repeated": 0,
        }
    ]


def test_a_repeated_denial_is_counted_and_written_once_in_a_while() -> None:
    denials = Denials(TimerHeap().at)
    with capture_logs() as logs:
        for ms in (0, 1, 2, REPEAT_MS - 1, REPEAT_MS, REPEAT_MS + 1):
            denials.add("fetch", action(), DEFAULT, ms)
    assert [line["repeated"] for line in logs] == [0, 3]
    assert denials.total == 6


def test_what_was_counted_is_written_though_nobody_is_denied_again() -> None:
    timers = TimerHeap()
    denials = Denials(timers.at)
    with capture_logs() as logs:
        for ms in (0, 10, 20):
            denials.add("fetch", action(), DEFAULT, ms)
        denials.add("produce", action("other"), DEFAULT, 30)
        for call in timers.due(10 + REPEAT_MS):
            call()
        denials.add("fetch", action(), DEFAULT, 11 + REPEAT_MS)
    assert [(line["resource"], line["repeated"]) for line in logs] == [("orders", 0), ("other", 0), ("orders", 1)]
    assert len(timers) == 1  # for the last one
    with capture_logs() as logs:
        denials.flush(12 + REPEAT_MS)
        denials.flush(13 + REPEAT_MS)
    assert [(line["resource"], line["repeated"]) for line in logs] == [("orders", 0)]


def test_what_a_flood_omits_is_written_though_it_has_ended() -> None:
    timers = TimerHeap()
    denials = Denials(timers.at)
    for number in range(EVENTS_PER_REPEAT_MAX + 5):
        denials.add("fetch", action(str(number)), DEFAULT, 1)
    with capture_logs() as logs:
        for call in timers.due(1 + REPEAT_MS):
            call()
    assert [(line["event"], line["denials"]) for line in logs] == [(OMITTED, 5)]
    assert len(timers) == 0


def test_a_long_name_is_cut() -> None:
    denials = Denials(TimerHeap().at)
    with capture_logs() as logs:
        denials.add("fetch", action("x" * 30_000), DEFAULT, 0)
    assert len(logs[0]["resource"]) == NAME_CHARS_MAX
    assert all(len(each.name) <= NAME_CHARS_MAX for each in denials._counts)


def test_neither_log_nor_memory_grow_with_the_number_of_resources() -> None:
    denials = Denials(TimerHeap().at)
    with capture_logs() as logs:
        for number in range(EVENTS_PER_REPEAT_MAX + REMEMBERED_MAX):
            denials.add("fetch", action(str(number)), DEFAULT, 1)
    assert len(logs) == EVENTS_PER_REPEAT_MAX
    assert len(denials._counts) <= REMEMBERED_MAX
    with capture_logs() as logs:
        for number in range(REMEMBERED_MAX + 10):
            denials.add("fetch", action(str(number)), DEFAULT, (number + 1) * REPEAT_MS)
    assert len(denials._counts) <= REMEMBERED_MAX


def test_denials_that_a_flood_leaves_no_event_for_are_counted_in_one() -> None:
    denials = Denials(TimerHeap().at)
    with capture_logs() as logs:
        for ms in (0, 1, REPEAT_MS):
            for number in range(EVENTS_PER_REPEAT_MAX):
                denials.add("fetch", action(f"flood {ms} {number}"), DEFAULT, ms)
                denials.add("fetch", action(f"flood {ms} {number}"), DEFAULT, ms)
            denials.add("fetch", action("orders"), DEFAULT, ms)
        denials.add("fetch", action("last"), DEFAULT, 2 * REPEAT_MS)
    omitted = [line["denials"] for line in logs if line["event"] == OMITTED]
    assert len(omitted) == 2
    counted = sum(1 + line["repeated"] for line in logs if line["event"] != OMITTED) + sum(omitted)
    assert counted + sum(count.unwritten for count in denials._counts.values()) + denials._omitted == denials.total
    assert len(logs) <= 2 * EVENTS_PER_REPEAT_MAX + 1 + len(omitted)
