"""Kafka's own Java client: codecs, its idempotent defaults, a group with others. Its tools: test_java_tools.py."""

from __future__ import annotations

from collections import defaultdict

from tests.interop.conftest import Join
from tests.interop.java_kit import JavaMember, needs_java, run_kafka_client
from tests.interop.kit import create_topic, produce, unique, until

pytestmark = needs_java
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
VALUES = [str(number) for number in range(500)]


def test_other_clients_read_each_codec_of_java(bootstrap: str, join: Join) -> None:
    topics = {codec: create_topic(bootstrap, 1) for codec in CODECS}
    run_kafka_client(bootstrap, "produce", "500", *(f"{topic}={codec}" for codec, topic in topics.items()))
    for client in ("confluent-kafka", "kafka-python", "aiokafka"):
        reader = join(client, group=unique("group"), topics=list(topics.values()))
        until(lambda reader=reader: len(reader.values) == 500 * len(topics), f"all records at {client}")
        for topic in topics.values():
            assert [r.value.decode() for r in reader.records if r.topic == topic and r.value is not None] == VALUES


def test_java_reads_each_codec_of_other_clients(bootstrap: str) -> None:
    topics = [create_topic(bootstrap, 1) for _ in CODECS]
    for topic, codec in zip(topics, CODECS, strict=True):
        produce(bootstrap, topic, [value.encode() for value in VALUES], **{"compression.type": codec, "linger.ms": 20})
    read = defaultdict(list)
    for line in run_kafka_client(bootstrap, "consume", "500", *topics).splitlines():
        topic, value = line.split()
        read[topic].append(value)
    assert read == dict.fromkeys(topics, VALUES)


def test_java_shares_a_group_with_the_others(bootstrap: str, join: Join, group: str) -> None:
    topic = create_topic(bootstrap, 8)
    others = [join(client, group=group, topics=[topic]) for client in ("confluent-kafka", "kafka-python", "aiokafka")]
    with JavaMember(bootstrap, group, topic) as java:
        until(lambda: [len(m.partitions) for m in (java, *others)] == [2, 2, 2, 2], "two partitions each", seconds=60)
        assert set().union(java.partitions, *(m.partitions for m in others)) == set(range(8))
        produce(bootstrap, topic, [b"%d" % number for number in range(80)])
        until(lambda: [len(m.values) for m in (java, *others)] == [20, 20, 20, 20], "20 records each")
        java.close()
        until(lambda: sum(len(m.partitions) for m in others) == 8, "the others to own all")


def test_two_java_members_rebalance_cooperatively(bootstrap: str, group: str) -> None:
    topic = create_topic(bootstrap, 4)
    with (
        JavaMember(bootstrap, group, topic, "CooperativeStickyAssignor") as first,
        JavaMember(bootstrap, group, topic, "CooperativeStickyAssignor") as second,
    ):
        until(lambda: len(first.partitions) == len(second.partitions) == 2, "two partitions each", seconds=60)
        assert first.partitions | second.partitions == {0, 1, 2, 3}
        first.close()
        until(lambda: second.partitions == {0, 1, 2, 3}, "the second to own all")
