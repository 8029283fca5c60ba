"""Conversations of a cluster's brokers with the store: who is the controller, and what it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.controller_service.members import Member, Members, until

from rota.coordinator.controller.fencing import HOLD_MS
from rota.coordinator.controller_service.service import ANSWER_MS_MAX, PARTITIONS_PER_SLICE, RETRY_MS
from rota.coordinator.controller_service.state_writer import ATTEMPTS_MAX
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.image import NOT_REGISTERED
from rota.coordinator.metadata.store import BadNode, BadVersion, Op, SessionState, Set, Stat, StoreFailed, Watch
from rota.coordinator.metadata.topic import PartitionState, Topic


@pytest.fixture
async def cluster() -> AsyncIterator[Members]:
    with capture_logs():
        async with Members() as members:
            yield members


def brief(state: PartitionState) -> tuple[int, tuple[int, ...]]:
    return state.leader, state.isr


async def test_a_partition_that_could_not_be_written_is_decided_again_after_a_while(cluster: Members) -> None:
    """SW2. Nothing in the image changes meanwhile that would wake the controller."""
    await cluster.create()
    commit, refused = cluster[1].store.commit, list[str]()

    async def refuse(ops: Sequence[Op]) -> None:
        for op in ops:
            if isinstance(op, Set) and op.path == znodes.state_path("t", 0) and len(refused) < ATTEMPTS_MAX:
                refused.append(op.path)
                raise BadVersion(op.path)
        await commit(ops)

    cluster[1].store.commit = refuse  # type: ignore[method-assign]
    await cluster[3].kill()
    await cluster.wait_until_applied()
    assert len(refused) == ATTEMPTS_MAX
    assert brief(cluster.state()) == (1, (1, 2, 3))
    await cluster.pass_ms(RETRY_MS)
    assert brief(cluster.state()) == (1, (1, 2))


@pytest.mark.parametrize(
    ("path", "data"), [(znodes.CONTROLLER, b"{"), (znodes.CONTROLLER, b"[]"), (znodes.CONTROLLER_EPOCH, b"many")]
)
async def test_a_node_that_cannot_be_read_ends_no_controller_for_good(cluster: Members, path: str, data: bytes) -> None:
    """CT4. Another program wrote it, and somebody mends it."""
    await cluster.create()
    good, _ = await cluster[1].store.get(path)
    await cluster[1].store.set(path, data)
    await cluster[3].kill()
    interruption = cluster[1].service._interruption
    await until(lambda: interruption._count)  # that of the epoch is fenced first
    cluster.now_ms += RETRY_MS
    cluster[1].timers.fire()
    await until(lambda: "cannot be read" in interruption._reason)
    await cluster[1].store.set(path, good)
    await cluster.pass_ms(RETRY_MS)
    assert cluster.controllers() == [1]
    assert brief(cluster.state()) == (1, (1, 2))


async def test_a_mistake_of_a_decision_is_logged_and_does_not_end_the_controller(cluster: Members) -> None:
    """CT4."""
    await cluster.create("t", (3,))
    config, service, mistakes = cluster[1].service._config, cluster[1].service, list[BaseException]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: mistakes.append(context["exception"]))

    def fail(_: Topic) -> bool:
        raise LookupError("planted")

    service._config = replace(config, allows_unclean=fail)
    with capture_logs() as lines:
        await cluster[3].kill()
        await cluster.wait_until_applied()
        await cluster.pass_ms(RETRY_MS)
        service._config = config
        await cluster.pass_ms(RETRY_MS)
    assert brief(cluster.state()) == (-1, (3,))
    (reason,) = {line["reason"] for line in lines if line["event"].startswith("Controller interrupted")}
    assert "planted" in reason
    assert [type(mistake) for mistake in mistakes] == [LookupError]


async def test_decisions_that_are_too_large_for_one_commit_are_written_in_several(cluster: Members) -> None:
    """SW2. ZooKeeper's store names the first operation, which is the fence here."""
    await cluster.create("t", *[(3, 2, 1)] * 9)
    commit, ops_max = cluster[1].store.commit, 6

    async def refuse(ops: Sequence[Op]) -> None:
        if len(ops) > ops_max:
            raise BadNode(ops[0].path, "a change of too many bytes")
        await commit(ops)

    cluster[1].store.commit = refuse  # type: ignore[method-assign]
    cluster[1].service.broker_died(3, cluster[3].epoch)
    await cluster.wait_until_applied()
    assert {brief(cluster.state("t", index)) for index in range(9)} == {(2, (2, 1))}
    assert znodes.broker_path(3) not in cluster.shared.tree.nodes


