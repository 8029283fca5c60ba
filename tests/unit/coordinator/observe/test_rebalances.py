"""The rebalances of groups of the consumer protocol; those of classic groups are in test_explain.py."""

from __future__ import annotations

from tests.unit.coordinator.observe.consumer_life import ConsumerLife, of_one
from tests.unit.coordinator.observe.events import Timeline, member

from rota.coordinator.observe.explain import event_sentence, sentences
from rota.coordinator.observe.rebalances import Outcome, rebalances
from rota.protocol.group_timeline import EventType, Trigger


def two_members() -> ConsumerLife:
    """b joined; a took 4 s to revoke, b fetched its partitions a second later."""
    life = of_one()
    life.joins("b-1")
    life.after(3_000).heartbeats("a-1", revokes=False)
    return life.after(4_000).heartbeats("a-1").after(1_000).heartbeats("b-1")


def test_tl13_a_rebalance_goes_on_until_the_members_have_their_partitions() -> None:
    life = of_one()
    life.joins("b-1")
    under_way = life.rebalances[-1]
    assert (under_way.outcome, under_way.ended_ms) == (Outcome.UNDER_WAY, -1)
    assert [each.member_id for each in under_way.waited_for] == ["a-1"]
    done = two_members().rebalances[-1]
    assert (done.outcome, done.ended_ms - done.started_ms) == (Outcome.STABLE, 8_000)
    assert (done.from_generation, done.generation, done.reconciliation_ms) == (2, 3, 8_000)
    assert [(each.client_id, each.wait_ms) for each in done.waited_for] == [("a", 4_000)]
    assert [each.client_id for each in done.moved] == ["a", "b"]


def test_the_sentences_name_who_moved_what_and_who_was_slow() -> None:
    assert sentences(two_members().rebalances[-1])[1:] == (
        "The broker assigned the partitions with uniform in 0 ms.",
        "Partitions: 2 gained, 2 lost, 2 kept (member a (10.0.0.1) lost t-2 t-3; member b (10.0.0.2) gained t-2 t-3).",
        "All members had their partitions after 8.0 s; the slowest to revoke some was member a (10.0.0.1), in 4.0 s.",
        "Group epoch 3 has 2 members; the rebalance took 8.0 s.",
    )


def test_a_rebalance_that_is_under_way_names_who_has_to_revoke() -> None:
    life = of_one()
    life.joins("b-1")
    assert sentences(life.rebalances[-1])[-2:] == (
        "Member a (10.0.0.1) has to revoke partitions first.",
        "It is still under way.",
    )


def test_a_member_that_leaves_names_what_others_gain() -> None:
    life = two_members().leaves("b-1").live(5_000, "a-1")
    assert "member a (10.0.0.1) gained t-2 t-3" in " ".join(sentences(life.rebalances[-1]))
    assert life.rebalances[-1].reconciliation_ms == -1


def test_a_revocation_timeout_is_said() -> None:
    life = ConsumerLife()
    life.joins("a-1", rebalance_ms=10_000)
    life.joins("b-1")
    life.heartbeats("a-1", revokes=False).live(10_000, "b-1")
    why = sentences(life.rebalances[-1])[0]
    assert why.endswith("because member a (10.0.0.1) did not give up its partitions within its rebalance timeout.")
    assert life.rebalances[-2].outcome == Outcome.INTERRUPTED
    assert [each.client_id for each in life.rebalances[-2].not_revoked] == ["a"]


def by_the_broker(*, state: str) -> Timeline:
    """A rebalance up to its target; `state` is that of the event."""
    a = member("a-1")
    timeline = Timeline().add(EventType.REBALANCE_STARTED, a, trigger=Trigger.MEMBER_JOINED, generation=2)
    return timeline.add(EventType.ASSIGNED, generation=3, duration_ms=0, member_count=1, state=state)


def test_records_of_older_brokers_end_with_the_target() -> None:
    (rebalance,) = rebalances(by_the_broker(state="Reconciling").events)
    assert (rebalance.outcome, rebalance.reconciliation_ms) == (Outcome.STABLE, -1)


