"""Laws of the assignment for members with different subscriptions; tests/interop compares it with Java's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.coordinator.consumer_group.assignors.cases import shown, spec

from rota.coordinator.consumer_group.assignors.heterogeneous import assign
from rota.coordinator.consumer_group.assignors.spec import GroupSpec

TOPICS = "abcd"


@st.composite
def groups(draw: st.DrawFn) -> GroupSpec:
    counts = {name: draw(st.integers(1, 8)) for name in TOPICS}
    names = st.sets(st.sampled_from(TOPICS)).map(lambda found: "".join(sorted(found)))
    members = {f"m{number}": draw(names) for number in range(draw(st.integers(1, 5)))}
    targets: dict[str, dict[str, tuple[int, ...]]] = {member_id: {} for member_id in members}
    for name, count in counts.items():
        for index in range(count):
            owner = draw(st.sampled_from([None, *members]))
            if owner is not None:
                targets[owner][name] = (*targets[owner].get(name, ()), index)
    return spec(counts, members, targets)


@given(groups())
def test_each_partition_of_a_subscribed_topic_has_one_subscriber_as_its_owner(group: GroupSpec) -> None:
    assignment = assign(group)
    owned = [(tid, index) for partitions in assignment.values() for tid, all_ in partitions.items() for index in all_]
    assert len(owned) == len(set(owned))
    subscribed = {topic_id for member in group.members.values() for topic_id in member.topic_ids}
    assert set(owned) == {(tid, index) for tid in subscribed for index in range(group.partition_counts[tid])}
    for member_id, partitions in assignment.items():
        assert partitions.keys() <= group.members[member_id].topic_ids


@given(groups())
def test_an_assignment_is_its_own_next_target(group: GroupSpec) -> None:
    """Stickiness: where nothing has changed nothing moves."""
    from dataclasses import replace

    assignment = assign(group)
    again = replace(
        group,
        members={
            member_id: replace(member, target=assignment.get(member_id, {}))
            for member_id, member in group.members.items()
        },
    )
    assert assign(again) == assignment


def test_what_the_metadata_do_not_know_yet_is_not_kept() -> None:
    """CG12. The target is of a coordinator that knew four partitions; this one has read of two."""
    group = spec({"a": 2, "b": 1}, {"m1": "ab", "m2": "a"}, {"m1": {"a": (0, 2)}, "m2": {"a": (1, 3)}})
    assert shown(assign(group)) == {"m1": {"a": {0}, "b": {0}}, "m2": {"a": {1}}}


def test_a_partition_moves_from_the_most_to_the_least_loaded() -> None:
    group = spec({"a": 4, "b": 1}, {"m1": "ab", "m2": "a"}, {"m1": {"a": (0, 1, 2, 3), "b": (0,)}})
    assert shown(assign(group)) == {"m1": {"a": {0, 1}, "b": {0}}, "m2": {"a": {2, 3}}}


def test_a_topic_with_one_subscriber_stays_with_it() -> None:
    group = spec({"a": 1, "b": 6}, {"m1": "ab", "m2": "a"}, {"m1": {"a": (0,), "b": (0, 1, 2, 3, 4, 5)}})
    assert shown(assign(group)) == {"m1": {"b": {0, 1, 2, 3, 4, 5}}, "m2": {"a": {0}}}
