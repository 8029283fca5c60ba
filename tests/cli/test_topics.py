"""`rota topics` on both brokers."""

from __future__ import annotations

from tests.cli.kit import Rota


def test_a_topic_is_created_listed_described_extended_and_deleted(cli: Rota, topic: str) -> None:
    created = cli.json("topics", "create", topic, "--partitions", "2", "--config", "retention.ms=60000")
    ((made),) = created["created"]
    assert (made["name"], made["partitions"], made["replication_factor"]) == (topic, 2, 1)
    (listed,) = [each for each in cli.json("topics", "list")["topics"] if each["name"] == topic]
    assert listed == {"name": topic, "partitions": 2, "replication_factor": 1, "internal": False, "id": made["id"]}
    cli.json("topics", "add-partitions", topic, "--total", "3")
    (described,) = cli.json("topics", "describe", topic)["topics"]
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2]
    leader = described["partitions"][0]["leader"]
    assert described["partitions"][0] == {
        "partition": 0,
        "leader": leader,
        "leader_epoch": 0,
        "replicas": [leader],
        "isr": [leader],
        "offline": [],
    }
    assert cli.json("topics", "delete", topic) == {"deleted": [topic], "absent": []}
    assert topic not in {each["name"] for each in cli.json("topics", "list")["topics"]}


def test_tables_have_headings_and_a_line_for_each(cli: Rota, topic: str) -> None:
    created = cli("topics", "create", topic)
    assert created.lines[:2] == ["created:", created.lines[1]]
    listed = cli("topics", "list").lines
    assert listed[0].split() == ["TOPIC", "PARTITIONS", "REPLICATION", "INTERNAL", "ID"]
    assert [line.split()[0] for line in listed].count(topic) == 1
    described = cli("topics", "describe", topic).lines
    assert described[0].split() == ["TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OFFLINE"]
    assert described[1].split()[:2] == [topic, "0"]
    assert cli("topics", "describe", topic, "--under-replicated", "--unavailable").out == "no such partitions\n"
    assert cli("topics", "delete", topic).out == f"deleted: {topic}\n"


def test_a_dry_run_changes_nothing(cli: Rota, topic: str) -> None:
    assert cli.json("topics", "create", topic, "--dry-run")["dry_run"] is True
    assert topic not in {each["name"] for each in cli.json("topics", "list")["topics"]}
    cli.create(topic, 2)
    cli.json("topics", "add-partitions", topic, "--total", "5", "--dry-run")
    assert len(cli.json("topics", "describe", topic)["topics"][0]["partitions"]) == 2


def test_a_topic_that_exists_is_refused_or_tolerated(cli: Rota, topic: str) -> None:
    cli.create(topic)
    refused = cli.fails("topics", "create", topic)
    assert refused.code == 1
    assert "TOPIC_ALREADY_EXISTS" in refused.err
    assert topic in refused.err
    other = f"{topic}-other"
    done = cli.json("topics", "create", topic, other, "--if-not-exists")
    assert ([each["name"] for each in done["created"]], done["existing"]) == ([other], [topic])


def test_a_topic_that_does_not_exist_is_refused_or_tolerated(cli: Rota, topic: str) -> None:
    for subcommand in ("describe", "delete"):
        refused = cli.fails("topics", subcommand, topic)
        assert refused.code == 1
        assert "UNKNOWN_TOPIC_OR_PARTITION" in refused.err
        assert "`rota topics list`" in refused.err
    assert cli.json("topics", "delete", topic, "--if-exists") == {"deleted": [], "absent": [topic]}


def test_partitions_cannot_be_removed(cli: Rota, topic: str) -> None:
    cli.create(topic, 3)
    refused = cli.fails("topics", "add-partitions", topic, "--total", "3")
    assert refused.code == 2
    assert "has 3 partitions" in refused.err


def test_a_hostile_name_is_refused_and_not_printed_raw(cli: Rota) -> None:
    refused = cli.fails("topics", "create", "a\x1b[2Jb")
    assert refused.code == 1
    assert "\x1b" not in refused.err
    assert "\\x1b[2J" in refused.err


def test_internal_topics_are_shown_on_request(cli: Rota, topic: str, group: str) -> None:
    cli.create(topic)
    cli.commit(group, topic, {0: 0})
    assert "__consumer_offsets" not in {each["name"] for each in cli.json("topics", "list")["topics"]}
    listed = {each["name"]: each for each in cli.json("topics", "list", "--internal")["topics"]}
    assert listed["__consumer_offsets"]["internal"] is True
