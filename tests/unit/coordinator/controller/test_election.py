from __future__ import annotations

from dataclasses import replace

from tests.unit.coordinator.controller.kit import brief, live, partition

from rota.coordinator.controller.election import elect_preferred, maintain, without_unclean_replica


def test_a_partition_with_live_brokers_is_not_changed() -> None:
    assert maintain(partition(), live(1, 2, 3)) is None


def test_a_dead_leader_is_replaced_by_the_next_of_the_assignment_that_is_in_the_isr() -> None:
    assert brief(maintain(partition(), live(2, 3))) == (2, (2, 3), 6)
    assert brief(maintain(partition(isr=(1, 3)), live(2, 3))) == (3, (3,), 6)
    assert brief(maintain(partition(isr=(1, 3, 2)), live(2, 3))) == (2, (3, 2), 6)


def test_a_dead_follower_leaves_the_isr_in_the_same_leader_epoch() -> None:
    assert brief(maintain(partition(), live(1, 3))) == (1, (1, 3), 5)
    assert maintain(partition(isr=(1, 2)), live(1, 2)) is None


def test_the_last_member_stays_in_the_isr_of_a_partition_without_leader() -> None:
    dead = maintain(partition(isr=(1,)), live(2, 3))
    assert brief(dead) == (-1, (1,), 6)
    assert dead is not None
    assert maintain(dead, live(2, 3)) is None
    assert brief(maintain(dead, live(2, b1=11))) == (1, (1,), 7)


def test_members_that_die_together_may_all_lead_again() -> None:
    dead = maintain(partition(isr=(1, 2)), live(3))
    assert brief(dead) == (-1, (1, 2), 6)
    assert dead is not None
    assert brief(maintain(dead, live(3, b2=11))) == (2, (2,), 7)
    assert brief(maintain(dead, live(b1=12, b2=11))) == (1, (1, 2), 7)


def test_an_unclean_election_only_where_it_is_allowed() -> None:
    state = partition(isr=(1,))
    assert brief(maintain(state, live(2, 3), unclean=True)) == (2, (2,), 6)
    assert brief(maintain(partition(isr=(1, 3)), live(2, 3), unclean=True)) == (3, (3,), 6)
    assert brief(maintain(state, live(), unclean=True)) == (-1, (1,), 6)


def test_a_leader_that_registered_again_does_not_lead_before_it_is_elected_again() -> None:
    alone = maintain(partition((1,)), live(b1=11))
    assert brief(alone) == (1, (1,), 6)
    assert alone is not None
    assert alone.leader_broker_epoch == 11
    assert maintain(alone, live(b1=11)) is None


def test_a_broker_that_registered_again_leaves_each_isr_that_has_another_member() -> None:
    assert brief(maintain(partition(), live(2, 3, b1=11))) == (2, (2, 3), 6)
    assert brief(maintain(partition(), live(1, 3, b2=11, restarted=(2,)))) == (1, (1, 3), 5)
    assert brief(maintain(partition(isr=(2,)), live(1, 3, b2=11, restarted=(2,)))) == (2, (2,), 6)


def test_a_broker_that_stops_gives_its_leaderships_away_and_leaves_the_isr() -> None:
    assert brief(maintain(partition(), live(1, 2, 3, stopping=(1,)))) == (2, (2, 3), 6)
    assert brief(maintain(partition(), live(1, 2, 3, stopping=(3,)))) == (1, (1, 2), 5)


def test_a_broker_that_stops_keeps_partitions_that_no_other_can_lead() -> None:
    assert maintain(partition(isr=(1,)), live(1, 2, stopping=(1,))) is None
    assert brief(maintain(partition(isr=(1, 2)), live(1, 3, stopping=(1,)))) == (1, (1,), 5)
    assert brief(maintain(partition(isr=(1, 2)), live(2, 3, stopping=(2,)))) == (2, (2,), 6)


def test_a_replica_that_returns_is_not_in_the_isr_before_its_leader_adds_it() -> None:
    assert maintain(partition(isr=(2, 3), leader=2), live(2, 3, b1=11)) is None


def test_a_member_that_is_no_replica_is_never_elected() -> None:
    assert brief(maintain(partition((2, 3), isr=(1, 3), leader=1), live(1, 2, 3))) == (3, (3,), 6)


