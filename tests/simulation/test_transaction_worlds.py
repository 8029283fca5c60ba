"""The laws of transactions in randomly generated scenarios of a cluster; and that their checks see what breaks them."""

from __future__ import annotations

import pytest
from tests.simulation.transaction_history import Log, Outcome, TransactionHistory
from tests.simulation.transaction_world import play

from rota.client.types import TopicPartition

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.usefixtures("quiet")
def test_the_laws_hold(
    transaction_seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    if request.config.getoption("--rota-seed", default=None) is None:
        world = play(transaction_seed)
    else:
        with capsys.disabled():
            world = play(transaction_seed, print)
    assert world.elections
    assert world.transactions.count(Outcome.COMMITTED) > 5
    assert any(world.transactions.reads.values())


def history_of_one(outcome: Outcome) -> TransactionHistory:
    """A transaction with two records, in two partitions, and an offset."""
    history = TransactionHistory()
    history.initialized(0, 1, (1000, 0))
    transaction = history.begin(0, 1, 1)
    transaction.records += [HERE, THERE]
    transaction.offset = history.next_offset()
    transaction.outcome = outcome
    return history


COMMITTED = {HERE: Log(committed=[(0, b"0.1/1/0")]), THERE: Log(committed=[(0, b"0.1/1/1")])}


def test_a_committed_transaction_is_visible_as_a_whole() -> None:
    history = history_of_one(Outcome.COMMITTED)
    history.check(COMMITTED, {0: 1})
    with pytest.raises(AssertionError, match=r"XS1: of 0\.1/1 only a part"):
        history.check(COMMITTED | {THERE: Log()}, {0: 1})
    with pytest.raises(AssertionError, match="XS1: the offset of 0 is -1"):
        history.check(COMMITTED, {0: -1})
    with pytest.raises(AssertionError, match=r"XS1: 0\.1/1 is not visible"):
        history.check({HERE: Log(), THERE: Log()}, {0: -1})


@pytest.mark.parametrize("outcome", [Outcome.OPEN, Outcome.ABORTED])
def test_what_was_not_committed_is_not_visible(outcome: Outcome) -> None:
    history = history_of_one(outcome)
    history.check({HERE: Log(aborted=[(0, b"0.1/1/0")]), THERE: Log()}, {0: -1})
    with pytest.raises(AssertionError, match=r"XS1: 0\.1/1 is visible"):
        history.check(COMMITTED, {0: 1})
    with pytest.raises(AssertionError, match=r"XS2: b.0\.1/1/0. "):
        history.read("r", HERE, 0, b"0.1/1/0")
    with pytest.raises(AssertionError, match="XS2: offset 1"):
        history.read_offset(0, 1, -1)


def test_a_reader_gets_all_that_is_committed() -> None:
    history = history_of_one(Outcome.COMMITTED)
    history.read("r", HERE, 5, b"0.1/1/0")
    with pytest.raises(AssertionError, match="XS2: r read"):
        history.check(COMMITTED, {0: 1})


def test_the_commit_of_a_producer_that_was_replaced_is_none() -> None:
    history = history_of_one(Outcome.OPEN)
    history.initialized(0, 2, (1000, 1))
    transaction = history.transactions["0.1/1"]
    history.commit_requested(transaction, 1)
    with pytest.raises(AssertionError, match="XS3"):
        history.committed(transaction)
    with pytest.raises(AssertionError, match="XS3"):
        history.check(COMMITTED, {0: 1})


def test_an_open_transaction_is_seen() -> None:
    with pytest.raises(AssertionError, match="XS4"):
        TransactionHistory().check({HERE: Log(open=[(0, b"0.1/1/0")])}, {})
