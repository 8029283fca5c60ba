"""DescribeConfigs lists what Apache Kafka 4.3.1 lists: recorded from a running one in kafka-4.3.1.tsv."""

from __future__ import annotations

from pathlib import Path

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.definition import Source
from rota.coordinator.config.describe import ConfigEntry, Synonym, describe_broker, describe_group, describe_topic

RECORDED = [
    line.split("\t")
    for line in Path(__file__).with_name("kafka-4.3.1.tsv").read_text().splitlines()
    if not line.startswith("#")
]
OURS = {  # defaults that differ, each with its reason in broker_properties.py
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dir": "rota-data",
    "node.id": "0",
    "socket.listen.backlog.size": "1024",
}


FIXED = ("listener.security.protocol.map", "listeners")  # a running Rota does not change them


OWN = (
    "rota.",
    "zookeeper.",
    "super.users",
    "allow.everyone.",
)  # names that Apache Kafka 4.3 does not have, or that belong to its authorizer and are listed only when they are set


def recorded(resource: str) -> dict[str, tuple[str, str, str, str]]:
    return {
        row[1]: (row[2], OURS.get(row[1], row[3]), "read-only" if row[1] in FIXED else row[4], row[5])
        for row in RECORDED
        if row[0] == resource
    }


def shown(entry: ConfigEntry) -> tuple[str, str, str, str]:
    default = next((entry.value for entry in entry.synonyms if entry.source is Source.DEFAULT), entry.value)
    return (
        entry.type.name,
        "-" if default is None else default,
        "read-only" if entry.read_only else "dynamic",
        "sensitive" if entry.sensitive else "-",
    )


def test_a_topic_has_kafkas_configs_with_its_types_and_defaults() -> None:
    described = describe_topic({}, BrokerConfig())
    assert {entry.name: shown(entry) for entry in described} == recorded("topic")
    synonyms = {row[1]: row[6] for row in RECORDED if row[0] == "topic"}
    assert {entry.name: entry.synonyms[0].name if entry.synonyms else "-" for entry in described} == synonyms


def test_a_broker_has_kafkas_configs_with_its_types_and_defaults() -> None:
    described = {entry.name: shown(entry) for entry in describe_broker(BrokerConfig())}
    own = {name for name in described if name.startswith(OWN)}
    theirs = {name: facts for name, facts in described.items() if name not in own}
    assert theirs == recorded("broker")
    assert own == {name for name in USED if name.startswith(OWN)}


def test_every_config_is_explained_in_one_line() -> None:
    for entry in (*describe_topic({}, BrokerConfig()), *describe_broker(BrokerConfig())):
        assert entry.doc.endswith(".")
        assert "\n" not in entry.doc


def test_the_strongest_source_comes_first() -> None:
    broker = BrokerConfig({"log.retention.hours": "1", "log.retention.minutes": "7", "log.retention.ms": "4"})
    (entry,) = (each for each in describe_topic({}, broker) if each.name == "retention.ms")
    assert (entry.value, entry.source) == ("4", Source.STATIC_BROKER)
    assert entry.synonyms == (
        Synonym("log.retention.ms", "4", Source.STATIC_BROKER),
        Synonym("log.retention.minutes", "7", Source.STATIC_BROKER),
        Synonym("log.retention.hours", "1", Source.STATIC_BROKER),
        Synonym("log.retention.hours", "168", Source.DEFAULT),
    )
    (own,) = (each for each in describe_topic({"retention.ms": "5"}, broker) if each.name == "retention.ms")
    assert (own.value, own.source, own.synonyms[0]) == ("5", Source.TOPIC, Synonym("retention.ms", "5", Source.TOPIC))


def test_a_value_of_another_unit_alone_is_no_source_as_in_kafka() -> None:
    """Apache Kafka 4.3.1 answers so with log.retention.minutes=7 and log.retention.hours=1 in its file."""
    broker = BrokerConfig({"log.retention.hours": "1", "log.retention.minutes": "7"})
    (topic,) = (each for each in describe_topic({}, broker) if each.name == "retention.ms")
    assert (topic.value, topic.source, topic.synonyms) == ("420000", Source.DEFAULT, ())
    described = {each.name: each for each in describe_broker(broker)}
    assert (described["log.retention.ms"].value, described["log.retention.ms"].synonyms) == (None, ())
    assert described["log.retention.minutes"].synonyms == (
        Synonym("log.retention.minutes", "7", Source.STATIC_BROKER),
        Synonym("log.retention.hours", "1", Source.STATIC_BROKER),
        Synonym("log.retention.hours", "168", Source.DEFAULT),
    )


