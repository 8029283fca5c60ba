"""The indexes of Apache Kafka's segments, and wrong entries in copies of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rota.cli.log_indexes import ABORTED_ENTRY, index_documents

DATA = Path(__file__).parents[2] / "data"
RECORDED, TRANSACTIONS = DATA / "recorded-0", DATA / "recorded-txn-0"
ABORTED = "00000000000000000012.log"  # of two producers


def of_index(path: Path, index: str) -> list[dict[str, Any]]:
    return [each for each in index_documents(path) if each["index"] == index]


@pytest.fixture
def aborted(tmp_path: Path) -> Path:
    """A copy of a segment with two aborted transactions."""
    for path in TRANSACTIONS.glob(f"{Path(ABORTED).stem}.*"):
        shutil.copy(path, tmp_path)
    return tmp_path / ABORTED


def test_every_entry_that_kafka_wrote_is_right() -> None:
    for folder in (RECORDED, TRANSACTIONS):
        entries = [each for path in sorted(folder.glob("*.log")) for each in index_documents(path)]
        assert {each["index"] for each in entries} >= {"offset", "time"}
        assert {each["problem"] for each in entries} == {None}


def test_the_aborted_transactions_that_kafka_wrote(aborted: Path) -> None:
    found = of_index(aborted, "transaction")
    names = ("producer_id", "first_offset", "offset", "last_stable_offset", "position")
    assert [tuple(each[name] for name in names) for each in found] == [(1, 9, 13, 11, 118), (0, 15, 16, 11, 432)]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ((0, 2, 9, 13, 11), "no abort marker"),  # of another producer
        ((0, 1, 9, 12, 11), "no abort marker"),  # a batch of records
        ((0, 1, 9, 99, 11), "no abort marker"),
        ((0, 1, 14, 13, 11), "order"),
        ((9, 1, 9, 13, 11), "version 9"),
    ],
)
def test_a_wrong_aborted_transaction_is_found(aborted: Path, entry: tuple[int, ...], problem: str) -> None:
    aborted.with_suffix(".txnindex").write_bytes(ABORTED_ENTRY.pack(*entry))
    (found,) = of_index(aborted, "transaction")
    assert problem in found["problem"]


def test_the_marker_of_a_commit_aborts_nothing(aborted: Path) -> None:
    committed = TRANSACTIONS / "00000000000000000018.log"
    file = aborted.parent / committed.name
    shutil.copy(committed, file)
    file.with_suffix(".txnindex").write_bytes(ABORTED_ENTRY.pack(0, 2, 11, 18, 18))
    (found,) = of_index(file, "transaction")
    assert "no abort marker" in found["problem"]


def test_entries_out_of_order_and_an_incomplete_one_are_found(aborted: Path) -> None:
    index = aborted.with_suffix(".txnindex")
    first, second = index.read_bytes()[:34], index.read_bytes()[34:]
    index.write_bytes(second + first + b"12345")
    assert [each["problem"] for each in of_index(aborted, "transaction")] == [
        None,
        "not in the order of offsets",
        "5 bytes of an incomplete entry",
    ]


def test_a_wrong_offset_and_a_wrong_time_are_found(aborted: Path) -> None:
    aborted.with_suffix(".index").write_bytes(bytes.fromhex("0000000100000003") + bytes(8))
    (wrong,) = of_index(aborted, "offset")
    assert (wrong["offset"], wrong["position"]) == (13, 3)
    assert "no batch ends" in wrong["problem"]
    aborted.with_suffix(".timeindex").write_bytes(bytes.fromhex("000000000000000100000063"))
    assert "no batch ends" in of_index(aborted, "time")[0]["problem"]
