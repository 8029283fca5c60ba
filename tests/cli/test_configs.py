"""`rota configs`, `rota offsets` and `rota cluster` on both brokers."""

from __future__ import annotations

import pytest
from tests.cli.kit import Rota


def test_a_setting_of_a_topic_is_set_shown_and_reset(cli: Rota, topic: str) -> None:
    cli.create(topic)
    changed = cli.json("configs", "alter", "topic", topic, "--set", "retention.ms=60000", "--append",
                       "cleanup.policy=compact")  # fmt: skip
    assert changed["changes"] == [
        {"name": "retention.ms", "operation": "set", "value": "60000"},
        {"name": "cleanup.policy", "operation": "append", "value": "compact"},
    ]
    shown = {each["name"]: each for each in cli.json("configs", "describe", "topic", topic)["configs"]}
    assert shown["retention.ms"] == {
        "name": "retention.ms",
        "value": "60000",
        "source": "TOPIC",
        "type": "LONG",
        "read_only": False,
        "sensitive": False,
    }
    assert shown["cleanup.policy"]["value"] == "delete,compact"
    cli.json("configs", "alter", "topic", topic, "--delete", "retention.ms", "--subtract", "cleanup.policy=compact")
    assert "retention.ms" not in cli("configs", "describe", "topic", topic).out
    (item,) = cli.json("configs", "describe", "topic", topic, "--key", "cleanup.policy", "--synonyms")["configs"]
    assert item["synonyms"][-1]["source"] == "DEFAULT"
    assert "segment.bytes" in cli("configs", "describe", "topic", topic, "--all").out


def test_a_dry_run_changes_nothing_and_a_bad_value_is_refused(cli: Rota, topic: str) -> None:
    cli.create(topic)
    assert cli.json("configs", "alter", "topic", topic, "--set", "retention.ms=1", "--dry-run")["dry_run"] is True
    assert cli.json("configs", "describe", "topic", topic, "--key", "retention.ms")["configs"][0]["value"] != "1"
    refused = cli.fails("configs", "alter", "topic", topic, "--set", "retention.ms=x")
    assert refused.code == 1
    assert "INVALID_CONFIG" in refused.err


def test_a_broker_is_named_by_its_id(cli: Rota) -> None:
    broker = cli.json("cluster")["brokers"][0]["id"]
    described = cli.json("configs", "describe", "broker", str(broker), "--all")["configs"]
    assert "num.partitions" in {each["name"] for each in described}
    assert cli.fails("configs", "describe", "broker", "one").code == 2


@pytest.mark.parametrize("kind", ["broker", "broker-logger"])
def test_a_broker_that_does_not_exist_is_refused_at_once(cli: Rota, kind: str) -> None:
    alive = cli.json("cluster")["brokers"][0]["id"]
    beyond = cli.fails("configs", "describe", kind, "99999999999999", "--timeout", "20")
    assert (beyond.code, "at most 2147483647" in beyond.err) == (2, True)
    for command in (("describe", kind, "4242"), ("alter", kind, "4242", "--set", "a=b")):
        refused = cli.fails("configs", *command, "--timeout", "20")
        assert (refused.code, f"no live broker has the id 4242; live brokers: {alive}" in refused.err) == (1, True)


@pytest.mark.parametrize("arguments", [(), ("--set", "a=1", "--delete", "a")])
def test_changes_are_named_once(cli: Rota, topic: str, arguments: tuple[str, ...]) -> None:
    assert cli.fails("configs", "alter", "topic", topic, *arguments).code == 2


def test_offsets_of_partitions(cli: Rota, topic: str) -> None:
    cli.create(topic, 2)
    for number in range(3):
        cli.produce(topic, [b"x"], timestamp=1_700_000_000_000 + 1000 * number)
    first, second = cli.json("offsets", topic, "--at", "1700000001000", "--newest")["partitions"]
    assert first == {
        "topic": topic,
        "partition": 0,
        "start": 0,
        "end": 3,
        "offsets": 3,
        "at": {"offset": 1, "timestamp": 1_700_000_001_000},
        "newest": {"offset": 2, "timestamp": 1_700_000_002_000},
    }
    assert (second["end"], second["at"], second["newest"]) == (0, None, None)
    assert cli("offsets", f"{topic}:0").lines[1].split() == [topic, "0", "0", "3", "3"]
    assert cli.fails("offsets", f"{topic}:0,7").code == 2
    assert cli.fails("offsets", f"{topic}-absent").code == 1


def test_the_cluster(cli: Rota, topic: str) -> None:
    cli.create(topic)
    shown = cli.json("cluster", "--apis")
    (broker,) = shown["brokers"]
    assert f"{broker['host']}:{broker['port']}" == cli.address
    assert broker["leaders"] == broker["replicas"] == shown["partitions"] > 0
    assert shown["under_replicated"] == shown["without_leader"] == []
    assert {"key": 3, "name": "Metadata"}.items() <= next(each for each in shown["apis"] if each["key"] == 3).items()
    text = cli("cluster").out
    assert text.startswith(f"cluster {shown['cluster_id']}\n")
    assert text.endswith("no partition is without a leader\n\nno partition is under-replicated\n")
