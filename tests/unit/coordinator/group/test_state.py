"""The state of a group: defaults of its settings, what is shown of it."""

from __future__ import annotations

from tests.unit.coordinator.group.script import SUBSCRIPTION, Script, completing, join, stable

from rota.coordinator.group.events import InstanceId, MemberId, OffsetRecord, OffsetValue
from rota.coordinator.group.machine import Group
from rota.coordinator.group.state import DescribedMember, Description, GroupConfig
from rota.coordinator.group.transitions import GroupState


def test_defaults() -> None:
    config = GroupConfig()
    assert (config.session_min_ms, config.session_max_ms) == (6_000, 30 * 60_000)
    assert (config.initial_rebalance_delay_ms, config.new_member_join_ms) == (3_000, 5 * 60_000)
    assert (config.group_size_max, config.offsets_retention_ms) == (2**31 - 1, 7 * 24 * 3_600_000)


def test_replaying_offsets_together_equals_replaying_each() -> None:
    values = [OffsetValue(1, -1, "", 5), OffsetValue(2, -1, "", 5), None, OffsetValue(3, -1, "", 5), None]
    records = [OffsetRecord("g", "t", partition % 3, value) for partition, value in enumerate(values)]
    together, one_by_one = Group("g", GroupConfig()), Group("g", GroupConfig())
    together.replay_offsets(records)
    for record in records:
        one_by_one.replay(record)
    assert together.offsets == one_by_one.offsets == {("t", 0): values[3]}


def member(metadata: bytes, assignment: bytes) -> DescribedMember:
    return DescribedMember(MemberId("a"), InstanceId("i-a"), "client", "/127.0.0.1", metadata, assignment)


def test_in_stable_all_is_shown() -> None:
    assert stable("a", instances=True).group.describe() == Description(
        GroupState.STABLE, "consumer", "range", (member(SUBSCRIPTION, b"A"),)
    )


def test_while_it_rebalances_the_last_assignment_is_shown_without_protocol() -> None:
    script = stable("a", instances=True).does(join(1, new="b"))
    shown = script.group.describe()
    assert (shown.state, shown.protocol) == (GroupState.PREPARING, "")
    assert shown.members[0] == member(b"", b"A")


def test_a_group_in_completing_describes_empty_assignments() -> None:
    assert completing("a", instances=True).group.describe() == Description(
        GroupState.COMPLETING, "consumer", "", (member(b"", b""),)
    )


def test_a_new_group_is_empty() -> None:
    assert Script().group.describe() == Description(GroupState.EMPTY, "", "", ())
