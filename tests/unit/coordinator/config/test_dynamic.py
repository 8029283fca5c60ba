"""BC1, BC2: which properties may be set while a broker runs."""

from __future__ import annotations

import pytest

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.definition import ConfigRefused, Support, Update
from rota.coordinator.config.dynamic import check_dynamic, check_value, usable, without_effect
from rota.coordinator.config.topic_properties import SYNONYMS

ELSEWHERE = {
    "group.consumer.assignment.interval.ms",  # in force where they are read
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "num.replica.fetchers",
    "producer.id.expiration.ms",
    "sasl.enabled.mechanisms",
    "sasl.mechanism.inter.broker.protocol",
    *(name for name in USED if name.startswith("ssl.") and name != "ssl.principal.mapping.rules"),
}


def test_every_dynamic_property_with_an_effect_is_a_default_of_topics_or_read_at_each_use() -> None:
    dynamic = {name for name, each in USED.items() if each.update is not Update.READ_ONLY}
    of_topics = {name for synonyms in SYNONYMS.values() for name, _ in synonyms}
    used = {name for name in dynamic if USED[name].support is Support.USED}
    assert used - of_topics == ELSEWHERE


def test_an_invalid_combination_changes_nothing() -> None:
    config = BrokerConfig({"max.connections": "5"})
    with pytest.raises(ConfigRefused):
        config.reconfigure({"max.connections": "6"}, {"max.connections.per.ip.overrides": "nonsense"})
    assert (config.max_connections, dict(config.dynamic), dict(config.dynamic_defaults)) == (5, {}, {})
    config.reconfigure({"max.connections": "6"}, {})
    assert (config.max_connections, config.text("max.connections")) == (6, "6")


@pytest.mark.parametrize("name", ["num.partitions", "listeners", "nobody", "zookeeper.connect", "rota.swim.secret"])
def test_read_only_and_unknown_properties_are_refused(name: str) -> None:
    with pytest.raises(ConfigRefused):
        check_dynamic([name], of_all_brokers=False)


def test_an_unsupported_property_is_refused_unless_it_has_its_default() -> None:
    check_value("ssl.protocol", "TLSv1.3")
    with pytest.raises(ConfigRefused):
        check_value("ssl.protocol", "TLSv1.2")


def test_a_property_of_one_broker_has_no_default_for_all() -> None:
    check_dynamic(["ssl.protocol"], of_all_brokers=False)
    with pytest.raises(ConfigRefused, match="broker id must be specified"):
        check_dynamic(["ssl.protocol"], of_all_brokers=True)


def test_invalid_stored_configs_are_ignored_and_valid_ones_used() -> None:
    used, ignored = usable({"log.retention.ms": "5", "log.segment.bytes": "1", "nobody": "1"})
    assert (used, len(ignored)) == ({"log.retention.ms": "5"}, 2)


def test_warnings_name_properties_without_effect() -> None:
    (warning,) = without_effect(["log.retention.ms", "background.threads"])
    assert warning.startswith("background.threads has no effect")
