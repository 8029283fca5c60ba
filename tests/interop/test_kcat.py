"""kcat, librdkafka's command line (with an older librdkafka than confluent-kafka's), where it is installed."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from tests.interop.kit import create_topic, produce, unique

pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
LINES = [f"line {number} ".encode() + b"of a text that compresses well " * 20 for number in range(100)]


def kcat(bootstrap: str, *arguments: str, given: bytes = b"") -> bytes:
    """What it writes; its own complaint when it fails."""
    done = subprocess.run(
        ["kcat", "-b", bootstrap, *arguments], input=given, capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_it_writes_and_reads(bootstrap: str, codec: str) -> None:
    topic = create_topic(bootstrap, 1)
    kcat(bootstrap, "-P", "-t", topic, "-z", codec, given=b"\n".join(LINES))
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q").splitlines() == LINES


def test_it_writes_with_headers_keys_and_idempotence(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    kcat(
        bootstrap, "-P", "-t", topic, "-K:", "-H", "colour=blue", "-X", "enable.idempotence=true", given=b"a:1\nb:2\n"
    )  # fmt: skip
    output = kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J")
    records = [json.loads(line) for line in output.splitlines()]
    assert [(r["key"], r["payload"], r["offset"], r["headers"]) for r in records] == [
        ("a", "1", 0, ["colour", "blue"]),
        ("b", "2", 1, ["colour", "blue"]),
    ]


def test_a_group_reader_continues_at_its_committed_offsets(bootstrap: str, group: str) -> None:
    topic = create_topic(bootstrap, 2)
    produce(bootstrap, topic, [b"%d" % number for number in range(10)])
    reading = ["-G", group, "-X", "auto.offset.reset=earliest", "-e", "-q", topic]
    assert sorted(kcat(bootstrap, *reading).split()) == [b"%d" % number for number in range(10)]
    produce(bootstrap, topic, [b"new"])
    assert kcat(bootstrap, *reading).split() == [b"new"]


def test_it_lists_brokers_and_topics_and_looks_up_offsets(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 3, name=unique("listed"))
    produce(bootstrap, topic, [b"x"] * 6)
    metadata = json.loads(kcat(bootstrap, "-L", "-J", "-t", topic))
    assert [broker["name"] for broker in metadata["brokers"]] == [bootstrap]
    (listed,) = metadata["topics"]
    assert [p["partition"] for p in listed["partitions"]] == [0, 1, 2]
    assert b"offset 2" in kcat(bootstrap, "-Q", "-t", f"{topic}:1:-1")
    assert b"offset 0" in kcat(bootstrap, "-Q", "-t", f"{topic}:1:-2")
    assert b"offset 0" in kcat(bootstrap, "-Q", "-t", f"{topic}:1:1")
