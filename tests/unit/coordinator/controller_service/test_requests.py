from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.controller_service.members import Members
from tests.unit.coordinator.controller_service.test_service import brief

from rota.coordinator.controller_service.requests import preferred_election, unclean_election
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.store import BadNode, ChangedByOthers, Op, StoreFailed
from rota.coordinator.metadata.topic import Refusal
from rota.protocol.errors import ErrorCode


@pytest.fixture
async def cluster() -> AsyncIterator[Members]:
    with capture_logs():
        async with Members() as members:
            yield members


def code(refusal: Refusal | None) -> ErrorCode | None:
    return None if refusal is None else refusal.code


async def test_any_broker_elects_preferred_leaders(cluster: Members) -> None:
    await cluster.create("t", (2, 3), (2, 3), (2, 3))
    await cluster.write("t", replace(cluster.state("t", 1), leader=3, leader_broker_epoch=cluster[3].epoch))
    lagging = replace(cluster.state("t", 2), leader=3, leader_broker_epoch=cluster[3].epoch, isr=(3,))
    await cluster.write("t", lagging)
    await cluster.wait_until_applied()
    topic = cluster[3].topics.get("t")
    assert topic is not None
    results = await cluster[3].requests.elect([(topic, 0), (topic, 1), (topic, 2)], preferred_election)
    assert {index: code(refusal) for (_, index), refusal in results.items()} == {
        0: ErrorCode.ELECTION_NOT_NEEDED,
        1: None,
        2: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }
    assert brief(cluster.state("t", 1)) == (2, (2, 3))
    assert brief(cluster.state("t", 2)) == (3, (3,))


async def test_a_reassignment_that_the_topics_node_cannot_hold_is_an_error(cluster: Members) -> None:
    """S12, SW2."""
    topic = await cluster.create("t", (1, 2), (1, 2))
    commit = cluster[1].store.commit

    async def refuse(ops: Sequence[Op]) -> None:
        if any(op.path == znodes.topic_path("t") for op in ops):
            raise BadNode(znodes.topic_path("t"), "more than a node may have")
        await commit(ops)

    cluster[1].store.commit = refuse  # type: ignore[method-assign]
    with pytest.raises(StoreFailed, match="more than a node may have"):
        await cluster[1].requests.reassign(topic, {0: (2, 3), 1: (2, 3)})


async def test_an_unclean_election_is_made_on_request(cluster: Members) -> None:
    await cluster.create("t", (2, 3), (2,), (3, 2))
    await cluster.write("t", replace(cluster.state("t", 0), isr=(2,)))
    await cluster[2].kill()
    await cluster.wait_until_applied()
    topic = cluster[1].topics.get("t")
    assert topic is not None
    results = await cluster[1].requests.elect([(topic, 0), (topic, 1), (topic, 2)], unclean_election)
    assert {index: code(refusal) for (_, index), refusal in results.items()} == {
        0: None,
        1: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        2: ErrorCode.ELECTION_NOT_NEEDED,
    }
    assert brief(cluster.state("t", 0)) == (3, (3,))


async def test_a_reassignment_is_completed_by_the_controller(cluster: Members) -> None:
    await cluster.create("t", (1, 2))
    topic = cluster[2].topics.get("t")
    assert topic is not None
    assert await cluster[2].requests.reassign(topic, {0: (3, 2)}) == {0: None}
    await cluster.wait_until_applied()
    state = cluster.state()
    assert (state.replicas, state.adding, state.removing) == ((3, 2, 1), (3,), (1,))
    known = cluster[3].topics.partition("t", 0)
    assert known == state
    await cluster.write("t", replace(state, isr=(1, 2, 3)))
    await cluster.wait_until_applied()
    state = cluster.state()
    assert (state.replicas, state.adding, state.removing) == ((3, 2), (), ())
    assert brief(state) == (3, (2, 3))