def test_the_preferred_leader_is_elected_when_it_can_lead() -> None:
    state = partition(leader=2)
    assert brief(elect_preferred(state, live(1, 2, 3))) == (1, (1, 2, 3), 6)
    assert elect_preferred(state, live(2, 3)) is None
    assert elect_preferred(state, live(1, 2, 3, stopping=(1,))) is None
    assert elect_preferred(partition(isr=(2, 3), leader=2), live(1, 2, 3)) is None


def test_a_claim_is_given_up_if_another_member_has_one() -> None:
    """CM5. Other members may be dead: they still have every record, as far as anybody knows."""
    assert brief(without_unclean_replica(partition(isr=(1, 2)), 2, live())) == (1, (1,), 5)
    assert brief(without_unclean_replica(partition(isr=(1, 2)), 1, live())) == (-1, (2,), 6)
    assert without_unclean_replica(partition(isr=(1,)), 1, live()) is None
    assert without_unclean_replica(partition(isr=(2, 3)), 1, live()) is None


def test_a_member_of_the_elr_is_elected_if_no_isr_member_is_live() -> None:
    """ELR1."""
    state = partition(isr=(1,), elr=(2, 3))
    assert maintain(state, live(1, 2, 3), 2) is None
    elected = maintain(state, live(2, 3), 2)
    assert brief(elected) == (2, (2,), 6)
    assert elected is not None
    assert elected.elr == (1, 3), "the dead leader has every committed record, too"
    assert brief(maintain(state, live(3), 2)) == (3, (3,), 6)
    assert maintain(state, live(2, 3, b1=11), 2) == replace(
        elected, leader=1, isr=(1,), elr=(2, 3), leader_broker_epoch=11
    )
    assert brief(maintain(state, live(1, 3, stopping=(1,)), 2)) == (3, (3,), 6)
    assert maintain(state, live(1, 3, stopping=(1, 3)), 2) is None


def test_a_member_that_dies_stays_eligible_while_the_isr_is_below_the_minimum() -> None:
    """ELR1."""
    died = maintain(partition(isr=(1, 2)), live(1, 3), 2)
    assert died is not None
    assert (died.isr, died.elr, died.leader_epoch) == ((1,), (2,), 5)
    died = maintain(partition(isr=(1, 2)), live(1, 3), 1)
    assert died is not None
    assert (died.isr, died.elr) == ((1,), ())


def test_the_elr_is_kept_until_the_isr_changes_or_the_leader_requests_it() -> None:
    """ELR1. Brokers may be configured with different minimums: the leader's counts."""
    assert maintain(partition(isr=(1,), elr=(2,)), live(1, 3), 1) is None
    leaderless = partition(isr=(1,), elr=(2,), leader=-1)
    assert maintain(leaderless, live(3), 1) is None


def test_an_unclean_election_empties_the_elr() -> None:
    """ELR1."""
    state = partition(isr=(1,), elr=(2,))
    unclean = maintain(state, live(3), 2, unclean=True)
    assert brief(unclean) == (3, (3,), 6)
    assert unclean is not None
    assert unclean.elr == ()
    assert brief(maintain(state, live(2, 3), 2, unclean=True)) == (2, (2,), 6), "none is needed"


def test_the_elr_replaces_an_isr_that_has_lost_its_records() -> None:
    """CM5, ELR1."""
    given_up = without_unclean_replica(partition(isr=(2,), elr=(1, 3)), 2, live(1), 2)
    assert brief(given_up) == (-1, (1, 3), 6)
    assert given_up is not None
    assert given_up.elr == ()
    assert brief(maintain(given_up, live(1, b2=11), 2)) == (1, (1,), 7)
    eligible = without_unclean_replica(partition(isr=(2,), elr=(1, 3)), 3, live(1), 2)
    assert eligible is not None
    assert (eligible.leader, eligible.isr, eligible.elr) == (2, (2,), (1,))
    member = without_unclean_replica(partition(isr=(1, 2), elr=()), 1, live(2), 2)
    assert member is not None
    assert (member.isr, member.elr) == ((2,), ()), "it may lack records"
