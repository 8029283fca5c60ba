"""The index of aborted transactions: Kafka's bytes, and each aborted transaction found by the reads that meet it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.log.index import BadIndex
from rota.coordinator.log.transactions import ENTRY_BYTES, AbortedTransaction, TransactionIndex


def index(*entries: tuple[int, int, int, int]) -> TransactionIndex:
    made = TransactionIndex()
    for entry in entries:
        made.append(AbortedTransaction(*entry))
    return made


def test_the_bytes_are_those_of_kafka() -> None:
    data = index((7, 10, 20, 15)).to_bytes()
    assert data.hex() == "0000" + "0000000000000007" + "000000000000000a" + "0000000000000014" + "000000000000000f"
    assert len(data) == ENTRY_BYTES


@given(
    firsts=st.lists(st.integers(0, 30), max_size=8),
    block=st.integers(1, 4),
    first=st.integers(0, 60),
    size=st.integers(1, 30),
    cut=st.integers(0, 60),
)
def test_a_read_finds_each_aborted_transaction_with_records_in_it(
    firsts: list[int], block: int, first: int, size: int, cut: int
) -> None:
    """Their markers are at 31, 32, …; the blocks of the index have some entries each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rota.coordinator.log.transactions.BLOCK_ENTRIES", block)
        check_searches(firsts, first, size, cut)


def check_searches(firsts: list[int], first: int, size: int, cut: int) -> None:
    lasts = [31 + n for n in range(len(firsts))]
    entries = [
        AbortedTransaction(n, at, lasts[n], min([lasts[n] + 1, *firsts[n + 1 :]])) for n, at in enumerate(firsts)
    ]
    made = TransactionIndex.from_bytes(index(*entries).to_bytes(), 0)
    assert list(made) == entries
    end = first + size
    found, is_complete = made.find(first, end)
    assert found == [entry for entry in entries if entry.first_offset < end and entry.last_offset >= first]
    assert is_complete == any(entry.last_stable_offset >= end for entry in entries if entry.last_offset >= first)
    made.truncate(cut)
    left = [entry for entry in entries if entry.last_offset < cut]
    assert list(made) == left
    assert made.find(0, end)[0] == [entry for entry in left if entry.first_offset < end]
    added = AbortedTransaction(99, 98, 99, 100)
    made.append(added)
    assert made.find(0, 200)[0] == [*left, added]


class CountedEntries(TransactionIndex):
    """An index that counts the entries it reads."""

    reads = 0

    def _entry(self, at: int) -> AbortedTransaction:
        self.reads += 1
        return super()._entry(at)


def test_a_search_does_not_read_each_of_many_entries() -> None:
    """A transaction that stays open from offset 0 on holds the last stable offset of 100,000 aborted ones."""
    made = CountedEntries()
    for n in range(100_000):
        made.append(AbortedTransaction(1, 2 * n + 1, 2 * n + 2, 0))
    for first in (0, 100_000, 199_990):
        made.reads = 0
        found, _ = made.find(first, first + 10)
        assert len(found) in (5, 6)
        assert made.reads < 1_000


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        index((7, 10, 20, 15)).to_bytes()[:-1],
        b"\0\1" + index((7, 10, 20, 15)).to_bytes()[2:],
        index((7, 10, 20, 15), (8, 10, 20, 15)).to_bytes(),
        index((7, 1, 2, 3)).to_bytes(),
    ],
)
def test_a_damaged_file_is_recognised(data: bytes) -> None:
    with pytest.raises(BadIndex):
        TransactionIndex.from_bytes(data, 5)
