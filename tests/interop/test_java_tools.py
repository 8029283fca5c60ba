"""Kafka's command-line tools against the broker."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from tests.interop.conftest import Join
from tests.interop.java_kit import needs_java, run_java, run_java_failing
from tests.interop.kit import create_topic, produce, unique
from tests.interop.layouts import until_sizes
from tests.interop.test_consumer_protocol import member, until_shares

pytestmark = needs_java
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"


def tool(bootstrap: str, name: str, *arguments: str) -> str:
    return run_java(name, "--bootstrap-server", bootstrap, *arguments)


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines() if line.strip()]


def test_topics_are_created_described_extended_and_deleted(bootstrap: str) -> None:
    topic = unique("tool")
    tool(bootstrap, TOPICS, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=60000")
    tool(bootstrap, TOPICS, "--alter", "--topic", topic, "--partitions", "3")
    output = tool(bootstrap, TOPICS, "--describe", "--topic", topic)
    assert "PartitionCount: 3" in output
    assert "retention.ms=60000" in output
    assert len(re.findall(r"Leader: 0\s+Replicas: 0\s+Isr: 0", output)) == 3
    tool(bootstrap, TOPICS, "--delete", "--topic", topic)
    assert topic not in tool(bootstrap, TOPICS, "--list").split()


def test_configs_are_altered_and_described(bootstrap: str) -> None:
    topic = create_topic(bootstrap, 1)
    configs = "kafka.admin.ConfigCommand"
    about = ["--entity-type", "topics", "--entity-name", topic]
    tool(bootstrap, configs, "--alter", *about, "--add-config", "retention.ms=12345,cleanup.policy=compact")
    output = tool(bootstrap, configs, "--describe", *about)
    assert "retention.ms=12345" in output
    assert "cleanup.policy=compact" in output
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=12345" in output


def test_the_lag_of_a_group_with_members(bootstrap: str, join: Join, group: str) -> None:
    topic = create_topic(bootstrap, 2)
    produce(bootstrap, topic, [b"x"] * 20)
    member = join("confluent-kafka", group=group, topics=[topic], client_id="reader")
    until_sizes([member], 2)
    member.commit(topic, 0, 4)
    member.commit(topic, 1, 10)
    lines = rows(tool(bootstrap, GROUPS, "--describe", "--group", group))
    header = next(line for line in lines if "LAG" in line)
    output = {line[header.index("PARTITION")]: line for line in lines if line[0] == group}
    column = header.index
    assert [output["0"][column(name)] for name in ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")] == ["4", "10", "6"]
    assert [output["1"][column(name)] for name in ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")] == ["10", "10", "0"]
    assert output["0"][column("CONSUMER-ID")].startswith("reader-")
    assert output["0"][column("HOST")] == "/127.0.0.1"
    state = tool(bootstrap, GROUPS, "--describe", "--group", group, "--state")
    assert "Stable" in state
    assert "range" in state


def test_kafka_consumer_groups_shows_members_lag_and_type(bootstrap: str, group: str) -> None:
    topic = create_topic(bootstrap, 2)
    produce(bootstrap, topic, [b"x"] * 60)
    with member(bootstrap, group, **{"client.id": "reader"}) as consumer:
        consumer.subscribe([topic])
        until_shares([consumer], [2])
        consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        described = tool(bootstrap, GROUPS, "--describe", "--group", group)
        line = next(each.split() for each in described.splitlines() if each.split()[1:3] == [topic, "0"])
        assert line[3] == "4"
        state = tool(bootstrap, GROUPS, "--describe", "--group", group, "--state")
        assert "Stable" in state
        assert "uniform" in state
        listed = tool(bootstrap, "org.apache.kafka.tools.GroupsCommand", "--list")
        assert next(each.split()[1:3] for each in listed.splitlines() if each.startswith(group)) == [
            "Consumer",
            "consumer",
        ]


def test_offsets_are_reset_and_deleted_and_the_group_is_deleted(bootstrap: str, group: str) -> None:
    topic = create_topic(bootstrap, 2)
    produce(bootstrap, topic, [b"x"] * 20)
    about = ["--group", group, "--topic", topic]
    tool(bootstrap, GROUPS, "--reset-offsets", *about, "--to-latest", "--execute")
    tool(bootstrap, GROUPS, "--reset-offsets", *about, "--shift-by", "-3", "--execute")
    described = rows(tool(bootstrap, GROUPS, "--describe", "--group", group))
    assert [line[3:6] for line in described if line[0] == group] == [["7", "10", "3"]] * 2
    assert group in tool(bootstrap, GROUPS, "--list", "--state", "Empty")
    assert "Successful" in tool(bootstrap, GROUPS, "--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert len([r for r in rows(tool(bootstrap, GROUPS, "--describe", "--group", group)) if r[0] == group]) == 1
    assert "successful" in tool(bootstrap, GROUPS, "--delete", "--group", group)
    assert group not in tool(bootstrap, GROUPS, "--list").split()


def test_offsets_are_looked_up_and_records_deleted(bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(bootstrap, 2)
    produce(bootstrap, topic, [b"x"] * 10)
    look_up = "org.apache.kafka.tools.GetOffsetShell"
    assert tool(bootstrap, look_up, "--topic", topic).split() == [f"{topic}:0:5", f"{topic}:1:5"]
    deletions = tmp_path / "delete.json"
    deletions.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 3}]}))
    deleted = tool(bootstrap, "org.apache.kafka.tools.DeleteRecordsCommand", "--offset-json-file", str(deletions))
    assert "low_watermark: 3" in deleted
    earliest = tool(bootstrap, look_up, "--topic", topic, "--time", "earliest").split()
    assert earliest == [f"{topic}:0:3", f"{topic}:1:0"]


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_the_performance_tools_write_and_read(bootstrap: str, codec: str) -> None:
    topic = create_topic(bootstrap, 4)
    settings = [f"bootstrap.servers={bootstrap}", f"compression.type={codec}"]
    amount = ["--topic", topic, "--num-records", "20000"]
    written = run_java(
        "org.apache.kafka.tools.ProducerPerformance", *amount, "--record-size", "100", "--throughput", "-1",
        "--command-property", *settings,
    )  # fmt: skip
    assert "20000 records sent" in written
    output = run_java(
        "org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", bootstrap, *amount, "--hide-header",
        "--timeout", "20000",
    )  # fmt: skip
    assert int(float(output.splitlines()[-1].split(", ")[4])) >= 20_000


def test_the_configs_of_a_broker_and_of_all_brokers(bootstrap: str) -> None:
    configs = "kafka.admin.ConfigCommand"
    item, default = ["--entity-type", "brokers", "--entity-name", "0"], ["--entity-type", "brokers", "--entity-default"]
    try:
        output = tool(bootstrap, configs, "--alter", *default, "--add-config", "log.cleaner.delete.retention.ms=5000")
        assert "Completed updating default config for brokers in the cluster." in output
        tool(bootstrap, configs, "--alter", *item, "--add-config", "log.cleaner.delete.retention.ms=6000")
        assert "log.cleaner.delete.retention.ms=5000" in tool(bootstrap, configs, "--describe", *default)
        output = tool(bootstrap, configs, "--describe", *item)
        assert (
            "log.cleaner.delete.retention.ms=6000 sensitive=false synonyms={"
            "DYNAMIC_BROKER_CONFIG:log.cleaner.delete.retention.ms=6000, "
            "DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.delete.retention.ms=5000, "
            "DEFAULT_CONFIG:log.cleaner.delete.retention.ms=86400000}"
        ) in output
        refused = run_java_failing(
            configs, "--bootstrap-server", bootstrap, "--alter", *item, "--add-config", "num.partitions=3"
        )
        assert "Cannot update these configs dynamically: [num.partitions]" in refused
    finally:
        tool(bootstrap, configs, "--alter", *item, "--delete-config", "log.cleaner.delete.retention.ms")
        tool(bootstrap, configs, "--alter", *default, "--delete-config", "log.cleaner.delete.retention.ms")
    assert "6000" not in tool(bootstrap, configs, "--describe", *item)


def test_the_levels_of_a_brokers_loggers(bootstrap: str) -> None:
    configs, loggers = "kafka.admin.ConfigCommand", ["--entity-type", "broker-loggers", "--entity-name", "0"]
    tool(bootstrap, configs, "--alter", *loggers, "--add-config", "root=INFO,rota.upkeep=DEBUG")
    output = tool(bootstrap, configs, "--describe", *loggers)
    assert "rota.upkeep=DEBUG" in output
    assert "root=INFO" in output
    tool(bootstrap, configs, "--alter", *loggers, "--delete-config", "rota.upkeep")
    assert "rota.upkeep=INFO" in tool(bootstrap, configs, "--describe", *loggers)


def test_the_configs_of_a_group(bootstrap: str, group: str) -> None:
    configs, of_group = "kafka.admin.ConfigCommand", ["--entity-type", "groups", "--entity-name", group]
    tool(bootstrap, configs, "--alter", *of_group, "--add-config", "consumer.session.timeout.ms=50000")
    assert "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000" in tool(bootstrap, configs, "--describe", *of_group)
    tool(bootstrap, configs, "--alter", *of_group, "--delete-config", "consumer.session.timeout.ms")
    assert group not in tool(bootstrap, configs, "--describe", "--entity-type", "groups")


def test_a_client_metrics_subscription(bootstrap: str) -> None:
    metrics, name = "org.apache.kafka.tools.ClientMetricsCommand", unique("metrics")
    changes = ["--metrics", "org.apache.kafka.consumer.", "--interval", "30000", "--match", "client_id=app.*"]
    output = tool(bootstrap, metrics, "--alter", "--name", name, *changes)
    assert f"Altered client metrics config for {name}." in output
    assert name in tool(bootstrap, metrics, "--list")
    output = tool(bootstrap, metrics, "--describe", "--name", name)
    for line in ("interval.ms=30000", "match=client_id=app.*", "metrics=org.apache.kafka.consumer."):
        assert line in output
    tool(bootstrap, metrics, "--delete", "--name", name)
    assert name not in tool(bootstrap, metrics, "--list")
