"""The notes that a member emits (R27): a whole life, in order."""

from __future__ import annotations

from tests.unit.client.group.script import (
    ENDED,
    FOUND,
    POLL,
    RETURNING,
    Done,
    Script,
    fires,
    heartbeat_reply,
    join_refused,
    joined,
    left,
    synced,
)

from rota.client.group import notes
from rota.client.group.events import Close
from rota.protocol.errors import ErrorCode

E = ErrorCode


def test_the_events_of_a_membership_are_emitted_in_order() -> None:
    script = Script().does(
        *(POLL, FOUND, join_refused(E.MEMBER_ID_REQUIRED, "a"), joined(1, leader="a"), synced("t-0", "t-1"), Done()),
        *(ENDED, RETURNING, fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS)),
        *(POLL, Done(), Done(), joined(2), synced("t-0"), Done(), ENDED, RETURNING),
        *(Close("the consumer is being closed"), Done(), Done(), left()),
    )
    answer = [(note.event, note.fields["member"], note.fields["generation"]) for note in script.notes]
    assert answer == [
        (notes.DISCOVERED, "", -1),
        (notes.JOINING, "", -1),
        (notes.JOIN_FAILED, "", -1),
        (notes.JOINING, "a", -1),
        (notes.JOINED, "a", 1),
        (notes.FINISHED_ASSIGNMENT, "a", 1),
        (notes.SYNCED, "a", 1),
        (notes.ASSIGNMENT, "a", 1),
        (notes.ADDING, "a", 1),
        (notes.REBALANCING, "a", 1),
        (notes.REQUEST_JOINING, "a", 1),
        (notes.REVOKING, "a", 1),
        (notes.JOINING, "a", 1),
        (notes.JOINED, "a", 2),
        (notes.SYNCED, "a", 2),
        (notes.ASSIGNMENT, "a", 2),
        (notes.ADDING, "a", 2),
        (notes.REVOKING, "a", 2),
        (notes.LEAVING, "a", 2),
        (notes.LEFT, "a", 2),
        (notes.CLOSED, "a", 2),
    ]
    assert all(note.fields["group"] == "g" for note in script.notes)
