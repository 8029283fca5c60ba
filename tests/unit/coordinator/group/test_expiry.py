"""How offsets and groups end."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.group.script import (
    GROUP,
    Script,
    commit,
    completing,
    disarm,
    empty,
    fires,
    forgotten,
    join,
    leave,
    preparing,
    refuse,
    reply,
    stable,
    topics_deleted,
)

from rota.coordinator.group import notes
from rota.coordinator.group.effects import Append, GroupRecord
from rota.coordinator.group.events import (
    Commit,
    DeleteGroup,
    ExpireOffsets,
    MemberId,
    OffsetRecord,
    OffsetValue,
    Proto,
    Token,
)
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

WEEK_MS = 604_800_000
TOMBSTONE = Append(GroupRecord(GROUP, None))
LOOK = ExpireOffsets(WEEK_MS)


def test_offsets_expire_a_week_after_the_group_became_empty_and_the_group_is_deleted() -> None:
    script = stable("a").does(commit(1, "a", 1)).after(50).does(leave(2, "a")).after(WEEK_MS - 1)
    assert script >> LOOK
    assert script.after(1) >> LOOK << forgotten() << TOMBSTONE
    assert script.is_in(GroupState.DEAD, 0).group.is_vacant
    script.emitted(notes.DELETED, offsets=1)


def test_a_crash_does_not_prolong_them() -> None:
    script = stable("a").does(commit(1, "a", 1)).after(50).does(leave(2, "a")).after(WEEK_MS).reloaded()
    assert script >> LOOK << forgotten() << TOMBSTONE


def test_the_offsets_of_simple_consumers_expire_a_week_after_each_commit() -> None:
    script = Script().does(commit(1)).after(10).does(commit(2, topic="u")).after(WEEK_MS - 10)
    assert script >> LOOK << forgotten()
    script.is_in(GroupState.EMPTY, 0).emitted(notes.OFFSETS_EXPIRED, offsets=1)
    assert script.after(10) >> LOOK << forgotten("u") << TOMBSTONE


@pytest.mark.parametrize("script", [stable("a"), preparing("a")])
def test_the_offsets_of_a_group_that_is_not_empty_do_not_expire(script: Script) -> None:
    script.does(commit(1, "a", 1)).after(2 * WEEK_MS)
    assert script >> LOOK


def test_not_even_between_generation_and_assignment() -> None:
    script = stable("a").does(commit(1, "a", 1)).does(join(2, "a")).is_in(GroupState.COMPLETING, 2)
    assert script.after(2 * WEEK_MS) >> LOOK


def test_but_those_of_a_topic_that_no_member_wants_any_more_do() -> None:
    script = stable("a").does(commit(1, "a", 1)).does(commit(2, "a", 1, topic="u")).after(WEEK_MS)
    assert script >> LOOK << forgotten("u")
    script.is_in(GroupState.STABLE, 1)
    assert script.group.offsets.keys() == {("t", 0)}


def test_a_group_of_another_kind_keeps_its_offsets_while_it_has_members() -> None:
    connect = (Proto("v1", b""),)
    script = Script().does(join(1, new="a", protocol_type="connect", protocols=connect)).does(fires("join"))
    assert script.group.step(LOOK, 0) == []


def test_a_retention_that_the_client_gave_counts_alone() -> None:
    event = Commit(
        token=Token(1),
        member_id=MemberId(""),
        instance_id=None,
        generation=-1,
        records=(
            OffsetRecord("g", "t", 0, OffsetValue(1, -1, "", 0, 500)),
            OffsetRecord("g", "u", 0, OffsetValue(1, -1, "", 0, 2 * WEEK_MS)),
        ),
    )
    script = Script().does(event).after(499)
    assert script >> LOOK
    assert script.after(1) >> LOOK << forgotten()
    assert script.after(WEEK_MS) >> LOOK


def test_an_empty_group_without_offsets_is_deleted_at_the_next_expiry_check() -> None:
    assert stable("a").does(leave(1, "a")) >> LOOK << TOMBSTONE
    assert empty() >> LOOK << TOMBSTONE


def test_but_not_while_an_id_was_given_that_may_still_be_used() -> None:
    assert Script().does(join(1, new="a", known=True)) >> LOOK


def test_an_unknown_group_does_not_expire() -> None:
    assert Script() >> LOOK


def test_a_group_that_has_members_does_not_end_for_want_of_offsets() -> None:
    for script in (stable("a"), completing("a"), preparing("a")):
        assert script >> LOOK


# ---- DeleteGroups


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    script = stable("a").does(commit(1, "a", 1)).does(leave(2, "a"))
    assert script >> DeleteGroup(Token(3)) << forgotten() << TOMBSTONE << reply(3, ErrorCode.NONE)
    assert script.group.is_vacant
    assert not script.group.offsets


def test_a_pending_id_does_not_keep_it() -> None:
    script = Script().does(join(1, new="a", known=True))
    assert script >> DeleteGroup(Token(2)) << disarm("pending:a") << TOMBSTONE << reply(2, ErrorCode.NONE)


@pytest.mark.parametrize("script", [stable("a"), completing("a"), preparing("a")])
def test_a_group_with_members_is_not_deleted(script: Script) -> None:
    assert script >> DeleteGroup(Token(1)) << refuse(1, ErrorCode.NON_EMPTY_GROUP)


def test_deleting_an_unknown_group_is_group_id_not_found() -> None:
    assert Script() >> DeleteGroup(Token(1)) << refuse(1, ErrorCode.GROUP_ID_NOT_FOUND)
    assert empty().does(DeleteGroup(Token(1))) >> DeleteGroup(Token(2)) << refuse(2, ErrorCode.GROUP_ID_NOT_FOUND)


# ---- topics that are gone


def test_the_offsets_of_a_deleted_topic_go_also_while_it_is_subscribed() -> None:
    script = stable("a").does(commit(1, "a", 1)).does(commit(2, "a", 1, topic="u"))
    assert script >> topics_deleted("t", "v") << forgotten()
    assert script.group.offsets.keys() == {("u", 0)}


def pending_offset(producer_id: int = 5) -> Script:
    """A group of no members with an offset that a producer's open transaction has committed."""
    script = Script()
    script.group.replay_in_transaction(
        producer_id, [OffsetRecord(GROUP, "t", 0, OffsetValue(9, -1, "", 0, None, None))]
    )
    return script


def test_a_group_with_a_pending_offset_stays() -> None:
    """Law XL6. Else the offset of a transaction that commits later would be lost."""
    script = pending_offset()
    assert script >> LOOK
    assert script.is_in(GroupState.EMPTY, 0).group.pending
    script.group.end_transaction(5, is_commit=True)
    assert script.group.offsets["t", 0].offset == 9


def test_an_offset_does_not_expire_while_a_transaction_may_replace_it() -> None:
    """Law XL6. The tombstone would be after the pending offset and win over it."""
    script = Script().does(commit(1)).after(2 * WEEK_MS)
    script.group.replay_in_transaction(5, [OffsetRecord(GROUP, "t", 0, OffsetValue(9, -1, "", 0, None, None))])
    assert script >> LOOK
    script.group.end_transaction(5, is_commit=True)
    assert script.group.offsets["t", 0].offset == 9


def test_a_pending_offset_of_a_deleted_topic_goes() -> None:
    script = pending_offset()
    assert script >> topics_deleted("t") << forgotten()
    script.group.end_transaction(5, is_commit=True)
    assert not script.group.offsets
