"""The settings of a broker: right as a whole or refused by name."""

from __future__ import annotations

import typing

import pytest

from rota.coordinator.config.broker import BrokerConfig, definition_of
from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.definition import ConfigRefused, Support
from rota.coordinator.config.describe import describe_broker
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.config.other_properties import foreign, others
from rota.coordinator.config.presets import PRESETS

DERIVED = {
    *("dynamic", "http", "dynamic_defaults", "properties", "warnings", "listens", "advertises", "super_user_names"),
    "security",
    *("http_security", "ignored", "ignored_defaults"),
}

REACHABLE = {"rota.allow.plaintext.beyond.loopback": "true"}


def test_every_property_with_an_effect_is_one_attribute() -> None:
    attributes = set(typing.get_type_hints(BrokerConfig)) - DERIVED
    assert attributes == {name.replace(".", "_") for name in USED}


def test_no_name_is_in_two_tables() -> None:
    assert not set(USED) & set(others())
    assert not set(foreign()) & (set(USED) | set(others()))


def test_internal_properties_of_kafka_are_accepted_with_a_warning_and_never_listed() -> None:
    given = {"log.initial.task.delay.ms": "500", "unstable.api.versions.enable": "true"}
    config = BrokerConfig(given)
    assert [name for name in given if any(name in line for line in config.warnings)] == [*given]
    assert not {entry.name for entry in describe_broker(config)} & set(given)


@pytest.mark.parametrize("name", sorted({**USED, **others(), **foreign()}))
def test_every_default_is_a_right_value(name: str) -> None:
    definition = definition_of(name)
    definition.parse(definition.default)
    assert definition.valid()


def test_defaults_are_those_that_groups_live_by() -> None:
    config = BrokerConfig()
    assert (config.group_min_session_timeout_ms, config.group_max_session_timeout_ms) == (6_000, 1_800_000)
    assert (config.group_initial_rebalance_delay_ms, config.group_max_size) == (3_000, 2_147_483_647)
    assert (config.offsets_topic_num_partitions, config.offsets_retention_minutes) == (50, 10_080)
    assert config.listens == (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)
    assert (config.advertises, config.log_dirs, config.warnings) == ((), ("rota-data",), ())


def test_a_mistyped_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigRefused, match=r"nearest known name is group\.initial\.rebalance\.delay\.ms") as refused:
        BrokerConfig({"group.initial.rebalance.delay": "0"})
    assert refused.value.name == "group.initial.rebalance.delay"


def test_a_name_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(ConfigRefused, match=r"^Unknown broker config name: zzz$"):
        BrokerConfig({"zzz": "0"})
    with pytest.raises(ConfigRefused, match="Unknown"):
        BrokerConfig({"z" * 100_000: "0"})


@pytest.mark.parametrize(
    ("name", "value", "error_text"),
    [
        ("num.partitions", "0", "from 1 to 2147483647"),
        ("num.partitions", "many", "not a whole number"),
        ("num.partitions", "2147483648", "from 1 to 2147483647"),
        ("num.partitions", "", "not a whole number"),
        ("num.partitions", "1_0", "not a whole number"),
        ("num.partitions", "٣", "not a whole number"),
        ("offsets.topic.replication.factor", "32768", "from 1 to 32767"),
        ("delete.topic.enable", "yes", "true or false"),
        ("log.cleanup.policy", "compact,shred", "compact, delete"),
        ("compression.type", "brotli", "zstd"),
        ("compression.gzip.level", "0", "or -1"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "from 0 to 1"),
        ("log.cleaner.min.cleanable.ratio", "nan", "from 0 to 1"),
        ("listeners", "127.0.0.1:9092", "PLAINTEXT://HOST:PORT"),
        ("listeners", "PLAINTEXT://h:70000", "PLAINTEXT://HOST:PORT"),
        ("listeners", "", "no address"),
        ("listeners", "PLAINTEXT://:9093", "rota.allow.plaintext.beyond.loopback=true"),
        ("listeners", "A://:1,a://:2", "two addresses"),
        ("listeners", ",".join(f"L{n}://:{n}" for n in range(65)), "more than 64"),
        ("advertised.listeners", "PLAINTEXT://0.0.0.0:9092", "No client can reach"),
        ("advertised.listeners", "PLAINTEXT://:9092", "No client can reach"),
        ("advertised.listeners", "PLAINTEXT://0:9092", "No client can reach"),
        ("advertised.listeners", "PLAINTEXT://[0:0::0]:9092", "No client can reach"),
        ("max.connections.per.ip.overrides", "127.0.0.1", "host:count"),
        ("group.min.session.timeout.ms", "1800001", "group.max.session.timeout.ms"),
        ("broker.id", "-2", "from -1"),
        ("node.id", "-1", "from 0"),
        ("ssl.client.auth", "perhaps", "required, requested, none"),
        ("ssl.engine.factory.class", "a.B", "TLS"),
        ("super.users", "alice", "TYPE:NAME"),
        ("remote.log.storage.system.enable", "true", "tiered"),
        ("listener.name.internal.max.connections", "5", "of a single listener"),
        ("listener.name.internal.ssl.client.auth", "perhaps", "required, requested, none"),
        ("num.io.threads", "lots", "whole number"),
        ("log.dir", "", "no folder"),
    ],
)
def test_a_wrong_value_is_refused_with_the_valid_ones(name: str, value: str, error_text: str) -> None:
    with pytest.raises(ConfigRefused, match=error_text) as refused:
        BrokerConfig({name: value})
    assert name in str(refused.value) or error_text in ("No client can reach", "no folder")


