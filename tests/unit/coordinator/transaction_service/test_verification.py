"""The questions of a partition's leader, to the coordinator here or at another broker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.coordinator.api.transaction_world import TransactionWorld

from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction.events import Producer
from rota.coordinator.transaction_service.verification import (
    RETRIES_MAX,
    RETRY_MS,
    PartitionVerification,
    Verification,
    request_of,
)
from rota.protocol.constructs import DecodeError
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from rota.transport.errors import Unreachable

E = ErrorCode
Errors = dict[tuple[str, int], ErrorCode]


class VerifyingWorld(TransactionWorld):
    """`leader` coordinates all ids; `response` is what another broker answers, None: it is dead."""

    def __init__(self, leader: int | None = 0) -> None:
        super().__init__()
        self.response: AddPartitionsToTxnResponse | None = None
        self.failure: Exception = Unreachable("it is dead")
        self.waits = False
        self.requests: list[tuple[int, Any]] = []
        self.node.transactions._leader = lambda index: leader
        self.verification = Verification(
            self.node.transactions,
            broker_id=0,
            send_request=self.send_request_to,
            timers=self.node.timers,
            now_ms=lambda: self.now_ms,
        )

    async def send_request_to(self, broker: int, request: Any) -> Any:
        self.requests.append((broker, request))
        if self.waits:
            await asyncio.sleep(0)
        if self.response is None:
            raise self.failure
        return self.response

    def verify(self, producer: tuple[int, int], *indexes: int, adds: bool = False) -> DelayedReply[Errors]:
        partitions = [("t", index) for index in indexes]
        reply = self.verification.verify("tx", *producer, partitions, adds=adds)
        self.end_turn()
        return reply


def test_a_partition_of_the_transaction_has_no_error() -> None:
    world = VerifyingWorld()
    producer = world.began()
    assert world.verify(producer, 0).value == {}
    assert world.verify(producer, 0, 1).value == {("t", 1): E.TRANSACTION_ABORTABLE}


def test_a_partition_is_added() -> None:
    world = VerifyingWorld()
    producer = world.began()
    assert world.verify(producer, 1, adds=True).value == {}
    assert world.verify(producer, 0, 1).value == {}


def test_an_error_of_the_producer_is_that_of_every_partition() -> None:
    world = VerifyingWorld()
    producer_id, epoch = world.began()
    assert world.verify((producer_id, epoch + 1), 0, 1).value == dict.fromkeys([("t", 0), ("t", 1)], E.PRODUCER_FENCED)


def test_txc14_an_empty_transactional_id_is_an_invalid_request() -> None:
    world = VerifyingWorld()
    for adds in (True, False):
        reply = world.verification.verify("", 5, 0, [("t", 0)], adds=adds)
        assert reply.value == {("t", 0): E.INVALID_REQUEST}


def ending() -> tuple[VerifyingWorld, tuple[int, int]]:
    """The marker of the transaction cannot be written."""
    world = VerifyingWorld()
    producer = world.began()
    world.partition().offline = "its disk is gone"
    world.end(producer)
    assert world.state() == "PrepareCommit"
    return world, producer


def test_a_partition_that_is_to_be_added_waits_for_the_end_of_the_transaction_before() -> None:
    world, producer = ending()
    reply = world.verify(producer, 1, adds=True)
    assert not reply.answered
    world.partition().offline = None
    world.now_ms += 100
    world.turn()
    world.after(RETRY_MS)
    world.end_turn()
    assert (reply.value, world.state()) == ({}, "Ongoing")


def test_it_does_not_wait_for_ever_and_a_verification_does_not_wait() -> None:
    world, producer = ending()
    assert world.verify(producer, 0).value == {("t", 0): E.CONCURRENT_TRANSACTIONS}
    reply = world.verify(producer, 0, adds=True)
    for _ in range(RETRIES_MAX):
        assert not reply.answered
        world.after(RETRY_MS)
        world.end_turn()
    assert reply.value == {("t", 0): E.CONCURRENT_TRANSACTIONS}


def test_without_a_leader_the_coordinator_is_not_available() -> None:
    assert VerifyingWorld(leader=None).verify((0, 0), 0).value == {("t", 0): E.COORDINATOR_NOT_AVAILABLE}


def answer(code: ErrorCode) -> AddPartitionsToTxnResponse:
    partition = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)
    topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=(partition,))
    result = AddPartitionsToTxnResult(transactional_id="tx", topic_results=(topic,))
    return AddPartitionsToTxnResponse(results_by_transaction=(result,))


@pytest.mark.parametrize(
    ("response", "errors"),
    [
        (answer(E.NONE), {}),
        (answer(E.PRODUCER_FENCED), {("t", 0): E.PRODUCER_FENCED}),
        (AddPartitionsToTxnResponse(error_code=E.CLUSTER_AUTHORIZATION_FAILED), {("t", 0): E.INVALID_TXN_STATE}),
        (None, {("t", 0): E.NETWORK_EXCEPTION}),
    ],
)
def test_another_broker_is_asked(response: AddPartitionsToTxnResponse | None, errors: Errors) -> None:
    world = VerifyingWorld(leader=4)
    world.response = response
    assert world.verify((7, 1), 0).value == errors
    ((broker, _),) = world.requests
    assert broker == 4


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("failure", [DecodeError("nonsense"), OSError(24, "no file is left"), KeyError("t")])
def test_an_unexpected_failure_is_answered(failure: Exception, waits: bool) -> None:
    world = VerifyingWorld(leader=4)
    world.failure, world.waits = failure, waits

    async def play() -> DelayedReply[Errors]:
        reply = world.verify((7, 1), 0)
        for _ in range(3):
            await asyncio.sleep(0)
        return reply

    assert asyncio.run(play()).value == {("t", 0): E.NETWORK_EXCEPTION}


@pytest.mark.parametrize("adds", [True, False])
def test_the_request_has_the_whole_question(adds: bool) -> None:
    verification = PartitionVerification("tx", Producer(7, 1), (("t", 0), ("u", 2), ("t", 1)), adds)
    (transaction,) = request_of(verification).transactions
    assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("tx", 7, 1)
    assert transaction.verify_only is not adds
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", (0, 1)), ("u", (2,))]


def test_nothing_keeps_the_loop_busy() -> None:
    async def play() -> int:
        world = VerifyingWorld(leader=4)
        world.verify((7, 1), 0)
        return len(asyncio.all_tasks())

    assert asyncio.run(play()) == 1