class TestOwnership:
    async def test_the_first_broker_is_the_controller(self, cluster: Members) -> None:
        assert cluster.controllers() == [1]
        assert cluster.shared.tree.nodes[znodes.CONTROLLER_EPOCH].data == b"1"

    async def test_when_the_controllers_session_ends_another_broker_is_elected(self, cluster: Members) -> None:
        await cluster.create()
        await cluster[1].kill()
        await cluster.wait_until_applied()
        assert len(cluster.controllers()) == 1
        assert cluster.shared.tree.nodes[znodes.CONTROLLER_EPOCH].data == b"2"
        assert brief(cluster.state()) == (2, (2, 3))

    async def test_a_controller_that_is_found_dead_is_replaced_before_its_session_ends(self, cluster: Members) -> None:
        await cluster.create()
        epoch = cluster[1].epoch
        await cluster[1].freeze()
        cluster[2].service.broker_died(1, epoch)
        cluster[3].service.broker_died(1, epoch)
        await cluster.wait_until_applied()
        assert cluster.controllers() in ([2], [3])
        assert znodes.broker_path(1) not in cluster.shared.tree.nodes
        assert brief(cluster.state()) == (2, (2, 3))
        assert cluster.shared.tree.nodes[znodes.CONTROLLER_EPOCH].data == b"2"

    async def test_a_former_controller_writes_nothing(self, cluster: Members) -> None:
        await cluster.create()
        first, second = cluster[1], cluster[2]
        first.store.hold_events()
        second.service.broker_died(1, first.epoch)
        await cluster.wait_until_applied()
        before = cluster.shared.tree.last_change
        first.service.broker_died(3, cluster[3].epoch)
        await cluster.wait_until_applied()
        assert cluster.shared.tree.last_change == before
        assert not first.service.is_controller
        await cluster.pass_ms(RETRY_MS)
        assert len(cluster.controllers()) == 1

    async def test_an_expired_session_ends_the_controllership_and_elects_another(self, cluster: Members) -> None:
        await cluster[1].store.expire()
        await cluster.wait_until_applied()
        assert len(cluster.controllers()) == 1
        assert cluster.controllers() != [1]

    async def test_a_controller_election_with_a_lost_response_counts(self, cluster: Members) -> None:
        await cluster[2].freeze()
        cluster[3].store.lose_next_commit(applied=True)
        await cluster[1].kill()
        await cluster.wait_until_applied()
        await cluster.pass_ms(1_000)
        assert cluster.controllers() == [3]

    async def test_an_earlier_life_is_replaced_at_once(self, cluster: Members) -> None:
        await cluster[1].freeze()
        await cluster[1].store.delete(znodes.broker_path(1))
        again = await cluster.start(1)
        assert again.service.is_controller
        await cluster[1].kill()

    async def test_a_broker_that_is_not_registered_takes_the_place_of_no_other(self, cluster: Members) -> None:
        """CT3. Another broker has its id meanwhile; the two would take the place of each other without end."""
        fenced = Member(cluster, 1)
        await fenced.updater.follow(fenced.topics)
        fenced.topics.broker_epoch = NOT_REGISTERED
        await fenced.service.start()
        await cluster.wait_until_applied()
        assert (cluster.controllers(), fenced.service.is_controller) == ([1], False)
        assert cluster.shared.tree.nodes[znodes.CONTROLLER_EPOCH].data == b"1"
        await cluster[1].kill()
        await cluster[2].kill()
        await cluster.wait_until_applied()
        assert cluster.controllers() == [3]
        await fenced.kill()

    async def test_a_controller_that_stops_leaves_at_once(self, cluster: Members) -> None:
        await cluster[1].service.stop()
        await cluster.wait_until_applied()
        assert cluster.controllers() in ([2], [3])


