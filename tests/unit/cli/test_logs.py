"""Folders that a broker wrote, read without it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rota.cli.main import run
from rota.client import (
    Admin,
    AdminConfig,
    Consumer,
    ConsumerConfig,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    ProducerConfig,
    TopicPartition,
)
from rota.testing import running_broker

RECORDS = 300


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a broker that has stopped: a topic of several segments, a committed offset, a group of the consumer
    protocol, and a transaction that was aborted."""
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
        await admin.create_topics([NewTopic("payments", 1)])
        await abort(address)
        await join(address)


async def abort(address: str) -> None:
    async with Producer(ProducerConfig(bootstrap_servers=address, transactional_id="billing")) as producer:
        with suppress(Undone):
            async with producer.transaction():
                await producer.send_and_wait("payments", b"v")
                raise Undone


async def join(address: str) -> None:
    config = ConsumerConfig(bootstrap_servers=address, group_id="epochs", group_protocol="consumer")
    async with Consumer(config) as consumer:
        consumer.subscribe(["payments"])
        while not consumer.assignment:
            await consumer.getmany(timeout_ms=100)


class Undone(Exception):
    """Aborts a transaction."""


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


def internal(data: Path, topic: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The decoded records of an internal topic. Each of its records is decoded, but for markers of transactions."""
    found = []
    for folder in sorted(data.glob(f"{topic}-*")):
        found += [each for each in lines(printed(capsys, "dump", folder, "--records")) if each["kind"] == "record"]
    assert all("decoded" in each for each in found)
    return found


def test_internal_records_are_decoded(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = internal(data, "__consumer_offsets", capsys)
    commits = [each for each in found if each["decoded"] == "offset_commit" and each["key"]["group"] == "g"]
    assert [each["key"] for each in commits] == [{"group": "g", "topic": "orders", "partition": 0}]
    assert commits[0]["value"]["offset"] == 7


def test_the_records_of_a_group_of_the_consumer_protocol_are_decoded(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [each for each in internal(data, "__consumer_offsets", capsys) if each["key"]["group"] == "epochs"]
    assert {each["decoded"].removeprefix("consumer_group_") for each in found} >= {
        "metadata",
        "member_metadata",
        "target_assignment_metadata",
        "target_assignment_member",
        "current_member_assignment",
    }
    (member, *_) = [each for each in found if each["decoded"] == "consumer_group_member_metadata"]
    assert member["value"]["subscribed_topic_names"] == ["payments"]
    assert found[-1]["value"] is None or found[-1]["decoded"] == "consumer_group_metadata"


def test_the_records_of_a_transactional_id_are_decoded(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = internal(data, "__transaction_state", capsys)
    assert {(each["decoded"], each["key"]["transactional_id"]) for each in found} == {("transaction", "billing")}
    states = [each["value"]["transaction_status"] for each in found]
    assert (states[0], states[-1]) == ("Empty", "CompleteAbort")
    assert {"Ongoing", "PrepareAbort"} < set(states)


def test_an_aborted_transaction_is_in_the_index_and_its_marker_in_the_log(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, marker = lines(printed(capsys, "dump", data / "payments-0"))
    assert (marker["control"], marker["marker"]) == (True, "abort")
    entries = json.loads(printed(capsys, "indexes", data / "payments-0"))["entries"]
    (aborted,) = [each for each in entries if each["index"] == "transaction"]
    assert (aborted["first_offset"], aborted["offset"], aborted["last_stable_offset"]) == (0, 1, 2)
    assert (aborted["producer_id"], aborted["position"]) == (marker["producer_id"], marker["position"])
    assert aborted["problem"] is None


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
    ("change", "error_text"), [({"cut": 10}, "incomplete batch"), ({"flip": 80}, "checksum"), ({"flip": 16}, "magic")]
)
def test_a_problem_is_named_with_its_position_and_fails_the_command(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, int], error_text: str
) -> None:
    file = copied(data, tmp_path, **change)
    assert run(["logs", "dump", str(file), "--json"]) == 1
    assert error_text.lower() in lines(capsys.readouterr().out)[-1]["problem"].lower()
    assert run(["logs", "segments", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["segments"][0]["problem"].startswith("at ")


@pytest.mark.parametrize("subcommand", ["segments", "dump", "indexes"])
def test_a_folder_without_segments_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], subcommand: str
) -> None:
    assert run(["logs", subcommand, str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
