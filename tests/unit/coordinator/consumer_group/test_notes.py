"""The timeline of a group of the consumer protocol has the events of a classic one."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.script import EVENT_MEMBER, REBALANCE_MS, Script, TopicsInMemory
from tests.unit.coordinator.observe.consumer_life import ConsumerLife, of_one

from rota.coordinator.group.moves import PARTITIONS_COMPARED_MAX
from rota.coordinator.group.notes import RECONCILED
from rota.coordinator.group.timeline_event import event_of
from rota.coordinator.runtime.contract import Note
from rota.protocol.group_timeline import EventType, GroupEvent, MovedPartitions, Trigger


def test_a_life_of_a_group() -> None:
    script = Script()
    script.join("a", "t")
    script.topics.set("t", 5)
    script.heartbeat("a", 2)
    script.leave("a")
    found = [event_of(note, 0, 0) for note in script.written]
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
    started = script.noted("Preparing to rebalance group")
    assert [each["trigger"] for each in started] == [Trigger.MEMBER_JOINED, Trigger.TOPICS_CHANGED, Trigger.MEMBER_LEFT]
    assert [each["generation"] for each in started] == [1, 2, 3]
    assert started[0]["members"] == (EVENT_MEMBER,)


def test_a_replaced_static_member_and_a_loaded_group() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    script.leave("a", -2, instance="i")
    script.join("b", "t", instance="i")
    assert script.noted("Static member with unknown member id joins group and replaces the member of its instance")
    assert script.restarted().noted("Loaded group")[0]["members"] == 1


def test_an_assignment_moves_partitions_by_name() -> None:
    life = of_one()
    life.joins("b-1")
    moves = {move.member_id: move for move in _last(life, EventType.ASSIGNED).moves}
    assert (moves["a-1"].gained_count, moves["a-1"].lost_count, moves["a-1"].kept_count) == (0, 2, 2)
    assert moves["b-1"].gained == moves["a-1"].lost == (MovedPartitions(topic="t", partitions=(2, 3)),)
    life.leaves("b-1").live(5_000, "a-1")
    moves = {move.member_id: move for move in _last(life, EventType.ASSIGNED).moves}
    assert moves["b-1"].lost == moves["a-1"].gained == (MovedPartitions(topic="t", partitions=(2, 3)),)


def test_a_static_member_that_is_replaced_moves_nothing() -> None:
    life = ConsumerLife()
    life.joins("a-1", instance="i")
    life.leaves("a-1", -2, instance="i").joins("a-2", instance="i")
    life.script.topics.set("t", 5)
    life.live(5_000, "a-2")
    (move,) = _last(life, EventType.ASSIGNED).moves
    assert (move.member_id, move.gained_count, move.lost_count, move.kept_count) == ("a-2", 1, 0, 4)


def test_partitions_of_a_deleted_topic_are_lost_by_its_id() -> None:
    life = of_one()
    life.script.topics.delete("t")
    life.live(5_000, "a-1")
    (move,) = _last(life, EventType.ASSIGNED).moves
    assert (move.lost_count, move.lost[0].topic) == (4, "dAAAAAAAAAAAAAAAAAAAAA")


def test_an_assignment_that_is_too_large_to_be_compared_has_its_count_alone() -> None:
    life = of_one(partitions=PARTITIONS_COMPARED_MAX + 1)
    assigned = _last(life, EventType.ASSIGNED)
    assert (assigned.moves, assigned.partition_count) == ((), PARTITIONS_COMPARED_MAX + 1)


def test_tl12_a_reconciliation_names_who_has_to_revoke_and_how_long_it_took() -> None:
    life = of_one()
    life.joins("b-1")
    started = _last(life, EventType.RECONCILIATION_STARTED)
    assert ([member.member_id for member in started.members], started.count) == (["a-1"], 1)
    life.after(3_000).heartbeats("a-1", revokes=False)
    life.after(4_000).heartbeats("a-1")
    assert life.events[-1] == started  # b has not fetched its partitions
    life.after(1_000).heartbeats("b-1")
    done = _last(life, EventType.RECONCILED)
    assert (done.duration_ms, done.state, done.generation) == (8_000, "Stable", 3)
    assert [(member.member_id, member.wait_ms) for member in done.members] == [("a-1", 4_000)]


def test_tl12_what_an_interrupted_reconciliation_took_is_in_the_next_one() -> None:
    life = of_one()
    life.joins("b-1")
    life.heartbeats("a-1", revokes=False).after(4_000).heartbeats("a-1").joins("c-1")
    life.after(5_000).heartbeats("a-1", "b-1", "c-1").after(5_000).heartbeats("a-1", "b-1", "c-1")
    waits = {member.member_id: member.wait_ms for member in _last(life, EventType.RECONCILED).members}
    assert waits["a-1"] == 4_000


def test_a_group_without_work_to_do_has_no_reconciliation_and_a_stable_assignment() -> None:
    life = of_one()
    assert _last(life, EventType.ASSIGNED).state == "Stable"
    assert EventType.RECONCILIATION_STARTED not in [event.type for event in life.events]


def test_a_heartbeat_of_a_member_that_is_still_revoking_adds_no_event() -> None:
    life = of_one()
    life.joins("b-1")
    life.after(1_000).heartbeats("a-1", revokes=False)
    before = len(life.events)
    for _ in range(5):
        life.after(1_000).heartbeats("a-1", revokes=False).heartbeats("b-1")
    assert len(life.events) == before


def test_a_member_that_does_not_revoke_in_time_leaves_for_that() -> None:
    life = ConsumerLife()
    life.joins("a-1", rebalance_ms=10_000)
    life.joins("b-1")
    life.after(2_000).heartbeats("a-1", revokes=False)
    life.after(5_000).heartbeats("a-1", revokes=False).after(5_000)
    removed, started = life.events[-2:]
    assert (removed.type, removed.members[0].wait_ms) == (EventType.MEMBERS_NOT_REVOKED, 10_000)
    assert "failed to transition from epoch 2 within 10000ms" in removed.reason
    assert (started.type, started.trigger) == (EventType.REBALANCE_STARTED, Trigger.REVOCATION_TIMEOUT)


def test_a_static_member_that_is_away_is_waited_for() -> None:
    life = ConsumerLife()
    life.joins("a-1", instance="i")
    life.joins("b-1")
    life.leaves("a-1", -2, instance="i")
    life.live(10_000, "b-1")
    assert EventType.RECONCILED not in [event.type for event in life.events]
    life.joins("a-2", instance="i")
    life.live(10_000, "a-2", "b-1")
    assert life.events[-1].type == EventType.RECONCILED


def test_tl13_a_reconciliation_goes_on_with_another_coordinator() -> None:
    script = Script()
    script.join("a", "t")
    script.join("b", "t")
    other = script.restarted()
    other.heartbeat("a", 2)
    other.heartbeat("a", 2, owned={"t": (0, 1)})
    other.heartbeat("b", 3)
    names = [event.name for event in map(_type_of, other.written) if event is not None]
    assert names == ["LOADED", "RECONCILIATION_STARTED", "RECONCILED"]
    assert other.restarted().noted("Members move to the target assignment") == []


def test_tl15_the_wait_for_a_target_does_not_have_the_time_in_which_the_group_was_empty() -> None:
    life = of_one()
    life.after(5_000).leaves("a-1").after(3_600_000).joins("a-2")
    assert _last(life, EventType.ASSIGNED).duration_ms == 0


def test_tl15_the_wait_for_a_target_begins_again_with_another_coordinator() -> None:
    life = of_one()
    life.joins("b-1")
    life.live(3_600_000, "a-1", "b-1").leaves("b-1")
    life.restarts().after(1_000).heartbeats("a-1")
    assert _last(life, EventType.ASSIGNED).duration_ms == 1_000


def test_tl15_partitions_of_a_changed_expression_are_revoked_in_a_time_of_their_own() -> None:
    script = Script(TopicsInMemory(t=2, u=2))
    owned = {"t": (0, 1), "u": (0, 1)}
    script.heartbeat("a", 0, names=(), regex="t|u", owned={}, rebalance_ms=REBALANCE_MS)
    script.advance(0)
    epoch = script.heartbeat("a", 2).member_epoch
    for _ in range(720):
        script.advance(5_000)
        script.heartbeat("a", epoch)
    assert script.assigned("a") == {"t": {0, 1}, "u": {0, 1}}
    script.heartbeat("a", epoch, regex="t.*", owned=owned)  # its topics are looked for after this
    script.heartbeat("a", epoch, owned={})
    assert [note["duration_ms"] for note in script.noted(RECONCILED)] == [0]


def _type_of(note: Note) -> EventType | None:
    event = event_of(note, 0, 0)
    return None if event is None else EventType(event.type)


def _last(life: ConsumerLife, event_type: EventType) -> GroupEvent:
    return next(event for event in reversed(life.events) if event.type == event_type)
