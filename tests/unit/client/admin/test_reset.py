"""Where a reset aims. The whole call runs in tests/client/test_admin_offsets.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.admin.descriptions import GroupDescription, MemberDescription
from rota.client.admin.reset import Goal, plan, refuse_members
from rota.client.errors import AdminFailed, BrokerError, IllegalUse, KafkaError
from rota.client.types import OffsetAndTimestamp, TopicPartition
from rota.protocol.errors import ErrorCode

ONE, TWO = TopicPartition("a", 0), TopicPartition("a", 1)
WIDE = st.integers(-(1 << 40), 1 << 40)


@pytest.mark.parametrize(
    ("goal", "offset"),
    [
        (Goal(to="earliest"), 10),
        (Goal(to="latest"), 20),
        (Goal(offset=15), 15),
        (Goal(offset=5), 10),
        (Goal(offset=50), 20),
        (Goal(shift_by=-3), 11),
        (Goal(shift_by=3), 17),
        (Goal(shift_by=100), 20),
        (Goal(shift_by=-100), 10),
        (Goal(time_ms=1), 12),
    ],
)
def test_each_goal(goal: Goal, offset: int) -> None:
    found = plan("g", [ONE], goal, {ONE: (10, 20)}, {ONE: 14}, {ONE: OffsetAndTimestamp(12, 5)})
    assert found == {ONE: offset}


def test_a_time_after_the_last_record_is_the_end() -> None:
    assert plan("g", [ONE], Goal(time_ms=1), {ONE: (10, 20)}, {}, {ONE: None}) == {ONE: 20}


@given(start=st.integers(0, 1000), length=st.integers(0, 1000), committed=st.integers(0, 5000), number=WIDE)
def test_what_is_set_lies_in_the_log(start: int, length: int, committed: int, number: int) -> None:
    for goal in (Goal(offset=number), Goal(shift_by=number), Goal(to="earliest"), Goal(to="latest")):
        (offset,) = plan("g", [ONE], goal, {ONE: (start, start + length)}, {ONE: committed}, {}).values()
        assert start <= offset <= start + length


def test_either_all_offsets_are_found_or_none_is_set() -> None:
    with pytest.raises(AdminFailed) as failed:
        plan("g", [ONE, TWO], Goal(to="latest"), {ONE: (0, 1)}, {}, {})
    assert failed.value.done == {}
    assert failed.value.codes == {ErrorCode.LEADER_NOT_AVAILABLE}
    with pytest.raises(KafkaError, match="nothing is committed for a-1"):
        plan("g", [ONE, TWO], Goal(shift_by=1), {ONE: (0, 1), TWO: (0, 1)}, {ONE: 0}, {})


@pytest.mark.parametrize("given", [{}, {"to": "earliest", "offset": 3}, {"time_ms": 0, "shift_by": 0}])
def test_one_goal_is_given(given: dict[str, object]) -> None:
    with pytest.raises(IllegalUse, match="takes one of"):
        Goal(**given)  # type: ignore[arg-type]


def test_an_end_has_a_name() -> None:
    with pytest.raises(IllegalUse, match="earliest, latest"):
        Goal(to="beginning")


def test_members_are_named() -> None:
    members = (MemberDescription("m-1", None, "c", "h"), MemberDescription("m-2", "static", "c", "h"))
    refuse_members("g", None)
    refuse_members("g", GroupDescription("g", "Empty", "consumer", "", (), None))
    with pytest.raises(BrokerError, match=r"NON_EMPTY_GROUP.*m-1, static") as refused:
        refuse_members("g", GroupDescription("g", "Stable", "consumer", "range", members, None))
    assert (refused.value.code, refused.value.group) == (ErrorCode.NON_EMPTY_GROUP, "g")
