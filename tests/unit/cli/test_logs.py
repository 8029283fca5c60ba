"""Folders that a broker wrote, read without it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rota.cli.logs import Batch, batches, index_documents
from rota.cli.main import run
from rota.client import Admin, AdminConfig, NewTopic, OffsetAndMetadata, Producer, ProducerConfig, TopicPartition
from rota.testing import running_broker

RECORDS = 300


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a broker that has stopped: a topic of several segments, and a committed offset."""
    folder = tmp_path_factory.mktemp("data")
    with running_broker(data=folder) as running:
        address = running.bootstrap_servers
        asyncio.run(fill(address))
    return folder


async def fill(address: str) -> None:
    small = {"segment.bytes": "1048576", "index.interval.bytes": "4096", "compression.type": "zstd"}
    async with (
        Admin(AdminConfig(bootstrap_servers=address)) as admin,
        Producer(ProducerConfig(bootstrap_servers=address)) as producer,
    ):
        await admin.create_topics([NewTopic("orders", 1, configs=small)])
        for number in range(RECORDS):
            await producer.send_and_wait("orders", b"v%d" % number * 5_000, b"k", headers=[("h", b"1")])
        await admin.alter_group_offsets("g", {TopicPartition("orders", 0): OffsetAndMetadata(7)})


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert run(["logs", *map(str, arguments), "--json"]) == 0
    return capsys.readouterr().out


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_segments_of_a_data_folder_and_of_a_partition(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(printed(capsys, "segments", data))["segments"]
    orders = [row for row in rows if row["partition"] == "orders-0"]
    assert sum(row["records"] for row in orders) == RECORDS
    assert orders[-1]["last_offset"] == RECORDS - 1
    assert {row["problem"] for row in rows} == {None}
    assert {row["partition"].rpartition("-")[0] for row in rows} >= {"orders", "__consumer_offsets"}
    assert json.loads(printed(capsys, "segments", data / "orders-0"))["segments"] == orders


def test_batches_and_records(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = lines(printed(capsys, "dump", data / "orders-0", "--from", 5, "--max", 2, "--records"))
    assert [each["kind"] for each in found] == ["batch", "record", "batch", "record"]
    assert (found[0]["base_offset"], found[0]["records"]) == (5, 1)
    record = found[1]
    assert (record["offset"], record["key"], record["headers"]) == (5, "k", [["h", "1"]])
    assert record["value"].startswith("v5v5")
    assert run(["logs", "dump", str(data / "orders-0"), "--max", "1"]) == 0
    assert "base_offset=0" in capsys.readouterr().out


def test_internal_records_are_decoded(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for folder in sorted(data.glob("__consumer_offsets-*")):
        found += [each for each in lines(printed(capsys, "dump", folder, "--records")) if each["kind"] == "record"]
    commits = [each for each in found if each.get("decoded") == "offset_commit"]
    assert [each["key"] for each in commits] == [{"group": "g", "topic": "orders", "partition": 0}]
    assert commits[0]["value"]["offset"] == 7


def test_every_index_entry_points_to_a_batch(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = json.loads(printed(capsys, "indexes", data / "orders-0"))["entries"]
    assert {each["index"] for each in entries} == {"offset", "time"}
    assert {each["problem"] for each in entries} == {None}


def test_nothing_is_written(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    for arguments in (("segments", data), ("dump", data / "orders-0"), ("indexes", data / "orders-0")):
        printed(capsys, *arguments)
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before


def copied(data: Path, folder: Path, *, cut: int = 0, flip: int | None = None) -> Path:
    """Copy the first segment of `orders`, cut at its end or with one byte changed."""
    source = min((data / "orders-0").glob("*.log"))
    content = bytearray(source.read_bytes())
    if flip is not None:
        content[flip] ^= 0xFF
    file = folder / source.name
    file.write_bytes(content[: len(content) - cut])
    return file


@pytest.mark.parametrize(
    ("change", "says"), [({"cut": 10}, "incomplete batch"), ({"flip": 80}, "checksum"), ({"flip": 16}, "magic")]
)
def test_a_problem_is_named_with_its_position_and_fails_the_command(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, int], says: str
) -> None:
    file = copied(data, tmp_path, **change)
    assert run(["logs", "dump", str(file), "--json"]) == 1
    assert says.lower() in lines(capsys.readouterr().out)[-1]["problem"].lower()
    assert run(["logs", "segments", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["segments"][0]["problem"].startswith("at ")


def test_a_wrong_index_entry_is_found(data: Path, tmp_path: Path) -> None:
    file = copied(data, tmp_path)
    file.with_suffix(".index").write_bytes(bytes.fromhex("0000000100000003") + bytes(8))
    (wrong,) = [each for each in index_documents(file) if each["index"] == "offset"]
    assert (wrong["offset"], wrong["position"]) == (1, 3)
    assert "no batch ends" in wrong["problem"]


@pytest.mark.parametrize("subcommand", ["segments", "dump", "indexes"])
def test_a_folder_without_segments_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], subcommand: str
) -> None:
    assert run(["logs", subcommand, str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_an_empty_file_has_no_batches(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with empty.open("rb") as file:
        assert list(batches(file)) == []
    empty.write_bytes(b"short")
    with empty.open("rb") as file:
        assert list(batches(file)) == [Batch(0, None, None, "5 bytes of an incomplete batch")]