def test_given_values_are_static_with_the_default_as_a_synonym() -> None:
    described = {entry.name: entry for entry in describe_broker(BrokerConfig({"num.partitions": "4", "node.id": "3"}))}
    assert described["num.partitions"].value == "4"
    assert described["num.partitions"].synonyms == (
        Synonym("num.partitions", "4", Source.STATIC_BROKER),
        Synonym("num.partitions", "1", Source.DEFAULT),
    )
    assert (described["node.id"].value, described["broker.id"].value) == ("3", "3")
    assert described["broker.id"].source is Source.STATIC_BROKER


def test_the_order_is_that_of_the_names() -> None:
    names = [entry.name for entry in describe_broker(BrokerConfig())]
    assert names == sorted(names)


TYPED = {  # what a client sets, and what Apache Kafka 4.3.1 shows
    "retention.ms": (" 500000 ", "500000"),
    "unclean.leader.election.enable": ("TRUE", "true"),
    "cleanup.policy": (" compact , delete ", "compact,delete"),
    "min.cleanable.dirty.ratio": (" 0.50", "0.5"),
    "compression.type": (" gzip ", "gzip"),
    "segment.bytes": ("+2000000", "2000000"),
    "flush.ms": ("007", "7"),
    "message.timestamp.type": (" CreateTime", "CreateTime"),
    "leader.replication.throttled.replicas": ("0:1, 0:2", "0:1,0:2"),
}


def test_bc7_the_value_of_a_topic_is_shown_as_it_was_understood() -> None:
    described = describe_topic({name: text for name, (text, _) in TYPED.items()}, BrokerConfig())
    own = {entry.name: (entry.value, entry.synonyms[0].value) for entry in described if entry.name in TYPED}
    assert own == {name: (shown, shown) for name, (_, shown) in TYPED.items()}
    described = describe_topic({"cleanup.policy": "delete,delete"}, BrokerConfig())
    assert [entry.value for entry in described if entry.name == "cleanup.policy"] == ["delete"]


def test_bc7_the_value_of_a_broker_is_shown_as_it_was_understood_and_its_synonym_as_it_was_set() -> None:
    broker = BrokerConfig({"num.io.threads": "009"}).with_dynamic({}, {"log.retention.ms": " 500000 "})
    described = {entry.name: entry for entry in describe_broker(broker)}
    entry = described["log.retention.ms"]
    assert (entry.value, entry.synonyms[0].value) == ("500000", " 500000 ")
    assert described["num.io.threads"].value == "9"
    (topic,) = (entry for entry in describe_topic({}, broker) if entry.name == "retention.ms")
    assert (topic.value, topic.synonyms[0].value) == ("500000", " 500000 ")


def test_bc7_the_value_of_a_group_is_shown_as_it_was_understood() -> None:
    described = describe_group({"consumer.heartbeat.interval.ms": "05000"}, BrokerConfig())
    (entry,) = (entry for entry in described if entry.name == "consumer.heartbeat.interval.ms")
    assert (entry.value, entry.synonyms[0].value) == ("5000", "5000")


def test_bc11_what_is_set_for_one_listener_is_described_as_by_kafka() -> None:
    listener = "listener.name.plaintext."
    given = {"ssl.keystore.type": "PEM", f"{listener}ssl.keystore.type": "PKCS12", f"{listener}ssl.key.password": "x"}
    described = {entry.name: entry for entry in describe_broker(BrokerConfig(given))}
    store = described[f"{listener}ssl.keystore.type"]
    assert (store.value, store.source) == ("PKCS12", Source.STATIC_BROKER)
    assert (store.read_only, store.sensitive) == (True, False)
    assert store.synonyms == (
        Synonym(f"{listener}ssl.keystore.type", "PKCS12", Source.STATIC_BROKER),
        Synonym("ssl.keystore.type", "PEM", Source.STATIC_BROKER),
        Synonym("ssl.keystore.type", "JKS", Source.DEFAULT),
    )
    password = described[f"{listener}ssl.key.password"]
    assert (password.value, password.sensitive) == (None, True)
    assert [synonym.value for synonym in password.synonyms] == [None]
    changed = BrokerConfig(given).with_dynamic({}, {f"{listener}ssl.keystore.type": "PEM"})
    (store,) = [entry for entry in describe_broker(changed) if entry.name == f"{listener}ssl.keystore.type"]
    assert (store.value, store.source) == ("PEM", Source.DYNAMIC_BROKER)
