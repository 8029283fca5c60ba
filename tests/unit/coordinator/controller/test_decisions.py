from __future__ import annotations

from tests.unit.coordinator.controller.kit import Brief, brief, live, partition, topic

from rota.coordinator.controller.decisions import (
    Decision,
    balance,
    decide,
    hand_over,
    hand_over_partition,
    imbalanced_brokers,
)
from rota.coordinator.metadata.topic import Topic


def never(_: Topic) -> bool:
    return False


def item(_: Topic) -> int:
    return 1


def briefs(decisions: list[Decision]) -> list[tuple[str, int, Brief | None]]:
    return [(decision.topic.name, decision.before.index, brief(decision.after)) for decision in decisions]


TOPICS = [
    topic(partition(index=0), partition((2, 3, 1), index=1), partition((3, 1, 2), index=2)),
    topic(partition((1,), index=0), partition((2, 3), index=1), name="u"),
]


def test_nothing_is_decided_while_all_is_well() -> None:
    assert decide(TOPICS, live(1, 2, 3), never, item) == []


def test_elections_come_before_isrs_that_shrink() -> None:
    assert briefs(decide(TOPICS, live(2, 3), never, item)) == [
        ("t", 0, (2, (2, 3), 6)),
        ("u", 0, (-1, (1,), 6)),
        ("t", 1, (2, (2, 3), 5)),
        ("t", 2, (3, (3, 2), 5)),
    ]


def test_unclean_elections_are_allowed_topic_by_topic() -> None:
    topics = [topic(partition(isr=(1,))), topic(partition(isr=(1,)), name="u")]
    assert briefs(decide(topics, live(2, 3), lambda t: t.name == "u", item)) == [
        ("t", 0, (-1, (1,), 6)),
        ("u", 0, (2, (2,), 6)),
    ]


def test_a_reassignment_completes_when_its_replicas_are_in_the_isr() -> None:
    moving = partition((3, 2, 1), (2, 1, 3), leader=1, adding=(3,), removing=(1,))
    (decision,) = decide([topic(moving)], live(1, 2, 3), never, item)
    assert brief(decision.after) == (3, (2, 3), 6)
    assert decision.has_changed_replicas
    waiting = partition((3, 2, 1), (1, 2), leader=1, adding=(3,), removing=(1,))
    assert decide([topic(waiting)], live(1, 2, 3), never, item) == []
    (decision,) = decide([topic(waiting)], live(2, 3), never, item)
    assert brief(decision.after) == (2, (2,), 6)
    assert not decision.has_changed_replicas


def test_a_controlled_shutdown_changes_only_partitions_with_the_stopping_broker() -> None:
    assert briefs(hand_over(TOPICS, live(1, 2, 3), 1, item)) == [
        ("t", 0, (2, (2, 3), 6)),
        ("t", 1, (2, (2, 3), 5)),
        ("t", 2, (3, (3, 2), 5)),
    ]


def test_a_broker_that_stops_keeps_partitions_that_no_other_can_lead() -> None:
    assert hand_over([topic(partition((1,)), partition((1, 2), isr=(1,), index=1))], live(1, 2), 1, item) == []


def test_brokers_that_lead_too_little_get_their_preferred_partitions_back() -> None:
    topics = [topic(partition(leader=2, index=0), *(partition((2, 1), index=1 + step) for step in range(9)))]
    assert imbalanced_brokers(topics, live(1, 2, 3), 10) == {1}
    assert imbalanced_brokers(topics, live(2, 3), 10) == frozenset()
    assert imbalanced_brokers(topics, live(1, 2, 3), 100) == frozenset()
    assert briefs(balance(topics, live(1, 2, 3), 10)) == [("t", 0, (1, (1, 2, 3), 6))]
    moving = [topic(partition((1, 2), leader=2, adding=(1,)))]
    assert balance(moving, live(1, 2), 10) == []


def test_a_broker_whose_log_failed_is_not_eligible() -> None:
    """ELR1. A broker that stops is, below min.insync.replicas."""
    state, brokers = partition(isr=(1, 2)), live(1, 2, 3)
    stopped, failed = (hand_over_partition(state, brokers, 1, 2, has_failed=has_failed) for has_failed in (False, True))
    assert stopped is not None
    assert (stopped.leader, stopped.isr, stopped.elr) == (2, (2,), (1,))
    assert failed is not None
    assert (failed.leader, failed.isr, failed.elr) == (2, (2,), ())
    eligible = hand_over_partition(stopped, brokers, 1, 2, has_failed=True)
    assert eligible is not None
    assert (eligible.leader_epoch, eligible.isr, eligible.elr) == (stopped.leader_epoch, (2,), ())
    assert hand_over_partition(stopped, brokers, 1, 2) is None


def test_a_leader_whose_log_cannot_be_recovered_makes_way_for_any_live_replica_where_that_is_allowed() -> None:
    """UE1. It was elected uncleanly itself, perhaps: the controller does not know of its log."""
    alone = partition(isr=(1,), replicas=(1, 2, 3))
    brokers = live(1, 3)
    assert hand_over_partition(alone, brokers, 1, 1, has_failed=True) is None
    after = hand_over_partition(alone, brokers, 1, 1, has_failed=True, unclean=True)
    assert after is not None
    assert (after.leader, after.isr, after.elr, after.leader_epoch) == (3, (3,), (), alone.leader_epoch + 1)
    assert hand_over_partition(alone, live(1), 1, 1, has_failed=True, unclean=True) is None, "nobody else is alive"
    assert hand_over_partition(after, brokers, 1, 1, has_failed=True, unclean=True) is None, "it does not lead"
    clean = hand_over_partition(partition(isr=(1,), elr=(2,)), live(1, 2, 3), 1, 2, has_failed=True, unclean=True)
    assert clean is not None
    assert (clean.leader, clean.isr) == (2, (2,)), "who has all records comes first"


def test_r1_the_leader_refuses_the_fetches_of_a_broker_from_before_its_log_lost_records() -> None:
    """They would let it into the ISR again. It is in the ISR, or has left it already."""
    for state in (partition(isr=(1, 2, 3), leader=2), partition(isr=(2, 3), leader=2)):
        after = hand_over_partition(state, live(1, 2, 3), 1, 1, has_failed=True, lost_records=True)
        assert after is not None
        assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), state.leader_epoch + 1)
    restarted = partition(isr=(2, 3), leader=-1)
    assert hand_over_partition(restarted, live(1, 2, 3), 1, 1, has_failed=True, lost_records=True) is None


def test_a_broker_whose_log_lost_records_makes_way_for_a_dead_eligible_one() -> None:
    """ELR2. A failure that lost nothing leaves the partition available."""
    state, brokers = partition(isr=(1,), elr=(2,)), live(1, 3)
    assert hand_over_partition(state, brokers, 1, 2, has_failed=True) is None
    after = hand_over_partition(state, brokers, 1, 2, has_failed=True, lost_records=True)
    assert after is not None
    assert (after.leader, after.isr, after.elr, after.leader_epoch) == (-1, (2,), (), state.leader_epoch + 1)
    alone = partition(isr=(1,))
    assert hand_over_partition(alone, brokers, 1, 2, has_failed=True, lost_records=True) is None, "nobody has more"
    others = hand_over_partition(partition(isr=(1, 3), elr=(2,)), brokers, 1, 3, has_failed=True, lost_records=True)
    assert others is not None
    assert (others.leader, others.isr, others.elr) == (3, (3,), (2,))
