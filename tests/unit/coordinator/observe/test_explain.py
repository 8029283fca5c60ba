"""Events become rebalances, and those become sentences."""

from __future__ import annotations

import json

from tests.unit.coordinator.observe.events import START_MS, Timeline, member

from rota.coordinator.observe.explain import (
    as_json,
    event_sentence,
    members_named,
    partitions_named,
    sentences,
)
from rota.coordinator.observe.rebalances import Outcome, rebalances
from rota.protocol.group_timeline import EventType, GroupEvent, Move, MovedPartitions, Trigger


def rebalance_of_two() -> Timeline:
    """b joins the group of a, which takes 2 s to join again."""
    a, b = member("a-1"), member("b-1", host="/10.0.0.2")
    timeline = Timeline().add(EventType.MEMBER_JOINED, b)
    timeline.add(
        EventType.REBALANCE_STARTED,
        b,
        trigger=Trigger.MEMBER_JOINED,
        generation=4,
        previous_state="Stable",
        client_reason="rebalance enforced",
    )
    timeline.add(
        EventType.GENERATION_STARTED,
        member("a-1", wait_ms=2_000),
        generation=5,
        duration_ms=2_000,
        leader="a-1",
        member_count=2,
        protocol="range",
    )
    moves = (
        Move(
            member_id="a-1",
            lost_count=1,
            kept_count=1,
            lost=(MovedPartitions(topic="t", partitions=(1,)),),
            kept=(MovedPartitions(topic="t", partitions=(0,)),),
        ),
        Move(member_id="b-1", gained_count=1, gained=(MovedPartitions(topic="t", partitions=(1,)),)),
    )
    return timeline.add(
        EventType.ASSIGNED, a, generation=5, duration_ms=30, member_count=2, moves=moves, protocol="range"
    )


def test_a_rebalance_has_its_trigger_its_phases_and_the_moved_partitions() -> None:
    (rebalance,) = rebalances(rebalance_of_two().events)
    assert (rebalance.outcome, rebalance.from_generation, rebalance.generation) == (Outcome.STABLE, 4, 5)
    assert [who.member_id for who in rebalance.triggered_by] == ["b-1"]
    assert (rebalance.joins_ms, rebalance.assignment_ms) == (2_000, 30)
    assert [who.member_id for who in rebalance.waited_for] == ["a-1"]
    assert rebalance.leader is not None
    assert rebalance.leader.member_id == "a-1"
    assert sentences(rebalance) == (
        "2023-11-14 22:13:22: the group left generation 4 because member b (10.0.0.2) joined. "
        + 'The client\'s reason: "rebalance enforced".',
        "Waiting for members to join took 2.0 s: the last to join was member a (10.0.0.1), after 2.0 s.",
        "The leader, member a (10.0.0.1), assigned the partitions with range in 30 ms.",
        "Partitions: 1 gained, 1 lost, 1 kept (member a (10.0.0.1) lost t-1; member b (10.0.0.2) gained t-1).",
        "Generation 5 has 2 members; the rebalance took 2.0 s.",
    )


def test_a_rebalance_that_another_one_interrupts() -> None:
    timeline = Timeline().add(EventType.REBALANCE_STARTED, member("a-1"), trigger=Trigger.MEMBER_JOINED, generation=1)
    timeline.add(EventType.MEMBER_EXPIRED, member("c-1"))
    timeline.add(EventType.REBALANCE_STARTED, member("b-1"), trigger=Trigger.MEMBER_LEFT, generation=2)
    first, second = rebalances(timeline.events)
    assert (first.outcome, second.outcome) == (Outcome.INTERRUPTED, Outcome.UNDER_WAY)
    assert "Member c (10.0.0.1) stopped sending heartbeats meanwhile." in sentences(first)
    assert sentences(second)[-1] == "It is still under way."


def test_a_new_coordinator_interrupts_a_rebalance() -> None:
    timeline = Timeline().add(EventType.REBALANCE_STARTED, member("a-1"), trigger=Trigger.MEMBER_JOINED, generation=1)
    timeline.add(EventType.LOADED, broker=2)
    timeline.add(EventType.REBALANCE_STARTED, trigger=Trigger.LOADED_UNASSIGNED, generation=1)
    timeline.add(EventType.EMPTIED, generation=2, duration_ms=5)
    first, second = rebalances(timeline.events)
    assert (first.outcome, second.outcome) == (Outcome.INTERRUPTED, Outcome.EMPTY)
    assert "its coordinator stopped" in sentences(second)[0]
    assert sentences(second)[-1] == "No member is left: the group is empty."


