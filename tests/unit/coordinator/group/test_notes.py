"""The notes that a group emits (R27): a whole life, in order."""

from __future__ import annotations

from tests.unit.coordinator.group.script import Script, fires, join, leave, sync

from rota.coordinator.group import notes


def test_the_events_of_a_group_are_logged_in_order() -> None:
    script = Script()
    events = [
        join(1, new="a", known=True),
        join(2, "a"),
        fires("join"),
        sync(3, "a", 1, {"a": b"0"}),
        join(4, new="b", known=True),
        join(5, "b", reason="scaled up"),
        join(6, "a", reason="group is already rebalancing"),
        sync(7, "a", 2, {}),
        sync(8, "b", 2),
        leave(9, "a", reason="the consumer is being closed"),
        join(10, "b"),
        sync(11, "b", 3, {}),
    ]
    for event in events:
        script.does(event)
    script.after(10_000).does(fires("session:b"))
    assert [(note.event, note.fields.get("generation"), note.fields.get("member")) for note in script.notes] == [
        (notes.MEMBER_ID_REQUIRED, None, "a"),
        (notes.PENDING_JOINED, None, "a"),
        (notes.PREPARING, 0, None),
        (notes.STABILIZED, 1, None),
        (notes.ASSIGNED, 1, None),
        (notes.MEMBER_ID_REQUIRED, None, "b"),
        (notes.PENDING_JOINED, None, "b"),
        (notes.PREPARING, 1, None),
        (notes.STABILIZED, 2, None),
        (notes.ASSIGNED, 2, None),
        (notes.LEFT, None, "a"),
        (notes.PREPARING, 2, None),
        (notes.STABILIZED, 3, None),
        (notes.ASSIGNED, 3, None),
        (notes.FAILED, 3, "b"),
        (notes.PREPARING, 3, None),
        (notes.NOW_EMPTY, 4, None),
    ]
    assert [note.fields["reason"] for note in script.notes if note.event == notes.PREPARING] == [
        "Adding new member a with group instance id None",
        "Adding new member b with group instance id None",
        "explicit `LeaveGroup` request for (a) members.",
        "removing member b on heartbeat expiration.",
    ]
    assert all(note.fields["group"] == "g" and "state" in note.fields for note in script.notes)
