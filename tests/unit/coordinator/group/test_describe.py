"""What DescribeGroups shows in each state."""

from __future__ import annotations

from tests.unit.coordinator.group.script import SUBSCRIPTION, Script, completing, join, stable

from rota.coordinator.group.describe import DescribedMember, Description, describe
from rota.coordinator.group.events import InstanceId, MemberId
from rota.coordinator.group.states import GroupState


def member(metadata: bytes, assignment: bytes) -> DescribedMember:
    return DescribedMember(MemberId("a"), InstanceId("i-a"), "client", "/127.0.0.1", metadata, assignment)


def test_in_stable_all_is_shown() -> None:
    assert describe(stable("a", instances=True).group) == Description(
        GroupState.STABLE, "consumer", "range", (member(SUBSCRIPTION, b"A"),)
    )


def test_while_it_rebalances_the_last_assignment_is_shown_without_protocol() -> None:
    script = stable("a", instances=True).does(join(1, new="b"))
    shown = describe(script.group)
    assert (shown.state, shown.protocol) == (GroupState.PREPARING, "")
    assert shown.members[0] == member(b"", b"A")


def test_before_the_first_assignment_there_is_none() -> None:
    assert describe(completing("a", instances=True).group) == Description(
        GroupState.COMPLETING, "consumer", "", (member(b"", b""),)
    )


def test_a_new_group_is_empty() -> None:
    assert describe(Script().group) == Description(GroupState.EMPTY, "", "", ())