async def test_a_reassignment_waits_for_a_broker_that_is_down(cluster: Members) -> None:
    """Law PL2, as in Kafka: the broker is known by its replicas."""
    await cluster.create("t", (1, 2))
    await cluster.create("u", (3,))
    await cluster[3].kill()
    await cluster.wait_until_applied()
    topic = cluster[2].topics.get("t")
    assert topic is not None
    assert code((await cluster[2].requests.reassign(topic, {0: (9, 2)}))[0]) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert await cluster[2].requests.reassign(topic, {0: (3, 2)}) == {0: None}
    state = cluster.state()
    assert (state.replicas, state.adding, brief(state)) == ((3, 2, 1), (3,), (1, (1, 2)))
    await cluster.start(3)
    await cluster.write("t", replace(state, isr=(1, 2, 3)))
    await cluster.wait_until_applied()
    assert (cluster.state().replicas, brief(cluster.state())) == ((3, 2), (3, (2, 3)))


async def test_a_reassignment_is_cancelled(cluster: Members) -> None:
    await cluster.create("t", (1, 2))
    topic = cluster[1].topics.get("t")
    assert topic is not None
    await cluster[1].requests.reassign(topic, {0: (3, 2)})
    moving = cluster[1].topics.get("t")
    assert moving is not None
    assert await cluster[1].requests.reassign(moving, {0: None}) == {0: None}
    state = cluster.state()
    assert (set(state.replicas), state.adding, state.removing) == ({1, 2}, (), ())
    (refusal,) = (await cluster[1].requests.reassign(topic, {0: None})).values()
    assert code(refusal) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((9,), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1,), ErrorCode.INVALID_REPLICATION_FACTOR),
        ((2, 1), None),
    ],
    ids=str,
)
async def test_wrong_targets_are_refused(cluster: Members, target: tuple[int, ...], expected: ErrorCode | None) -> None:
    topic = await cluster.create("t", (1, 2))
    (refusal,) = (await cluster[1].requests.reassign(topic, {0: target}, is_replication_change_allowed=False)).values()
    assert code(refusal) is expected


async def test_a_broker_that_stops_gives_its_leaderships_away(cluster: Members) -> None:
    await cluster.create("t", (2, 3), (3, 2), (2,), (1, 3))
    cluster[2].service.begin_shutdown()
    assert await cluster[2].requests.hand_over() == 2
    assert [brief(cluster.state("t", index)) for index in range(4)] == [(3, (3,)), (3, (3,)), (2, (2,)), (1, (1, 3))]
    assert await cluster[2].requests.hand_over() == 0


async def test_a_partition_whose_log_failed_is_handed_over_alone(cluster: Members) -> None:
    await cluster.create("t", (2, 3), (2, 3))
    assert await cluster[2].requests.hand_over_partition("t", 1) == 1
    assert [brief(cluster.state("t", index)) for index in range(2)] == [(2, (2, 3)), (3, (3,))]
    assert await cluster[2].requests.hand_over_partition("t", 7) == 0


async def test_a_log_that_lost_records_waits_for_the_dead_eligible_replica(cluster: Members) -> None:
    """ELR2. The dead replica has every committed record, and leads when it is back."""
    require(cluster, 2)
    await cluster.create("t", (2, 3))
    await cluster[3].kill()
    await cluster.wait_until_applied()
    assert (cluster.state().isr, cluster.state().elr) == ((2,), (3,))
    assert await cluster[2].requests.hand_over_partition("t", 0) == 0, "nothing is known to be lost"
    assert await cluster[2].requests.hand_over_partition("t", 0, lost_records=True) == 1
    await cluster.wait_until_applied()
    assert (cluster.state().leader, cluster.state().isr, cluster.state().elr) == (-1, (3,), ())
    await cluster.start(3)
    await cluster.wait_until_applied()
    assert (cluster.state().leader, cluster.state().isr) == (3, (3,))


