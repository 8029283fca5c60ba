"""Members and the real coordinator of their group: one owner for each partition, and rest once the faults are over."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.members_world import Members
from tests.soak import examples

DEEDS = st.sampled_from(["come", "come", "go", "grow", "cut", "cut", "wait"])


@pytest.mark.parametrize("strategy", ["range", "sticky", "cooperative-sticky"])
@settings(max_examples=examples(12), deadline=None)
@given(seed=st.integers(0, 1 << 32), deeds=st.lists(st.tuples(DEEDS, st.integers(0, 800)), max_size=12))
def test_a_partition_has_one_owner_and_the_group_becomes_stable(
    strategy: str, seed: int, deeds: list[tuple[str, int]]
) -> None:
    members = Members(seed, strategy)
    members.come()
    for deed, ms in deeds:
        match deed:
            case "come" if len(members.nodes) < 6:
                members.come()
            case "go":
                members.go()
            case "grow":
                members.grow()
            case "cut":
                members.cut()
        members.run(ms)
    members.quiet()