class TestElections:
    async def test_the_partitions_of_a_dead_broker_get_new_leaders(self, cluster: Members) -> None:
        await cluster.create("t", (2, 3, 1), (3, 2), (2,), (1, 2))
        await cluster[2].kill()
        await cluster.wait_until_applied()
        assert [brief(cluster.state("t", index)) for index in range(4)] == [
            (3, (3, 1)),
            (3, (3,)),
            (-1, (2,)),
            (1, (1,)),
        ]

    async def test_a_broker_that_is_found_dead_is_fenced_and_replaced_in_one_commit(self, cluster: Members) -> None:
        await cluster.create("t", (2, 3, 1), (2, 1))
        await cluster[2].freeze()
        before = cluster.shared.tree.last_change
        cluster[1].service.broker_died(2, cluster[2].epoch)
        await cluster.wait_until_applied()
        assert brief(cluster.state("t", 1)) == (1, (1,))
        assert znodes.broker_path(2) not in cluster.shared.tree.nodes
        assert cluster.shared.tree.last_change == before + 1

    async def test_a_report_of_an_earlier_life_changes_nothing(self, cluster: Members) -> None:
        before = cluster.shared.tree.last_change
        cluster[1].service.broker_died(2, cluster[2].epoch - 1)
        await cluster.wait_until_applied()
        assert cluster.shared.tree.last_change == before

    async def test_a_broker_that_is_suspected_again_and_again_is_fenced_later(self, cluster: Members) -> None:
        cluster[1].service.broker_died(2, cluster[2].epoch)
        await cluster.wait_until_applied()
        assert znodes.broker_path(2) not in cluster.shared.tree.nodes
        await cluster[2].register()
        await cluster.wait_until_applied()
        cluster[1].service.broker_died(2, cluster[2].epoch)
        await cluster.wait_until_applied()
        assert znodes.broker_path(2) in cluster.shared.tree.nodes
        await cluster.pass_ms(HOLD_MS)
        assert znodes.broker_path(2) not in cluster.shared.tree.nodes

    async def test_a_broker_that_registers_again_is_elected_again(self, cluster: Members) -> None:
        await cluster.create("t", (2,), (2, 3))
        await cluster[2].store.delete(znodes.broker_path(2))
        await cluster[2].register()
        await cluster.wait_until_applied()
        alone, other = cluster.state("t", 0), cluster.state("t", 1)
        assert brief(alone) == (2, (2,))
        assert (alone.leader_broker_epoch, alone.leader_epoch > 0) == (cluster[2].epoch, True)
        assert brief(other) == (3, (3,))

    async def test_a_partition_that_others_change_at_the_same_time_is_decided_again(self, cluster: Members) -> None:
        await cluster.create("t", (2, 3, 1))
        for broker_id in (1, 3):
            cluster[broker_id].store.hold_events()
        await cluster.write("t", replace(cluster.state(), isr=(2, 1)))
        await cluster[2].kill()
        cluster[1].store.release_events()
        await cluster.wait_until_applied()
        assert brief(cluster.state()) == (1, (1,))

    async def test_unclean_elections_where_the_topic_allows_them(self, cluster: Members) -> None:
        await cluster.create("t", (2, 3))
        await cluster.create("u", (2, 3), unclean="true")
        for name in ("t", "u"):
            await cluster.write(name, replace(cluster.state(name), isr=(2,)))
        await cluster[2].kill()
        await cluster.wait_until_applied()
        assert brief(cluster.state("t")) == (-1, (2,))
        assert brief(cluster.state("u")) == (3, (3,))

    async def test_a_topic_that_is_deleted_meanwhile_holds_up_no_other(self, cluster: Members) -> None:
        await cluster.create("t", (2, 3))
        await cluster.create("u", (2, 3))
        cluster[1].store.hold_events()
        await cluster[3].topics.delete("t")
        await cluster[2].kill()
        cluster[1].store.release_events()
        await cluster.wait_until_applied()
        assert brief(cluster.state("u")) == (3, (3,))

    async def test_a_broker_with_very_many_partitions_dies(self, cluster: Members) -> None:
        count = PARTITIONS_PER_SLICE + 100
        await cluster.create("t", *[(2, 3), (3, 2)] * (count // 2))
        await cluster[2].kill()
        await cluster.wait_until_applied()
        topic = cluster[3].topics.get("t")
        assert topic is not None
        assert {brief(state) for state in topic.partitions} == {(3, (3,))}
        assert {state.controller_epoch for state in topic.partitions} == {1}

    async def test_preferred_leaders_return_when_it_is_time(self, cluster: Members) -> None:
        await cluster.create("t", (2, 3, 1))
        await cluster.write("t", replace(cluster.state(), leader=3, leader_broker_epoch=cluster[3].epoch))
        await cluster.wait_until_applied()
        assert brief(cluster.state())[0] == 3
        await cluster.pass_ms(300_000)
        assert brief(cluster.state())[0] == 2

    async def test_a_store_that_is_cut_off_delays_an_election(self, cluster: Members) -> None:
        await cluster.create("t", (2, 3))
        cluster[1].store.suspend()
        await cluster[2].kill()
        await cluster.wait_until_applied()
        assert brief(cluster.state()) == (2, (2, 3))
        cluster[1].store.resume()
        await cluster.wait_until_applied()
        assert brief(cluster.state()) == (3, (3,))

    async def test_a_write_of_unknown_outcome_is_decided_again(self, cluster: Members) -> None:
        await cluster.create("t", (2, 3))
        cluster[1].store.lose_next_commit(applied=False)
        await cluster[2].kill()
        await cluster.wait_until_applied()
        await cluster.pass_ms(1_000)
        assert brief(cluster.state()) == (3, (3,))

    async def test_a_store_that_fails_again_and_again_is_logged_once_and_counted(self, cluster: Members) -> None:
        await cluster.create("t", (2, 3))
        with capture_logs() as lines:
            cluster[1].store.lose_next_commit(applied=False)
            await cluster[2].kill()
            await cluster.wait_until_applied()
            for _ in range(4):
                cluster[1].store.lose_next_commit(applied=False)
                await cluster.pass_ms(RETRY_MS)
            await cluster.pass_ms(RETRY_MS)
        assert brief(cluster.state()) == (3, (3,))
        interrupted = [line for line in lines if line["event"].startswith("Controller interrupted")]
        assert [(line["log_level"], line.get("count")) for line in interrupted] == [("warning", None), ("info", 5)]


def slow_store(cluster: Members, member: Member, takes_ms: int, failure: StoreFailed | None = None) -> None:
    """Its next change takes so long, as when its network, or that of its server, was cut; or it fails. Reads do not."""
    commit = member.store.commit

    async def answer(ops: Sequence[Op]) -> None:
        member.store.commit = commit  # type: ignore[method-assign]
        cluster.now_ms += takes_ms
        if failure is not None:
            raise failure
        await commit(ops)

    member.store.commit = answer  # type: ignore[method-assign]


@pytest.mark.parametrize(("takes_ms", "failure"), [(ANSWER_MS_MAX + 1, None), (0, StoreFailed("not connected"))])
async def test_a_controller_that_was_cut_off_asks_the_others_again(
    cluster: Members, takes_ms: int, failure: StoreFailed | None
) -> None:
    """FN3. Whoever answers is not fenced, whoever is silent is."""
    slow_store(cluster, cluster[1], takes_ms, failure)
    for broker_id in (2, 3):
        cluster[1].service.broker_died(broker_id, cluster[broker_id].epoch)
    await cluster.wait_until_applied()
    assert cluster[1].pings == 1
    cluster[1].service.broker_alive(2)
    await cluster.pass_ms(HOLD_MS - 1)
    assert set(cluster[1].topics.brokers) == {1, 2, 3}
    await cluster.pass_ms(1)
    assert set(cluster[1].topics.brokers) == {1, 2}
    assert cluster[1].pings == 1


async def test_a_broker_that_was_cut_off_replaces_no_controller_that_answers(cluster: Members) -> None:
    """FN3."""
    slow_store(cluster, cluster[2], ANSWER_MS_MAX + 1)
    cluster[2].service.broker_died(1, cluster[1].epoch)
    await cluster.wait_until_applied()
    cluster[2].service.broker_alive(1)
    await cluster.pass_ms(HOLD_MS)
    assert (cluster.controllers(), cluster[2].pings) == ([1], 1)


async def test_a_report_that_waited_for_the_store_is_of_a_broker_that_was_cut_off(cluster: Members) -> None:
    """FN3. The controller was waiting for an earlier answer, and the next one comes at once."""
    cluster[1].service.broker_died(3, cluster[3].epoch)
    cluster.now_ms += ANSWER_MS_MAX + 1
    await cluster.wait_until_applied()
    assert (set(cluster[1].topics.brokers), cluster[1].pings) == ({1, 2, 3}, 1)


def slow_reads(cluster: Members, member: Member, meanwhile: Callable[[], None]) -> None:
    """It reads `/controller` again next, and `meanwhile` happens until the answer comes."""
    get = member.store.get

    async def answer(path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        member.store.get = get  # type: ignore[method-assign]
        meanwhile()
        return await get(path, watch)

    member.store.get = answer  # type: ignore[method-assign]
    member.service._session_changed(SessionState.CONNECTED)


async def test_a_report_that_comes_after_the_store_was_asked_does_not_count_yet(cluster: Members) -> None:
    """FN3. The network fails while `/controller` is read, for as long as the reports take."""

    def cut_off() -> None:
        cluster.now_ms += 3_000
        for broker_id in (2, 3):
            cluster[1].service.broker_died(broker_id, cluster[broker_id].epoch)
        cluster.now_ms += ANSWER_MS_MAX + 1

    slow_reads(cluster, cluster[1], cut_off)
    await cluster.wait_until_applied()
    assert (set(cluster[1].topics.brokers), cluster[1].pings) == ({1, 2, 3}, 1)
    cluster[1].service.broker_alive(2)
    await cluster.pass_ms(HOLD_MS)
    assert set(cluster[1].topics.brokers) == {1, 2}


async def test_a_report_whose_hold_ends_while_the_controller_waits_counts_then(cluster: Members) -> None:
    """FN3. Nothing else wakes the controller."""

    def takes_long() -> None:
        cluster.now_ms += HOLD_MS + 1

    slow_store(cluster, cluster[1], ANSWER_MS_MAX + 1)
    slow_reads(cluster, cluster[1], takes_long)
    cluster[1].service.broker_died(3, cluster[3].epoch)
    await cluster.wait_until_applied()
    await cluster.pass_ms(1)
    assert set(cluster[1].topics.brokers) == {1, 2}


async def test_a_store_that_is_always_slow_delays_no_failover_for_ever(cluster: Members) -> None:
    """FN3."""
    commit = cluster[1].store.commit

    async def slow(ops: Sequence[Op]) -> None:
        cluster.now_ms += 2 * ANSWER_MS_MAX
        await commit(ops)

    cluster[1].store.commit = slow  # type: ignore[method-assign]
    for broker_id in (3, 2):  # the first answer in time is not the rule
        cluster[1].pings = 0
        cluster[1].service.broker_died(broker_id, cluster[broker_id].epoch)
        await cluster.wait_until_applied()
        assert broker_id in cluster[1].topics.brokers
        await cluster.pass_ms(HOLD_MS)
        assert broker_id not in cluster[1].topics.brokers
        assert cluster[1].pings == 1


async def test_a_report_that_waits_behind_a_long_write_counts_at_once(cluster: Members) -> None:
    """FN3. Each answer to the controller's own changes says that it is not cut off."""
    await cluster.create("t", *[(3, 2, 1)] * 9)
    first, ops_max, began_ms = cluster[1], 6, list[int]()
    commit = first.store.commit

    async def slow(ops: Sequence[Op]) -> None:
        cluster.now_ms += ANSWER_MS_MAX
        if len(ops) > ops_max:
            raise BadNode(ops[0].path, "a change of too many bytes")
        if not began_ms and any(isinstance(op, Set) for op in ops):
            began_ms.append(cluster.now_ms)
            first.service.broker_died(2, cluster[2].epoch)
        await commit(ops)

    first.store.commit = slow  # type: ignore[method-assign]
    first.service.broker_died(3, cluster[3].epoch)
    await cluster.wait_until_applied()
    assert cluster.now_ms - began_ms[0] > 3 * ANSWER_MS_MAX
    assert (set(first.topics.brokers), first.pings) == ({1}, 0)


async def test_a_report_that_comes_while_the_store_is_asked_waits_for_what_it_answers_then(cluster: Members) -> None:
    """FN3. The network fails after that answer, while the controller writes."""
    await cluster.create("t", (3, 2, 1))
    first = cluster[1]
    commit, calls = first.store.commit, list[Sequence[Op]]()

    async def answer(ops: Sequence[Op]) -> None:
        calls.append(ops)
        if len(calls) == 1:
            cluster.now_ms += 1
            first.service.broker_died(2, cluster[2].epoch)
        if len(calls) == 2:
            cluster.now_ms += ANSWER_MS_MAX + 1
        await commit(ops)

    first.store.commit = answer  # type: ignore[method-assign]
    first.service.broker_died(3, cluster[3].epoch)
    await cluster.wait_until_applied()
    assert len(calls) == 3
    assert (set(first.topics.brokers), first.pings) == ({1, 2}, 1)


async def test_a_time_without_a_report_is_not_one_without_an_answer(cluster: Members) -> None:
    """FN3."""
    for broker_id in (3, 2):
        cluster[1].service.broker_died(broker_id, cluster[broker_id].epoch)
        await cluster.wait_until_applied()
        await cluster.pass_ms(10 * ANSWER_MS_MAX)
    assert (set(cluster[1].topics.brokers), cluster[1].pings) == ({1}, 0)