async def test_ue1_a_log_that_cannot_be_recovered_makes_way_for_any_live_replica(cluster: Members) -> None:
    await cluster.create("t", (2, 3))
    await cluster.write("t", replace(cluster.state("t", 0), isr=(2,)))
    await cluster.wait_until_applied()
    assert await cluster[2].requests.hand_over_partition("t", 0) == 0
    assert await cluster[2].requests.hand_over_partition("t", 0, unclean=True) == 1
    assert brief(cluster.state("t", 0)) == (3, (3,))


async def test_a_broker_that_lost_power_leaves_each_isr_that_has_another_member(cluster: Members) -> None:
    """CM5. Who leads in its place is up to the controller."""
    await cluster.create("t", (2, 3), (3, 2), (2,), (1, 3))
    assert await cluster[2].requests.leave_isrs() == 2
    await cluster.wait_until_applied()
    assert [brief(cluster.state("t", index)) for index in range(4)] == [(3, (3,)), (3, (3,)), (2, (2,)), (1, (1, 3))]
    assert await cluster[2].requests.leave_isrs() == 0


async def test_a_broker_whose_logs_had_failed_leaves_their_isrs_alone(cluster: Members) -> None:
    """ELR2."""
    await cluster.create("t", (2, 3), (2, 3), (2,))
    assert await cluster[2].requests.leave_isrs({("t", 1), ("t", 2), ("u", 0)}) == 1
    await cluster.wait_until_applied()
    assert [cluster.state("t", index).isr for index in range(3)] == [(2, 3), (3,), (2,)]


def require(cluster: Members, minimum: int) -> None:
    """min.insync.replicas, of all topics."""
    for broker_id in (1, 2, 3):
        cluster[broker_id].topics.min_insync_replicas = lambda _: minimum


async def test_a_broker_that_lost_power_leaves_the_elr_and_gives_its_place_in_the_isr_to_it(cluster: Members) -> None:
    """CM5, ELR1."""
    require(cluster, 2)
    await cluster.create("t", (2, 3), (2, 3))
    await cluster.write("t", replace(cluster.state("t", 0), isr=(2,), elr=(3,)))
    alone = replace(cluster.state("t", 1), leader=3, leader_broker_epoch=cluster[3].epoch, isr=(3,), elr=(2,))
    await cluster.write("t", alone)
    await cluster.wait_until_applied()
    assert await cluster[2].requests.leave_isrs() == 2
    await cluster.wait_until_applied()
    assert [brief(cluster.state("t", index)) for index in range(2)] == [(3, (3,)), (3, (3,))]
    assert [cluster.state("t", index).elr for index in range(2)] == [(), ()]


async def test_a_stopping_broker_enters_the_elr_and_one_with_a_failed_log_does_not(cluster: Members) -> None:
    """ELR1."""
    require(cluster, 2)
    await cluster.create("t", (2, 3), (2, 3))
    cluster[2].service.begin_shutdown()
    await cluster[2].requests.hand_over()
    assert [cluster.state("t", index).elr for index in range(2)] == [(2,), (2,)]
    await cluster[2].requests.hand_over_partition("t", 1)
    assert [cluster.state("t", index).elr for index in range(2)] == [(2,), ()]


async def test_the_controller_keeps_whoever_dies_eligible(cluster: Members) -> None:
    """ELR1. The member that is left dies, too: the first one that comes back leads."""
    require(cluster, 2)
    await cluster.create("t", (2, 3))
    await cluster[3].kill()
    await cluster.wait_until_applied()
    assert (brief(cluster.state("t", 0)), cluster.state("t", 0).elr) == ((2, (2,)), (3,))
    await cluster[2].kill()
    await cluster.wait_until_applied()
    assert brief(cluster.state("t", 0)) == (-1, (2,))
    await cluster.start(3)
    await cluster.wait_until_applied()
    assert (brief(cluster.state("t", 0)), cluster.state("t", 0).elr) == ((3, (3,)), (2,))


