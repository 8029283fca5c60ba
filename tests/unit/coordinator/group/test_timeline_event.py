"""What a group decides becomes the events of its timeline: who, why, how long, what moved."""

from __future__ import annotations

from tests.unit.coordinator.group.script import (
    SUBSCRIPTION,
    Script,
    commit,
    completing,
    fires,
    join,
    leave,
    stable,
    sync,
)
from tests.unit.coordinator.group.test_moves import part

from rota.coordinator.group import notes
from rota.coordinator.group.events import InstanceId, MemberId, Proto
from rota.coordinator.group.timeline_event import MEMBERS_MAX, TEXT_CHARS_MAX, TYPES, brief, event_of
from rota.coordinator.runtime.contract import Note
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember, EventType, GroupEvent, Move, Trigger


def events(script: Script) -> list[GroupEvent]:
    """Return the events of a conversation, and forget them."""
    found = [event for note in script.notes if (event := event_of(note, 5, 1)) is not None]
    script.notes.clear()
    return found


def of_type(script: Script, event_type: EventType) -> GroupEvent:
    (found,) = [event for event in events(script) if event.type == event_type]
    return found


def test_a_rebalance_names_its_trigger_and_the_members_reason() -> None:
    script = stable("a").after(10)
    script.does(join(5, new="b", reason="scaled up"))
    joined, started = events(script)
    assert (joined.type, joined.members[0].client_id, joined.client_reason) == (
        EventType.MEMBER_JOINED,
        "client",
        "scaled up",
    )
    assert (started.trigger, started.previous_state, started.client_reason) == (
        Trigger.MEMBER_JOINED,
        "Stable",
        "scaled up",
    )
    assert [(who.member_id, who.client_host) for who in started.members] == [("b", "/127.0.0.1")]
    assert started.generation == 1


def test_the_generation_event_has_the_wait_of_each_member() -> None:
    script = stable("a", "b").after(10)
    script.does(join(5, new="c")).after(200).does(join(6, "b")).after(300).does(join(7, "a"))
    generation = of_type(script, EventType.GENERATION_STARTED)
    assert (generation.duration_ms, generation.member_count, generation.leader) == (500, 3, "a")
    assert [(who.member_id, who.wait_ms) for who in generation.members] == [("a", 500), ("b", 200)]


def test_the_wait_for_the_assignment_and_its_moves() -> None:
    script = completing("a")
    script.does(sync(1, "a", 1, {"a": part(0, 1)})).does(join(2, new="b")).does(join(3, "a"))
    events(script)
    script.after(700).does(sync(4, "a", 2, {"a": part(0), "b": part(1)}))
    assigned = of_type(script, EventType.ASSIGNED)
    assert (assigned.duration_ms, assigned.partition_count, assigned.protocol) == (700, 2, "range")
    assert [who.member_id for who in assigned.members] == ["a"]
    assert [(move.member_id, move.gained_count, move.lost_count, move.kept_count) for move in assigned.moves] == [
        ("a", 0, 1, 1),
        ("b", 1, 0, 0),
    ]


def test_moves_are_known_across_a_restart_of_a_stable_group() -> None:
    script = completing("a").does(sync(1, "a", 1, {"a": part(0, 1)})).reloaded()
    script.out.clear()
    assert of_type(script, EventType.LOADED).generation == 1
    script.does(join(2, new="b")).does(join(3, "a"))
    script.does(sync(4, "a", 2, {"a": part(0), "b": part(1)}))
    assert [move.kept_count for move in of_type(script, EventType.ASSIGNED).moves] == [1, 0]


def test_moves_are_unknown_after_a_restart_without_assignment() -> None:
    script = completing("a", "b").reloaded()
    script.out.clear()
    loaded, started = events(script)
    assert (loaded.type, started.trigger) == (EventType.LOADED, Trigger.LOADED_UNASSIGNED)
    script.does(join(2, "a")).does(join(3, "b")).does(sync(4, "a", 2, {"a": part(0), "b": part(1)}))
    assigned = of_type(script, EventType.ASSIGNED)
    assert (assigned.moves, assigned.partition_count) == ((), 2)


def test_an_assignment_of_another_protocol_has_only_members() -> None:
    script = Script().does(join(1, new="a", protocol_type="connect")).does(fires("join"))
    script.does(sync(2, "a", 1, {"a": b"??"}, protocol_type="connect"))
    assigned = of_type(script, EventType.ASSIGNED)
    assert (assigned.moves, assigned.partition_count, assigned.member_count) == ((), -1, 1)


