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
    first=st.integers(0, 60),
    size=st.integers(1, 30),
    cut=st.integers(0, 60),
)
def test_a_read_finds_each_aborted_transaction_with_records_in_it(
    firsts: list[int], first: int, size: int, cut: int
) -> None:
    """Their markers are at 31, 32, …"""
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
    assert list(made) == [entry for entry in entries if entry.last_offset < cut]


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