def test_a_password_is_not_shown_when_it_is_refused() -> None:
    with pytest.raises(ConfigRefused) as refused:
        BrokerConfig({"sasl.jaas.config": "hunter2"})
    assert "hunter2" not in str(refused.value)


def test_a_property_without_effect_is_accepted_with_a_warning() -> None:
    config = BrokerConfig({"num.network.threads": "8", "ssl.protocol": "TLSv1.3"})
    assert [line.split()[0] for line in config.warnings] == ["num.network.threads", "ssl.protocol"]
    assert definition_of("num.network.threads").support is Support.NO_EFFECT


def test_the_quickstart_properties_of_kafka_are_accepted_where_plain_text_is_allowed() -> None:
    config = BrokerConfig(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
            "num.network.threads": "3",
            "log.dirs": "/tmp/kraft-combined-logs",
            "share.coordinator.state.topic.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "log.retention.hours": "168",
            **REACHABLE,
        }
    )
    assert config.listens == (Endpoint("PLAINTEXT", "", 9092),)
    assert config.advertises == (Endpoint("PLAINTEXT", "localhost", 9092),)


def test_a_listener_has_the_protocol_of_its_mapping() -> None:
    config = BrokerConfig({"listeners": "OUTSIDE://:9092", "listener.security.protocol.map": "OUTSIDE:SSL"})
    assert config.security["OUTSIDE"].has_tls


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PLAINTEXT://[::1]:9092", Endpoint("PLAINTEXT", "::1", 9092)),
        ("plaintext://0.0.0.0:0", Endpoint("PLAINTEXT", "0.0.0.0", 0)),
        (" PLAINTEXT://a-b.example:1 ", Endpoint("PLAINTEXT", "a-b.example", 1)),
    ],
)
def test_addresses_are_read_in_kafkas_form(text: str, expected: Endpoint) -> None:
    (endpoint,) = BrokerConfig({"listeners": text, **REACHABLE}).listens
    assert endpoint == expected
    assert BrokerConfig({"listeners": str(endpoint), **REACHABLE}).listens == (endpoint,)


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "-1"}, -1),
        ({"log.retention.minutes": "2", "log.retention.ms": "5"}, 5),
    ],
)
def test_the_finest_unit_wins(given: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig(given).retention_ms == retention_ms


def test_roll_time_has_two_units() -> None:
    assert BrokerConfig({"log.roll.hours": "2"}).segment_ms == 7_200_000
    assert BrokerConfig({"log.roll.hours": "2", "log.roll.ms": "9"}).segment_ms == 9


def test_broker_id_is_an_older_name() -> None:
    assert BrokerConfig({"broker.id": "7"}).node_id == 7
    assert BrokerConfig({"broker.id": "7", "node.id": "7"}).broker_id == 7
    assert BrokerConfig({"broker.id": "-1"}).node_id == BrokerConfig().node_id
    with pytest.raises(ConfigRefused, match=r"the same value as `broker\.id`"):
        BrokerConfig({"broker.id": "7", "node.id": "8"})


def test_log_dirs_beyond_the_first_are_named_in_a_warning() -> None:
    assert BrokerConfig({"log.dirs": "/a,/b"}).warnings == ("log.dirs names 2 folders: all logs are in the first, /a",)


def test_changed_returns_new_settings_and_keeps_the_old_ones() -> None:
    before = BrokerConfig({"num.partitions": "2", "node.id": "5"})
    after = before.changed({"num.partitions": "3"})
    assert (before.num_partitions, after.num_partitions, after.node_id) == (2, 3, 5)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_is_right(preset: str) -> None:
    assert BrokerConfig(PRESETS[preset]).warnings == ()


def test_brokers_speak_over_a_listener_that_they_have() -> None:
    listeners = {
        **REACHABLE,
        "listeners": "A://h:1,B://h:2",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
    }
    assert BrokerConfig({**listeners, "inter.broker.listener.name": "B"}).inter_broker_listener_name == "B"
    with pytest.raises(ConfigRefused, match="INSIDE is not one of the advertised listeners: A, B"):
        BrokerConfig({**listeners, "inter.broker.listener.name": "INSIDE"})


@pytest.mark.parametrize("factor", ["0", "-1"])
def test_a_default_replication_factor_that_no_topic_can_have_is_refused(factor: str) -> None:
    """Apache Kafka starts with it, and then refuses each topic that gives no factor."""
    with pytest.raises(ConfigRefused, match=r"default\.replication\.factor: the valid value is a whole number from 1 "):
        BrokerConfig({"default.replication.factor": factor})
