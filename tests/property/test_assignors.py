"""The laws of the assignors, on groups that nobody wrote."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.assignor_world import Group, Owned, infos
from tests.soak import examples

from rota.client.group.assignors import MemberSubscription, OriginalAssignor, StickyAssignor, for_name
from rota.client.group.assignors.strategies import STRATEGIES
from rota.client.types import TopicPartition

STICKY = ("sticky", "cooperative-sticky")
EVERY = pytest.mark.parametrize("strategy", STRATEGIES)
EVERY_STICKY = pytest.mark.parametrize("strategy", STICKY)

QUICK = settings(max_examples=examples(50), deadline=None)

COUNTS = st.dictionaries(st.sampled_from(["t", "u", "v", "w"]), st.integers(0, 9), min_size=1)
IDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True)
CLAIMS = st.builds(TopicPartition, st.sampled_from(["t", "u", "gone"]), st.integers(-1, 9))


@st.composite
def groups(draw: st.DrawFn, *, equal: bool | None = None) -> Group:
    """New members; with the same subscriptions, with different ones, or either."""
    group = Group("range", draw(COUNTS))
    same = draw(st.booleans()) if equal is None else equal
    for member_id in draw(IDS):
        topics = sorted(group.counts) if same else draw(st.sets(st.sampled_from(sorted(group.counts)), min_size=1))
        group.join(member_id, *sorted(topics), instance=draw(st.sampled_from([None, f"i-{member_id}"])))
    return group


@st.composite
def subscriptions(draw: st.DrawFn) -> dict[str, MemberSubscription]:
    """Whatever members may say, true or not."""
    subscribed = {}
    for member_id in draw(IDS):
        topics = draw(st.lists(st.sampled_from(["t", "u", "missing"]), max_size=3))
        owned, generation_id = draw(st.lists(CLAIMS, max_size=6)), draw(st.integers(-1, 3))
        data = draw(st.one_of(st.none(), st.binary(max_size=30), st.just(remembered(owned, generation_id))))
        instance = draw(st.sampled_from([None, "i1", "i2"]))
        subscribed[member_id] = MemberSubscription(tuple(topics), tuple(owned), generation_id, instance, None, data)
    return subscribed


def remembered(owned: list[TopicPartition], generation_id: int) -> bytes | None:
    assignor = StickyAssignor()
    assignor.on_assignment(owned, None, generation_id)
    return assignor.user_data(())


def start(group: Group, strategy: str) -> Group:
    """The same members with this assignor, settled."""
    started = Group(strategy, dict(group.counts))
    for member_id, member in group.members.items():
        started.join(member_id, *member.topics, instance=member.instance)
    started.rebalance()
    return started


def check(group: Group, owned: Owned) -> None:
    """Each partition of a subscribed topic at one member, which subscribes to its topic."""
    given_out = [partition for mine in owned.values() for partition in mine]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == group.all_partitions
    assert all(item.topic in group.members[member_id].topics for member_id, mine in owned.items() for item in mine)


def sizes(owned: Iterable[frozenset[TopicPartition]]) -> list[int]:
    return sorted(len(mine) for mine in owned)


@EVERY
@QUICK
@given(group=groups())
def test_each_partition_goes_to_one_member_that_subscribes(strategy: str, group: Group) -> None:
    started = start(group, strategy)
    check(started, started.owned)


@QUICK
@given(group=groups())
def test_also_with_the_original(group: Group) -> None:
    for member in group.members.values():
        member.assignor = OriginalAssignor()
    group.rebalance()
    check(group, group.owned)


@pytest.mark.parametrize("strategy", ["roundrobin", *STICKY])
@QUICK
@given(group=groups(equal=True))
def test_equal_subscriptions_give_equal_shares(strategy: str, group: Group) -> None:
    shares = sizes(start(group, strategy).owned.values())
    assert shares[-1] - shares[0] <= 1


@QUICK
@given(group=groups(equal=True))
def test_range_gives_equal_shares_of_each_topic(group: Group) -> None:
    started = start(group, "range")
    for topic in started.counts:
        shares = [len([item for item in mine if item.topic == topic]) for mine in started.owned.values()]
        assert max(shares) - min(shares) <= 1


@QUICK
@given(count=st.integers(1, 9), group=groups(equal=True))
def test_range_keeps_co_partitioned_topics_together(count: int, group: Group) -> None:
    group.counts = dict.fromkeys(group.counts, count)
    for mine in start(group, "range").owned.values():
        assert len({frozenset(number for topic, number in mine if topic == name) for name in group.counts}) == 1


@EVERY_STICKY
@QUICK
@given(group=groups())
def test_no_partition_could_move_to_one_that_has_two_fewer(strategy: str, group: Group) -> None:
    owned = start(group, strategy).owned
    for mine in owned.values():
        for partition in mine:
            takers = [m for m, member in group.members.items() if partition.topic in member.topics]
            assert len(mine) <= min(len(owned[taker]) for taker in takers) + 1


@EVERY_STICKY
@QUICK
@given(group=groups(), data=st.data())
def test_an_unchanged_group_keeps_its_assignment_whoever_leads(
    strategy: str, group: Group, data: st.DataObject
) -> None:
    started = start(group, strategy)
    before = started.owned
    assert started.rebalance(data.draw(st.sampled_from(sorted(before)))) == 1
    assert started.owned == before


@EVERY_STICKY
@QUICK
@given(group=groups(equal=True), data=st.data())
def test_when_a_member_leaves_the_others_keep_all(strategy: str, group: Group, data: st.DataObject) -> None:
    started = start(group, strategy)
    before = started.owned
    del started.members[data.draw(st.sampled_from(sorted(before)))]
    if started.members:
        assert started.rebalance(data.draw(st.sampled_from(sorted(started.members)))) == 1
    check(started, started.owned)
    assert all(before[member_id] <= mine for member_id, mine in started.owned.items())


@EVERY_STICKY
@QUICK
@given(group=groups(equal=True), more=st.integers(1, 3))
def test_when_members_join_only_the_partitions_needed_for_balance_move(strategy: str, group: Group, more: int) -> None:
    started = start(group, strategy)
    before = started.owned
    for number in range(more):
        started.join(f"new-{number}", *next(iter(group.members.values())).topics)
    assert started.rebalance() <= 2
    least, richer = divmod(len(started.all_partitions), len(started.members))
    could_keep = sum(min(len(mine), least) for mine in before.values())
    could_keep += min(richer, sum(len(mine) > least for mine in before.values()))
    assert sum(len(before[member_id] & started.owned[member_id]) for member_id in before) == could_keep


@EVERY
@QUICK
@given(subscribed=subscriptions(), counts=COUNTS, data=st.data())
def test_the_order_of_the_members_plays_no_part(
    strategy: str, subscribed: dict[str, MemberSubscription], counts: dict[str, int], data: st.DataObject
) -> None:
    shuffled = {member_id: subscribed[member_id] for member_id in data.draw(st.permutations(sorted(subscribed)))}
    topics = infos(counts)
    backwards = dict(reversed(topics.items()))
    made = for_name(strategy).assign(topics, subscribed).partitions
    assert for_name(strategy).assign(backwards, shuffled).partitions == made


@EVERY
@QUICK
@given(subscribed=subscriptions(), counts=COUNTS)
def test_with_any_user_data_each_partition_has_one_subscribed_owner(
    strategy: str, subscribed: dict[str, MemberSubscription], counts: dict[str, int]
) -> None:
    made = for_name(strategy).assign(infos(counts), subscribed).partitions
    assert set(made) == set(subscribed)
    given_out = [partition for mine in made.values() for partition in mine]
    assert len(given_out) == len(set(given_out))
    assert all(item.topic in subscribed[member_id].topics for member_id, mine in made.items() for item in mine)
    wanted = {(topic, n) for item in subscribed.values() for topic in item.topics for n in range(counts.get(topic, 0))}
    assert set(given_out) <= wanted
    assert strategy == "cooperative-sticky" or set(given_out) == wanted


@QUICK
@given(subscribed=subscriptions(), counts=COUNTS)
def test_cooperative_gives_away_nothing_that_another_one_has(
    subscribed: dict[str, MemberSubscription], counts: dict[str, int]
) -> None:
    """Of several that claim it the one of the newest generation has it."""
    for member_id, mine in for_name("cooperative-sticky").assign(infos(counts), subscribed).partitions.items():
        for partition in mine:
            others = [m for m, item in subscribed.items() if partition in item.owned and m != member_id]
            mine_since = subscribed[member_id].generation_id if partition in subscribed[member_id].owned else -9
            since = [subscribed[other].generation_id for other in others if subscribed[other].generation_id >= 0]
            assert all(mine_since > generation_id for generation_id in since)


CHANGES = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "subscribe", "grow"]), st.integers(0, 99)), min_size=1, max_size=5
)


def change(group: Group, what: str, which: int) -> None:
    ids, topics = sorted(group.members), sorted(group.counts)
    some = tuple(topics[: which % len(topics) + 1])
    match what:
        case "join":
            group.join(f"new-{which}-{group.generation_id}", *some)
        case "leave" if len(ids) > 1:
            del group.members[ids[which % len(ids)]]
        case "subscribe":
            group.members[ids[which % len(ids)]].topics = some
        case _:
            group.counts[topics[which % len(topics)]] += which % 3


@QUICK
@given(group=groups(), changes=CHANGES, data=st.data())
def test_cooperative_groups_settle_and_no_partition_has_two_owners_on_the_way(
    group: Group, changes: list[tuple[str, int]], data: st.DataObject
) -> None:
    group = start(group, "cooperative-sticky")
    for what, which in changes:
        change(group, what, which)
        had = {m: frozenset(p for p in member.owned if p.topic in member.topics) for m, member in group.members.items()}
        group.seen.clear()
        group.rebalance(data.draw(st.sampled_from(sorted(group.members))))
        for made in group.seen:
            for member_id, mine in made.items():
                assert not any(mine & had[other] for other in had if other != member_id)
            had = made
        check(group, group.owned)


@QUICK
@given(group=groups(equal=True), changes=CHANGES, data=st.data())
def test_with_equal_subscriptions_in_two_rounds(
    group: Group, changes: list[tuple[str, int]], data: st.DataObject
) -> None:
    group = start(group, "cooperative-sticky")
    topics = next(iter(group.members.values())).topics
    for what, which in changes:
        change(group, what, which)
        for member in group.members.values():
            member.topics = topics
        assert group.rebalance(data.draw(st.sampled_from(sorted(group.members)))) <= 2
        shares = sizes(group.owned.values())
        assert shares[-1] - shares[0] <= 1


@pytest.mark.parametrize("equal", [True, False])
def test_a_hundred_members_with_two_thousand_partitions(equal: bool) -> None:
    group = Group("sticky", {f"t{number:02}": 100 for number in range(20)})
    names = sorted(group.counts)
    for number in range(100):
        group.join(f"m{number:02}", *(names if equal else names[number % 7 : number % 7 + 5 + number % 9]))
    group.rebalance()
    before = group.owned
    check(group, before)
    del group.members["m50"]
    group.rebalance("m99")
    check(group, group.owned)
    moved = sum(len(mine - group.owned[member_id]) for member_id, mine in before.items() if member_id != "m50")
    assert moved == 0