def test_tl13_another_coordinator_goes_on() -> None:
    timeline = by_the_broker(state="Reconciling").add(EventType.RECONCILIATION_STARTED, generation=3)
    timeline.add(EventType.LOADED, broker=2, generation=3, state="Reconciling")
    timeline.add(EventType.RECONCILIATION_STARTED, generation=3)
    (rebalance,) = rebalances(timeline.add(EventType.RECONCILED, generation=3, duration_ms=5).events)
    assert rebalance.outcome == Outcome.STABLE
    assert "Broker 2 loaded the group meanwhile." in sentences(rebalance)


def test_tl13_a_group_that_is_loaded_as_stable_has_finished() -> None:
    timeline = by_the_broker(state="Reconciling").add(EventType.RECONCILIATION_STARTED, generation=3)
    (rebalance,) = rebalances(timeline.add(EventType.LOADED, broker=2, generation=3, state="Stable").events)
    assert (rebalance.outcome, rebalance.ended_ms) == (Outcome.STABLE, timeline.now_ms)


def test_the_end_of_an_older_reconciliation_ends_nothing() -> None:
    timeline = by_the_broker(state="Reconciling").add(EventType.RECONCILIATION_STARTED, generation=3)
    (rebalance,) = rebalances(timeline.add(EventType.RECONCILED, generation=2, duration_ms=5).events)
    assert rebalance.outcome == Outcome.UNDER_WAY


def test_a_target_that_ends_a_rebalance_is_not_confused_with_the_one_before() -> None:
    timeline = by_the_broker(state="Stable")
    timeline.add(EventType.REBALANCE_STARTED, member("b-1"), trigger=Trigger.MEMBER_JOINED, generation=3)
    timeline.add(EventType.ASSIGNED, generation=4, duration_ms=0, state="Reconciling")
    first, second = rebalances(timeline.add(EventType.RECONCILIATION_STARTED, generation=4).events)
    assert (first.outcome, second.outcome) == (Outcome.STABLE, Outcome.UNDER_WAY)


def test_the_events_of_a_reconciliation_are_sentences() -> None:
    a = member("a-1")
    timeline = Timeline().add(EventType.RECONCILIATION_STARTED, a, generation=3, count=1)
    timeline.add(EventType.RECONCILIATION_STARTED, generation=3, count=0)
    timeline.add(EventType.RECONCILED, generation=3).add(EventType.MEMBERS_NOT_REVOKED, a)
    moving = "The members move to the target assignment of group epoch 3"
    assert [event_sentence(event) for event in timeline.events] == [
        f"{moving}; member a (10.0.0.1) first revoke partitions.",
        f"{moving}.",
        "The members have the target assignment of group epoch 3.",
        "Member a (10.0.0.1) did not give up its partitions in time and lost membership.",
    ]


def test_tl15_a_static_member_that_is_back_does_not_begin_a_finished_rebalance_again() -> None:
    life = ConsumerLife()
    life.joins("a-1", instance="i")
    life.joins("b-1")
    life.live(400_000, "a-1", "b-1").leaves("a-1", -2, instance="i")
    life.restarts().live(5_000, "b-1")
    before = life.rebalances
    life.joins("a-2", instance="i")
    life.live(5_000, "a-2", "b-1")
    assert life.events[-1].type == EventType.RECONCILED
    assert life.rebalances == before
    assert (before[-1].outcome, before[-1].reconciliation_ms) == (Outcome.STABLE, 5_000)


def test_tl13_a_target_without_its_reconciliation_goes_on_with_another_coordinator() -> None:
    timeline = by_the_broker(state="Reconciling").add(EventType.LOADED, broker=2, generation=3, state="Reconciling")
    (rebalance,) = rebalances(timeline.add(EventType.RECONCILIATION_STARTED, generation=3).events)
    assert rebalance.outcome == Outcome.UNDER_WAY