def test_the_wait_of_an_empty_group_is_its_initial_delay() -> None:
    timeline = Timeline()
    timeline.add(
        EventType.REBALANCE_STARTED,
        member("a-1"),
        trigger=Trigger.MEMBER_JOINED,
        generation=0,
        previous_state="Empty",
    )
    timeline.add(EventType.GENERATION_STARTED, generation=1, duration_ms=3_000, leader="a-1", member_count=1)
    (rebalance,) = rebalances(timeline.events)
    assert "group.initial.rebalance.delay.ms" in sentences(rebalance)[1]
    assert rebalance.leader is not None


def test_unknown_events_and_triggers_do_no_harm() -> None:
    timeline = Timeline().add(EventType.REBALANCE_STARTED, trigger="by-moonlight", reason="Full moon", generation=1)
    timeline.events.append(GroupEvent(time_ms=START_MS, type=999))
    (rebalance,) = rebalances(timeline.events)
    assert "because Full moon." in sentences(rebalance)[0]
    assert event_sentence(timeline.events[-1]) == "Event 999."


def test_every_type_of_event_has_a_sentence() -> None:
    for event_type in EventType:
        text = event_sentence(GroupEvent(time_ms=START_MS, type=event_type, members=(member("a-1"),), count=1))
        assert text.endswith(".")
        assert not text.startswith("Event ")


def test_many_members_and_partitions_are_counted() -> None:
    members = tuple(member(f"{name}-1", instance=name) for name in "abcde")
    assert members_named(members).endswith("static member c (10.0.0.1) and 2 more")
    assert members_named(()) == "a member"
    topics = (MovedPartitions(topic="t", partitions=tuple(range(9))),)
    assert partitions_named(topics, 12) == "t-0 t-1 t-2 t-3 t-4 t-5 and 6 more"


def test_everything_can_be_written_as_json() -> None:
    (rebalance,) = rebalances(rebalance_of_two().events)
    plain = json.loads(json.dumps(as_json(rebalance)))
    assert plain["events"][0]["name"] == "rebalance-started"
    assert plain["moves"][1]["gained"] == [{"topic": "t", "partitions": [1]}]
    assert len(plain["sentences"]) == 5


def test_a_second_step_of_a_cooperative_rebalance_is_not_called_new_topics() -> None:
    """The members that gave partitions up join again, with other owned partitions; the leader may be one of them."""
    reason = "need to revoke partitions and re-join"
    for trigger, words in (
        (Trigger.LEADER_REJOINED, "or goes on with a cooperative rebalance"),
        (Trigger.METADATA_CHANGED, "or partitions that it owns"),
    ):
        timeline = Timeline().add(
            EventType.REBALANCE_STARTED, member("a-1"), trigger=trigger, client_reason=reason, generation=1
        )
        (rebalance,) = rebalances(timeline.events)
        assert words in sentences(rebalance)[0]
        assert f'"{reason}"' in sentences(rebalance)[0]


def rebalance_by_the_broker() -> Timeline:
    """b joins a group of the consumer protocol: the broker assigns, and no generation begins."""
    b = member("b-5f7a", host="/10.0.0.2")
    timeline = Timeline().add(EventType.MEMBER_JOINED, b)
    reason = "Member b-5f7a joins the consumer group."
    timeline.add(
        EventType.REBALANCE_STARTED,
        b,
        trigger=Trigger.MEMBER_JOINED,
        reason=reason,
        generation=2,
        previous_state="Stable",
    )
    return timeline.add(EventType.ASSIGNED, generation=3, duration_ms=0, member_count=2, protocol="uniform")


def test_tl11_the_broker_assigns_in_a_group_of_the_consumer_protocol() -> None:
    events = rebalance_by_the_broker().events
    (rebalance,) = rebalances(events)
    assert (rebalance.from_generation, rebalance.generation, rebalance.outcome) == (2, 3, Outcome.STABLE)
    why, assigned, result = sentences(rebalance)
    assert why.endswith("the group left group epoch 2 because member b (10.0.0.2) joined.")
    assert assigned == "The broker assigned the partitions with uniform in 0 ms."
    assert result.startswith("Group epoch 3 has 2 members; its target assignment was there after ")
    assert [event_sentence(event) for event in events[1:]] == [
        "A rebalance started: Member b joins the consumer group.",
        "The broker assigned the partitions of group epoch 3 with uniform.",
    ]


def test_tl11_a_group_that_empties_has_waited_for_nobody() -> None:
    timeline = Timeline().add(
        EventType.REBALANCE_STARTED, member("a-1"), trigger=Trigger.MEMBER_LEFT, generation=4, previous_state="Empty"
    )
    (rebalance,) = rebalances(timeline.add(EventType.EMPTIED, generation=5, duration_ms=0).events)
    assert [line for line in sentences(rebalance) if "Waiting" in line] == []
    assert sentences(rebalance)[-1] == "No member is left: the group is empty."
