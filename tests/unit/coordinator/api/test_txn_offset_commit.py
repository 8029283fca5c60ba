"""Offsets in transactions: pending until the marker, fenced by member and generation, the same after a restart."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.offset_commit import offset_commit
from rota.coordinator.api.offset_delete import offset_delete
from rota.coordinator.api.offset_fetch import offset_fetch
from rota.coordinator.api.txn_offset_commit import commit_error, txn_offset_commit
from rota.coordinator.api.write_txn_markers import write_txn_markers
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.runtime.replay import Replay
from rota.coordinator.runtime.routing import shard_of
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rota.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from rota.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rota.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

E = ErrorCode
SHARD = shard_of("g", 4)


class TransactionWorld(GroupWorld):
    """The transaction coordinator answers `errors`, or when a test says so if `answers` is false."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: dict[tuple[str, int], E] = {}
        self.questions: list[tuple[Any, ...]] = []
        self.waiting: list[DelayedReply[Any]] = []
        self.answers = True
        self.node.verify_transaction = self._verify

    def _verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Any, *, adds: bool
    ) -> DelayedReply[Any]:
        self.questions.append((transactional_id, producer_id, producer_epoch, list(partitions), adds))
        reply: DelayedReply[Any] = DelayedReply()
        if self.answers:
            reply.answer(self.errors)
        self.waiting.append(reply)
        return reply

    def commit(self, offset: int, *, version: int = 4, producer_id: int = 7, epoch: int = 0, **member: Any) -> E:
        response = self.send_request(txn_offset_commit, request(offset, producer_id, epoch, **member), version)
        return E(response.topics[0].partitions[0].error_code)

    def plain_commit(self, offset: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
        self.send_request(offset_commit, OffsetCommitRequest(group_id="g", topics=(topic,)), 7)

    def end(self, *, is_commit: bool, producer_id: int = 7, epoch: int = 0) -> E:
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=is_commit,
            topics=(WritableTxnMarkerTopic(name=CONSUMER_OFFSETS, partition_indexes=(SHARD,)),),
            coordinator_epoch=0,
        )
        reply = self.serve(write_txn_markers, WriteTxnMarkersRequest(markers=(marker,)), 1)
        self.turn()
        response = reply.value if isinstance(reply, DelayedReply) else reply
        return E(response.markers[0].topics[0].partitions[0].error_code)

    def fetch(self, *, stable: bool = False) -> tuple[int, E]:
        topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
        found = self.send_request(
            offset_fetch, OffsetFetchRequest(group_id="g", topics=topics, require_stable=stable), 7
        )
        (partition,) = found.topics[0].partitions
        return partition.committed_offset, E(partition.error_code)

    def restart(self, epoch: int) -> None:
        """The shard is loaded again from its log."""
        self.node.groups.lead(SHARD, epoch)
        for _ in range(8):
            self.turn()


def request(offset: int, producer_id: int = 7, epoch: int = 0, **member: Any) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(partition,)),),
        **member,
    )


