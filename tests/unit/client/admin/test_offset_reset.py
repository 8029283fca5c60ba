"""The offsets of a reset. The whole call is tested in tests/client/test_admin_offsets.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.admin.descriptions import GroupDescription, MemberDescription
from rota.client.admin.offset_reset import ResetTarget, plan_reset, require_no_members
from rota.client.errors import AdminFailed, BrokerError, IllegalUse, KafkaError
from rota.client.types import OffsetAndTimestamp, TopicPartition
from rota.protocol.errors import ErrorCode

ONE, TWO = TopicPartition("a", 0), TopicPartition("a", 1)
WIDE = st.integers(-(1 << 40), 1 << 40)


@pytest.mark.parametrize(
    ("goal", "offset"),
    [
        (ResetTarget(to="earliest"), 10),
        (ResetTarget(to="latest"), 20),
        (ResetTarget(offset=15), 15),
        (ResetTarget(offset=5), 10),
        (ResetTarget(offset=50), 20),
        (ResetTarget(shift_by=-3), 11),
        (ResetTarget(shift_by=3), 17),
        (ResetTarget(shift_by=100), 20),
        (ResetTarget(shift_by=-100), 10),
        (ResetTarget(time_ms=1), 12),
    ],
)
def test_each_goal(goal: ResetTarget, offset: int) -> None:
    found = plan_reset("g", [ONE], goal, {ONE: (10, 20)}, {ONE: 14}, {ONE: OffsetAndTimestamp(12, 5)})
    assert found == {ONE: offset}


def test_a_time_after_the_last_record_is_the_end() -> None:
    assert plan_reset("g", [ONE], ResetTarget(time_ms=1), {ONE: (10, 20)}, {}, {ONE: None}) == {ONE: 20}


@given(start=st.integers(0, 1000), length=st.integers(0, 1000), committed=st.integers(0, 5000), number=WIDE)
def test_reset_offsets_are_within_the_log(start: int, length: int, committed: int, number: int) -> None:
    for goal in (
        ResetTarget(offset=number),
        ResetTarget(shift_by=number),
        ResetTarget(to="earliest"),
        ResetTarget(to="latest"),
    ):
        (offset,) = plan_reset("g", [ONE], goal, {ONE: (start, start + length)}, {ONE: committed}, {}).values()
        assert start <= offset <= start + length


def test_either_all_offsets_are_found_or_none_is_set() -> None:
    with pytest.raises(AdminFailed) as failed:
        plan_reset("g", [ONE, TWO], ResetTarget(to="latest"), {ONE: (0, 1)}, {}, {})
    assert failed.value.done == {}
    assert failed.value.codes == {ErrorCode.LEADER_NOT_AVAILABLE}
    with pytest.raises(KafkaError, match="nothing is committed for a-1"):
        plan_reset("g", [ONE, TWO], ResetTarget(shift_by=1), {ONE: (0, 1), TWO: (0, 1)}, {ONE: 0}, {})


@pytest.mark.parametrize("given", [{}, {"to": "earliest", "offset": 3}, {"time_ms": 0, "shift_by": 0}])
def test_one_goal_is_given(given: dict[str, object]) -> None:
    with pytest.raises(IllegalUse, match="takes one of"):
        ResetTarget(**given)  # type: ignore[arg-type]


def test_an_end_has_a_name() -> None:
    with pytest.raises(IllegalUse, match="earliest, latest"):
        ResetTarget(to="beginning")


def test_members_are_named() -> None:
    members = (MemberDescription("m-1", None, "c", "h"), MemberDescription("m-2", "static", "c", "h"))
    require_no_members("g", None)
    require_no_members("g", GroupDescription("g", "Empty", "consumer", "", (), None))
    with pytest.raises(BrokerError, match=r"NON_EMPTY_GROUP.*m-1, static") as refused:
        require_no_members("g", GroupDescription("g", "Stable", "consumer", "range", members, None))
    assert (refused.value.code, refused.value.group) == (ErrorCode.NON_EMPTY_GROUP, "g")