def test_leaving_and_expired_members_have_events() -> None:
    script = stable("a", "b", "c").does(leave(9, "c", reason="closed"))
    left, started = events(script)
    assert (left.type, left.client_reason, left.members[0].member_id) == (EventType.MEMBER_LEFT, "closed", "c")
    assert (started.trigger, started.client_reason, started.members) == (Trigger.MEMBER_LEFT, "closed", left.members)
    script.does(join(10, "a")).after(10_000).does(fires("session:b"))
    expired = of_type(script, EventType.MEMBER_EXPIRED)
    assert (expired.members[0].member_id, expired.reason) == ("b", "removing member b on heartbeat expiration.")
    script = stable("a", "b").does(join(10, "a")).after(60_000).does(fires("join"))
    late = of_type(script, EventType.MEMBERS_NOT_REJOINED)
    assert [who.member_id for who in late.members] == ["b"]


def test_a_member_that_does_not_sync_triggers_a_rebalance() -> None:
    script = completing("a", "b").does(sync(1, "a", 1, {})).after(60_000).does(fires("sync"))
    late, started = [event for event in events(script) if event.type != EventType.ASSIGNED]
    assert (late.type, started.trigger) == (EventType.MEMBERS_NOT_SYNCED, Trigger.SYNC_TIMEOUT)
    assert [who.member_id for who in started.members] == ["b"]


def test_a_static_id_that_is_used_twice_is_logged_with_both_members() -> None:
    script = stable("a", instances=True).does(join(5, new="a2", instance="i-a"))
    replaced = events(script)[0]
    assert replaced.type == EventType.STATIC_MEMBER_REPLACED
    assert [who.member_id for who in replaced.members] == ["a2", "a"]
    script.notes += [
        effect
        for effect in script.group.fenced_heartbeat(MemberId("a"), InstanceId("i-a"), 0, 0)
        if isinstance(effect, Note)
    ]
    fenced = of_type(script, EventType.REQUESTS_REFUSED)
    assert (fenced.operation, fenced.error_code) == ("heartbeat", ErrorCode.FENCED_INSTANCE_ID)
    assert (fenced.members[0].member_id, fenced.count) == ("a", 1)


def test_refused_commits_are_counted() -> None:
    script = stable("a")
    for _ in range(25):
        script.does(commit(-5, "a", 7))
    assert [event.count for event in events(script)] == [1, 10]
    script.does(join(6, "a", reason="again"))
    last = events(script)[1]
    assert (last.type, last.count, last.error_code) == (EventType.REQUESTS_REFUSED, 25, ErrorCode.ILLEGAL_GENERATION)


def test_commits_to_a_group_that_does_not_exist_leave_no_event() -> None:
    script = Script()
    script.does(commit(-5, "a", 7))
    assert events(script) == []


def test_a_refused_member_event_names_its_assignors() -> None:
    script = stable("a")
    for _ in range(5):
        script.does(join(-5, new="b", protocols=(Proto("sticky", SUBSCRIPTION),)))
    (refused,) = events(script)
    assert (refused.type, refused.error_code) == (EventType.MEMBER_REFUSED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert refused.reason == "it supports sticky; the group's members share range"
    script.does(join(-5, new="b", protocol_type="connect"))
    assert events(script) == []


def test_every_note_but_that_of_a_given_id_is_an_event() -> None:
    texts = {value for name, value in vars(notes).items() if name.isupper()}
    assert texts - set(TYPES) == {notes.MEMBER_ID_REQUIRED}


def test_texts_and_lists_are_cut() -> None:
    members = tuple(EventMember(member_id="m" * 999) for _ in range(MEMBERS_MAX + 1))
    event = event_of(Note(notes.LEFT, {"client_reason": "x" * 30_000}, {"members": members}), 5, 1)
    assert event is not None
    assert (len(event.client_reason or ""), len(event.members)) == (TEXT_CHARS_MAX, MEMBERS_MAX)
    assert len(event.members[0].member_id) == TEXT_CHARS_MAX
    assert len(str(brief(Note(notes.LEFT, {"reason": "x" * 30_000})).fields["reason"])) == TEXT_CHARS_MAX
    short = Note(notes.LEFT, {"reason": "a new member"})
    assert brief(short) is short


def test_member_ids_of_moves_and_of_lists_in_the_log_are_cut() -> None:
    moves = (Move(member_id="ü" * 4_096, gained_count=1), Move(member_id="a"))
    event = event_of(Note(notes.ASSIGNED, {}, {"moves": moves}), 5, 1)
    assert event is not None
    assert [len(move.member_id) for move in event.moves] == [TEXT_CHARS_MAX, 1]
    assert event.moves[0].gained_count == 1
    ids = ["x" * 4_096] * (MEMBERS_MAX + 2)
    named = brief(Note(notes.NOT_REJOINED, {"members": ids})).fields["members"]
    assert isinstance(named, list)
    assert [len(each) for each in named[:-1]] == [TEXT_CHARS_MAX] * MEMBERS_MAX
    assert named[-1] == "and 2 more"