def change_before_each_commit(cluster: Members, broker_id: int) -> None:
    """Another writer is faster than that broker, each time it writes partition 0 of `t`."""
    store = cluster[broker_id].store
    commit = store.commit

    async def later(ops: Sequence[Op]) -> object:
        if any(op.path == znodes.state_path("t", 0) for op in ops):
            await cluster.write("t", replace(cluster.state("t", 0)))
        return await commit(ops)

    store.commit = later  # type: ignore[assignment, method-assign]


async def test_a_broker_that_cannot_leave_an_isr_does_not_start(cluster: Members) -> None:
    """CM5."""
    await cluster.create("t", (2, 3), (3, 2))
    change_before_each_commit(cluster, 2)
    with pytest.raises(StoreFailed, match="others change 1 partitions, such as t"):
        await cluster[2].requests.leave_isrs()
    assert [brief(cluster.state("t", index))[1] for index in range(2)] == [(2, 3), (3,)]


async def test_r1_a_failed_log_that_cannot_leave_its_isr_is_not_used_again(cluster: Members) -> None:
    """Its recovery is tried again."""
    await cluster.create("t", (2, 3))
    change_before_each_commit(cluster, 2)
    with pytest.raises(ChangedByOthers, match="t-0"):
        await cluster[2].requests.hand_over_partition("t", 0, lost_records=True)


async def test_an_election_lost_to_a_concurrent_change_is_not_reported_as_done(cluster: Members) -> None:
    """SW2."""
    await cluster.create("t", (2, 3))
    await cluster.write("t", replace(cluster.state("t", 0), leader=3, leader_broker_epoch=cluster[3].epoch))
    await cluster.wait_until_applied()
    change_before_each_commit(cluster, 1)
    topic, requests = cluster[1].topics.get("t"), cluster[1].requests
    assert topic is not None
    results = await requests.elect([(topic, 0)], preferred_election)
    assert code(results["t", 0]) is ErrorCode.REQUEST_TIMED_OUT
    assert code((await requests.reassign(topic, {0: (1, 2)}))[0]) is ErrorCode.REQUEST_TIMED_OUT


async def test_a_late_isr_expansion_admits_no_broker_that_lost_power_meanwhile(cluster: Members) -> None:
    """CM5. The leader has decided on it; the follower restarts before the write reaches the store."""
    await cluster.create("t", (3, 2))
    await cluster.write("t", replace(cluster.state("t", 0), isr=(3,)))
    await cluster.wait_until_applied()
    commit = cluster[3].store.commit

    async def late(ops: Sequence[Op]) -> object:
        assert await cluster[2].requests.leave_isrs() == 0
        return await commit(ops)

    cluster[3].store.commit = late  # type: ignore[assignment, method-assign]
    assert not await cluster[3].topics.change_isr("t", 0, cluster.state("t", 0).leader_epoch, (3, 2))
    assert brief(cluster.state("t", 0)) == (3, (3,))


async def test_an_isr_expansion_for_an_earlier_registration_is_refused(cluster: Members) -> None:
    """CM5, KIP-903. The first attempt failed; the follower has registered again before the next one."""
    await cluster.create("t", (3, 2))
    await cluster.write("t", replace(cluster.state("t", 0), isr=(3,)))
    await cluster.wait_until_applied()
    topics, epoch, registered = cluster[3].topics, cluster.state("t", 0).leader_epoch, cluster[2].epoch
    assert not await topics.change_isr("t", 0, epoch, (3, 2), epochs={2: registered - 1})
    assert brief(cluster.state("t", 0)) == (3, (3,))
    assert await topics.change_isr("t", 0, epoch, (3, 2), epochs={2: registered})
    assert brief(cluster.state("t", 0)) == (3, (3, 2))
    assert await topics.change_isr("t", 0, epoch, (3,), epochs={2: registered - 1}), "any registration leaves the ISR"
