"""Apache Kafka's own dump tool reads what Rota writes, without complaint.

Needs Java and Kafka's jars.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.interop.java_kit import JAVA_S_MAX, needs_java
from tests.interop.java_tools import java_tools
from tests.unit.coordinator.log.log_kit import append_marker, append_transactional, fill

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.disk import DiskLog, RecoveryCheckpoint
from rota.protocol.records.batch import Codec
from rota.protocol.records.fast import Record
from rota.protocol.records.record import write_batch

COMPLAINTS = ("mismatch", "not found", "out of order", "corrupt", "exception", "isvalid: false")
CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=500)

pytestmark = needs_java


def dump(*files: Path, deep: bool = True, sanity: bool = False) -> str:
    """What the tool says, checked for complaints."""
    flags = ["--deep-iteration"] * deep + ["--index-sanity-check"] * sanity
    names = ["--files", ",".join(map(str, sorted(files)))]
    done = java_tools.run("org.apache.kafka.tools.DumpLogSegments", *flags, *names, given="", timeout_s=JAVA_S_MAX)
    assert done.code == 0, done.errors
    output = done.output + "\n".join(line for line in done.errors.splitlines() if "SLF4J" not in line)
    assert not [line for line in output.splitlines() if any(word in line.lower() for word in COMPLAINTS)]
    return output


def gaps(output: str) -> list[str]:
    """Offsets that the tool misses. It misses those before each file, in Apache Kafka's own files too."""
    found = (line.strip() for line in output.splitlines() if " is followed by " in line)
    return [line for line in found if not line.startswith("-1 ")]


def filled(folder: Path, config: LogConfig = CONFIG) -> DiskLog:
    """Several segments, all codecs, an idempotent producer, timestamps that go back and forth."""
    log = DiskLog.open(folder / "topic-0", config)
    sequence = 0
    for number in range(400):
        records = [
            Record(0, 1_000_000 + number * 10 - (number % 7) * 25, b"key-%d" % (number % 30), value)
            for value in (b"v" * 20, None if number % 11 == 0 else b"w" * (number % 50))
        ]
        idempotent: dict[str, Any] = (
            {"producer_id": 77, "producer_epoch": 0, "base_sequence": sequence} if number % 2 else {}
        )
        sequence += 2 if idempotent else 0
        log.append(write_batch(records, codec=Codec(number % 5), **idempotent), leader_epoch=0, now_ms=0)
    return log


def test_every_file_of_a_closed_log(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    files = [file for kind in ("log", "index", "timeindex", "snapshot") for file in log.path.glob(f"*.{kind}")]
    assert len(files) >= 3 * log.segment_count
    output = dump(*files)
    assert output.count("| offset:") == log.log_end_offset == 800
    assert "lastSequence: 399" in output
    assert not gaps(output)
    indexes = [file for file in files if file.suffix in (".index", ".timeindex")]
    sane = dump(*indexes, sanity=True)
    assert sane.count("passed sanity check") + sane.count("is empty") == len(indexes)


def test_a_log_that_is_still_written(tmp_path: Path) -> None:
    log = filled(tmp_path)
    output = dump(*log.path.glob("*.log"))
    assert output.count("| offset:") == 800
    assert not gaps(output)


def test_a_compacted_log(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.config = replace(CONFIG, compact=True)
    assert log.compact(2_000_000, force=True) > 0
    log.close()
    output = dump(*log.path.glob("*.log"), *log.path.glob("*index"))
    assert output.count("| offset:") < 800
    assert re.search(r"deleteHorizonMs: OptionalLong\[\d+\]", output)


def test_a_recovered_log(tmp_path: Path) -> None:
    log = filled(tmp_path)
    last = max(log.path.glob("*.log"))
    with last.open("r+b") as file:
        file.truncate(last.stat().st_size - 10)
    log = DiskLog.open(log.path, CONFIG)
    assert log.log_end_offset == 798
    log.close()
    assert not gaps(dump(*log.path.glob("*.log"), *log.path.glob("*index")))


def test_transactions(tmp_path: Path) -> None:
    """Markers, the index of aborted transactions, and snapshots with an open one; after a compaction as well."""
    log = DiskLog.open(tmp_path / "topic-0", CONFIG)
    for number in range(20):
        append_transactional(log, 7, number, (b"key-%d" % number, b"v" * 500))
        fill(log, 10, key=b"key")
        append_marker(log, 7, is_commit=bool(number % 2), coordinator_epoch=3)
    append_transactional(log, 8, 0, (b"open", b"v"))
    log.close()
    output = dump(*log.path.glob("*.log"))
    assert (output.count("endTxnMarker: COMMIT"), output.count("endTxnMarker: ABORT")) == (10, 10)
    assert output.count("coordinatorEpoch: 3") == 20
    aborted = dump(*log.path.glob("*.txnindex"))
    assert aborted.count("producerId: 7") == 10
    assert "firstOffset: 24" in aborted
    assert "lastStableOffset: 36" in aborted
    assert "currentTxnFirstOffset: OptionalLong[240]" in dump(*log.path.glob("*.snapshot"))
    log = DiskLog.open(log.path, replace(CONFIG, compact=True), RecoveryCheckpoint(clean=True))
    assert log.compact(2_000_000, force=True) > 0
    log.close()
    output = dump(*log.path.glob("*.log"), *log.path.glob("*index"))
    assert output.count("endTxnMarker: ABORT") == 10
