"""The timeline of a group of the consumer protocol has the events of a classic one."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.talk import EVENT_MEMBER, Talk

from rota.coordinator.group.timeline_event import event_of
from rota.protocol.group_timeline import EventType, Trigger


def test_a_life_of_a_group() -> None:
    talk = Talk()
    talk.join("a", "t")
    talk.topics.set("t", 5)
    talk.beat("a", 2)
    talk.leave("a")
    found = [event_of(note, 0, 0) for note in talk.written]
    assert [EventType(event.type) for event in found if event is not None] == [
        EventType.MEMBER_JOINED,
        EventType.REBALANCE_STARTED,
        EventType.ASSIGNED,
        EventType.REBALANCE_STARTED,
        EventType.ASSIGNED,
        EventType.MEMBER_LEFT,
        EventType.REBALANCE_STARTED,
        EventType.EMPTIED,
    ]
    started = talk.noted("Preparing to rebalance group")
    assert [each["trigger"] for each in started] == [Trigger.MEMBER_JOINED, Trigger.TOPICS_CHANGED, Trigger.MEMBER_LEFT]
    assert [each["generation"] for each in started] == [1, 2, 3]
    assert started[0]["members"] == (EVENT_MEMBER,)


def test_a_replaced_static_member_and_a_loaded_group() -> None:
    talk = Talk()
    talk.join("a", "t", instance="i")
    talk.leave("a", -2, instance="i")
    talk.join("b", "t", instance="i")
    assert talk.noted("Static member with unknown member id joins group and replaces the member of its instance")
    assert talk.restarted().noted("Loaded group")[0]["members"] == 1