@pytest.fixture
def world() -> TransactionWorld:
    world = TransactionWorld()
    world.open()
    return world


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_are_pending_until_the_marker(world: TransactionWorld, is_commit: bool, is_restarted: bool) -> None:
    world.plain_commit(1)
    assert world.commit(5) is E.NONE
    assert world.questions == [("tx", 7, 0, [(CONSUMER_OFFSETS, SHARD)], False)]
    if is_restarted:
        world.restart(1)
    assert world.fetch() == (1, E.NONE)
    assert world.fetch(stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert world.end(is_commit=is_commit) is E.NONE
    expected = 5 if is_commit else 1
    assert world.fetch(stable=True) == (expected, E.NONE)
    world.restart(2)
    assert world.fetch(stable=True) == (expected, E.NONE)


def test_a_later_commit_wins_over_the_pending_one(world: TransactionWorld) -> None:
    assert world.commit(5) is E.NONE
    world.plain_commit(9)
    assert world.end(is_commit=True) is E.NONE
    assert world.fetch() == (9, E.NONE)
    world.restart(1)
    assert world.fetch() == (9, E.NONE)


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_xl6_an_offset_delete_takes_a_pending_offset_along(
    world: TransactionWorld, is_committed: bool, is_restarted: bool
) -> None:
    if is_committed:
        world.plain_commit(3)
    assert world.commit(5) is E.NONE
    partitions = (OffsetDeleteRequestPartition(partition_index=0),)
    request = OffsetDeleteRequest(group_id="g", topics=(OffsetDeleteRequestTopic(name="t", partitions=partitions),))
    assert not world.send_request(offset_delete, request, 0).error_code
    assert world.fetch(stable=True) == (-1, E.NONE)
    (group,) = world.node.groups.machines()
    assert group.summary.state == "Empty"
    if is_restarted:
        world.restart(1)
    assert world.end(is_commit=True) is E.NONE
    assert world.fetch() == (-1, E.NONE)


def test_a_group_with_nothing_but_a_pending_offset_is_kept(world: TransactionWorld) -> None:
    assert world.commit(5) is E.NONE
    assert world.fetch(stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert world.end(is_commit=False) is E.NONE
    assert "g" not in world.node.groups.shards[SHARD].machines


def test_the_coordinator_is_asked_once_and_its_refusal_is_answered(world: TransactionWorld) -> None:
    world.errors = {(CONSUMER_OFFSETS, SHARD): E.TRANSACTION_ABORTABLE}
    assert (world.commit(5, version=3), world.commit(5, version=5)) == (E.INVALID_TXN_STATE, E.TRANSACTION_ABORTABLE)
    assert world.questions[-1][-1], "version 5 adds the partition"
    world.errors = {}
    assert (world.commit(5), world.commit(6)) == (E.NONE, E.NONE)
    assert len(world.questions) == 3
    world.end(is_commit=True)
    assert world.fetch() == (6, E.NONE)


def test_more_open_transactions_than_are_kept_are_retried(
    world: TransactionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XL8."""
    monkeypatch.setattr("rota.coordinator.log.producers.PRODUCERS_PER_LOG_MAX", 1)
    assert (world.commit(5), world.commit(6, producer_id=8)) == (E.NONE, E.COORDINATOR_LOAD_IN_PROGRESS)
    world.end(is_commit=True)
    assert world.commit(6, producer_id=8) is E.NONE


def test_a_marker_meanwhile_refuses_the_commit(world: TransactionWorld) -> None:
    world.answers = False
    reply = world.serve(txn_offset_commit, request(5), 4)
    world.end(is_commit=False)
    world.waiting[0].answer({})
    assert reply.value.topics[0].partitions[0].error_code == E.INVALID_TXN_STATE


def test_a_marker_that_is_written_during_a_verification_makes_it_begin_again(world: TransactionWorld) -> None:
    """XL7. EndTxn is answered before its markers are written: the next transaction begins while they are on the way."""
    world.answers = False
    reply = world.serve(txn_offset_commit, request(5, epoch=1), 5)
    assert world.end(is_commit=True, epoch=1) is E.NONE
    world.waiting[0].answer({})
    world.turn()
    assert len(world.waiting) == 2
    world.waiting[1].answer({})
    world.turn()
    assert E(reply.value.topics[0].partitions[0].error_code) is E.NONE
    assert world.end(is_commit=True, epoch=1) is E.NONE
    assert world.fetch()[0] == 5


def test_a_marker_in_the_same_tick_is_after_the_offsets(world: TransactionWorld) -> None:
    world.serve(txn_offset_commit, request(5), 4)  # decided, and not written before the tick ends
    assert world.end(is_commit=True) is E.NONE
    assert world.fetch(stable=True) == (5, E.NONE)
    world.restart(1)
    assert world.fetch(stable=True) == (5, E.NONE)


def test_zombies_are_fenced(world: TransactionWorld) -> None:
    """KIP-447: by member and generation; and by the epoch of the producer."""
    member = world.member()
    current = {"member_id": member.member_id, "generation_id": member.generation_id}
    assert world.commit(5, **current) is E.NONE
    assert world.commit(5, **{**current, "generation_id": member.generation_id - 1}) is E.ILLEGAL_GENERATION
    assert world.commit(5, **{**current, "member_id": "other"}) is E.UNKNOWN_MEMBER_ID
    assert world.commit(5) is E.NONE, "a producer of before KIP-447"
    world.end(is_commit=True, epoch=1)
    assert world.commit(5, epoch=0) is E.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    "member", [{"member_id": "m"}, {"group_instance_id": "i"}, {"member_id": "m", "group_instance_id": "i"}]
)
def test_without_a_generation_a_group_without_members_takes_the_offsets_of_any_member(
    world: TransactionWorld, member: dict[str, str]
) -> None:
    assert world.commit(5, **member) is E.NONE
    assert world.commit(6, **member) is E.NONE
    assert world.commit(7, **member, generation_id=1) is E.UNKNOWN_MEMBER_ID
    world.member("g")
    assert world.commit(8, **member) is E.UNKNOWN_MEMBER_ID
    assert world.commit(9) is E.NONE, "a producer of before KIP-447"


def test_partitions_that_do_not_exist_are_refused_alone(world: TransactionWorld) -> None:
    partitions = tuple(TxnOffsetCommitRequestPartition(partition_index=n, committed_offset=5) for n in (0, 99))
    wanted = request(5)
    wanted.topics = (TxnOffsetCommitRequestTopic(name="t", partitions=partitions),)
    response = world.send_request(txn_offset_commit, wanted, 4)
    assert [each.error_code for each in response.topics[0].partitions] == [E.UNKNOWN_TOPIC_OR_PARTITION, E.NONE]


def test_txc14_an_empty_group_id_adds_nothing_to_the_transaction(world: TransactionWorld) -> None:
    partitions = tuple(TxnOffsetCommitRequestPartition(partition_index=n, committed_offset=5) for n in (0, 99))
    wanted = request(5)
    wanted.group_id, wanted.topics = "", (TxnOffsetCommitRequestTopic(name="t", partitions=partitions),)
    response = world.send_request(txn_offset_commit, wanted, 5)
    assert [each.error_code for each in response.topics[0].partitions] == [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.INVALID_GROUP_ID,
    ]
    assert world.questions == []


def test_a_topic_without_partitions_is_answered_if_it_does_not_exist(world: TransactionWorld) -> None:
    wanted = request(5)
    wanted.topics = (TxnOffsetCommitRequestTopic(name="t", partitions=()), *wanted.topics)
    assert [len(topic.partitions) for topic in world.send_request(txn_offset_commit, wanted, 4).topics] == [1]
    wanted.topics += (TxnOffsetCommitRequestTopic(name="none", partitions=()),)
    assert [topic.name for topic in world.send_request(txn_offset_commit, wanted, 4).topics] == ["none", "t"]


def test_txc17_metadata_that_is_too_long_is_found_after_all_other_errors(world: TransactionWorld) -> None:
    """As in Kafka also a commit of nothing else is verified, and adds the offsets partition to the transaction."""
    wanted = request(5, member_id="m", generation_id=3)
    wanted.topics[0].partitions[0].committed_metadata = "m" * 4_097
    world.errors = {(CONSUMER_OFFSETS, SHARD): E.INVALID_PRODUCER_ID_MAPPING}
    assert _code(world, wanted) is E.INVALID_PRODUCER_ID_MAPPING
    world.errors = {}
    assert _code(world, wanted) is E.ILLEGAL_GENERATION
    wanted.member_id, wanted.generation_id = "", -1
    assert _code(world, wanted) is E.OFFSET_METADATA_TOO_LARGE
    assert world.fetch() == (-1, E.NONE)
    assert len(world.questions) == 3


def _code(world: TransactionWorld, wanted: TxnOffsetCommitRequest) -> E:
    return E(world.send_request(txn_offset_commit, wanted, 5).topics[0].partitions[0].error_code)


def test_markers_of_groups_that_are_not_loaded_are_sent_again(world: TransactionWorld) -> None:
    world.node.groups.resign(SHARD, 7)
    assert world.end(is_commit=True) is E.NOT_LEADER_OR_FOLLOWER
    assert world.commit(5) is E.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("error", "version", "answered"),
    [
        (E.PRODUCER_FENCED, 5, E.INVALID_PRODUCER_EPOCH),
        (E.COORDINATOR_NOT_AVAILABLE, 5, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.CONCURRENT_TRANSACTIONS, 4, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.CONCURRENT_TRANSACTIONS, 5, E.CONCURRENT_TRANSACTIONS),
        (E.INVALID_PRODUCER_ID_MAPPING, 5, E.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_older_producers_get_a_code_that_they_know(error: E, version: int, answered: E) -> None:
    assert commit_error(error, version) is answered


def test_a_standby_applies_what_the_markers_decide(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """One record in each slice: what was read is applied in the order of the log."""
    monkeypatch.setattr("rota.coordinator.runtime.replay.APPLY_RECORDS_MAX", 1)
    log = world.partition(CONSUMER_OFFSETS, SHARD).log
    standby = Replay[Any](world.node.groups.hosting, {})

    def offset() -> int | None:
        while not standby.advance(log, log.log_end_offset):
            pass
        group = standby.machines.get("g")
        found = None if group is None else group.offsets.get(("t", 0))
        return None if found is None else int(found.offset)

    world.plain_commit(1)
    assert world.commit(5) is E.NONE
    assert offset() == 1
    world.end(is_commit=False)
    assert world.commit(6) is E.NONE
    assert world.commit(7, producer_id=8) is E.NONE
    assert offset() == 1
    world.end(is_commit=True, producer_id=8)
    assert offset() == 7
    world.end(is_commit=True)
    assert offset() == world.fetch()[0] == 7, "its record is the later one"


def test_compaction_changes_nothing(world: TransactionWorld) -> None:
    """G5. Aborted offsets go, and pending ones stay with all that follows them."""
    partition = world.partition(CONSUMER_OFFSETS, SHARD)
    for offset in range(6):
        assert world.commit(offset) is E.NONE
        world.end(is_commit=offset < 4)
    partition.log._roll(0)  # type: ignore[attr-defined]
    assert world.commit(9) is E.NONE
    before = partition.log.size_bytes
    partition.log.producers.committed(partition.high_watermark)
    assert partition.log.compact(world.now_ms, force=True) > 0
    assert partition.log.size_bytes < before
    world.restart(1)
    assert (world.fetch(), world.fetch(stable=True)) == ((3, E.NONE), (-1, E.UNSTABLE_OFFSET_COMMIT))
    world.end(is_commit=True)
    assert world.fetch(stable=True) == (9, E.NONE)
