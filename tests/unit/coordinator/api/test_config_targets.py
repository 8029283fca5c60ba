"""What the alter APIs check before they write; the answers in full are compared with Kafka's in tests/interop."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World, answered

from rota.coordinator.api import config_targets
from rota.coordinator.api.alter_configs import alter_configs
from rota.coordinator.api.incremental_alter_configs import APPEND, DELETE, SET, incremental_alter_configs
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.changes import DEFAULT_NAME, ConfigKind
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_configs import AlterableConfig as ReplacedConfig
from rota.protocol.messages.alter_configs import AlterConfigsRequest
from rota.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from rota.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKER, METRICS, GROUP = 4, 16, 32
MIN_ISR = "min.insync.replicas"
Change = tuple[str, int, str | None]


@pytest.fixture
def world() -> World:
    world = World({"node.id": "3"})
    world.topic("t", min_compaction_lag_ms="100")
    return world


def alter(world: World, kind: int, name: str, *changes: Change, validate_only: bool = False) -> tuple[int, str]:
    configs = tuple(AlterableConfig(name=key, config_operation=what, value=value) for key, what, value in changes)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (result,) = answered(world.serve(incremental_alter_configs, request, 1)).responses
    return result.error_code, result.error_message or ""


def replace(world: World, name: str, **configs: str) -> tuple[int, str]:
    items = tuple(ReplacedConfig(name=key.replace("_", "."), value=value) for key, value in configs.items())
    resource = ReplacedResource(resource_type=BROKER, resource_name=name, configs=items)
    request = AlterConfigsRequest(resources=(resource,), validate_only=False)
    (result,) = answered(world.serve(alter_configs, request, 1)).responses
    return result.error_code, result.error_message or ""


def test_a_broker_property_is_in_force_in_its_logs(world: World) -> None:
    assert alter(world, BROKER, "", ("log.retention.ms", SET, "50"), ("message.max.bytes", SET, "900")) == (0, "")
    assert world.partition().log.config.retention_ms == 50
    assert world.node.config.message_max_bytes == world.partition().log.config.message_bytes_max == 900
    assert alter(world, BROKER, "3", ("log.retention.ms", SET, "60")) == (0, "")
    assert world.partition().log.config.retention_ms == 60
    assert alter(world, BROKER, "3", ("log.retention.ms", DELETE, None)) == (0, "")
    assert world.partition().log.config.retention_ms == 50


def test_min_insync_replicas_of_all_brokers_is_changed_and_not_removed(world: World) -> None:
    refused = (ErrorCode.INVALID_CONFIG, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
    assert alter(world, BROKER, "", (MIN_ISR, DELETE, None)) == refused
    assert replace(world, "") == replace(world, "", log_retention_ms="50") == refused
    assert alter(world, BROKER, "", ("log.retention.ms", SET, "50")) == (0, "")
    assert alter(world, BROKER, "", (MIN_ISR, SET, "2")) == (0, "")
    assert alter(world, BROKER, "", (MIN_ISR, DELETE, None)) == refused
    assert world.node.config.min_insync_replicas == 2
    assert replace(world, "", min_insync_replicas="3") == (0, "")
    assert (world.node.config.min_insync_replicas, world.node.config.log_retention_ms) == (3, None)


def test_min_insync_replicas_of_a_broker_is_removed_only_where_an_earlier_release_set_it(world: World) -> None:
    refused = (ErrorCode.INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    for change in ((MIN_ISR, SET, "2"), (MIN_ISR, DELETE, None)):
        assert alter(world, BROKER, "3", change) == refused
    assert replace(world, "3", min_insync_replicas="2") == refused
    eager_tasks.run_eagerly(world.node.topics.configs.update(ConfigKind.BROKERS, "3", lambda _: {MIN_ISR: "2"}))
    assert alter(world, BROKER, "3", ("log.retention.ms", SET, "60")) == (0, "")
    assert alter(world, BROKER, "3", (MIN_ISR, DELETE, None)) == (0, "")
    assert world.node.config.min_insync_replicas == 1


@pytest.mark.parametrize(
    "change",
    [
        ("log.retention.ms", SET, "x"),
        ("num.partitions", SET, "3"),
        ("nobody", SET, "3"),
        ("listener.name.a.max.connections", SET, "3"),
        ("sasl.jaas.config", SET, "secret"),
        ("max.connections.per.ip.overrides", SET, "nonsense"),
        ("log.cleaner.max.compaction.lag.ms", SET, "50"),
        ("leader.replication.throttled.rate", SET, "-1"),
    ],
)
def test_one_invalid_value_refuses_the_whole_resource(world: World, change: Change) -> None:
    for name in ("", "3"):
        code, message = alter(world, BROKER, name, ("log.segment.bytes", SET, "2000000"), change)
        assert code == ErrorCode.INVALID_REQUEST
        assert "secret" not in message
    assert world.node.topics.configured(ConfigKind.BROKERS) == []
    assert world.node.config.log_segment_bytes == 1 << 30


def test_bc8_what_does_not_fit_is_refused(world: World) -> None:
    interval = "group.consumer.assignment.interval.ms"
    code, text = alter(world, BROKER, "", (interval, SET, "20000"))
    assert code == ErrorCode.INVALID_REQUEST
    assert text.startswith(f"{interval} must be less than or equal to group.consumer.max.assignment.interval.ms")
    assert alter(world, BROKER, "", (interval, SET, "15000")) == (0, "")
    one = ("max.connections.per.ip.overrides", SET, "127.0.0.1:9")
    assert alter(world, BROKER, "", ("max.connections.per.ip", SET, "0"))[0] == ErrorCode.INVALID_REQUEST
    assert alter(world, BROKER, "", ("max.connections.per.ip", SET, "0"), one) == (0, "")


def test_bc8_what_is_stored_and_does_not_fit_does_not_block_other_configs(world: World) -> None:
    """Another broker, whose own properties allow the values, has accepted them as those of all brokers."""
    interval = "group.consumer.assignment.interval.ms"
    stored = {interval: "20000", "max.connections.per.ip": "0"}
    eager_tasks.run_eagerly(world.node.topics.configs.update(ConfigKind.BROKERS, DEFAULT_NAME, lambda _: stored))
    assert alter(world, BROKER, "", ("log.retention.ms", SET, "50")) == (0, "")
    assert alter(world, BROKER, "3", ("log.retention.ms", SET, "60")) == (0, "")
    assert world.node.config.max_connections_per_ip > 0
    assert alter(world, BROKER, "", (interval, SET, "20001"))[0] == ErrorCode.INVALID_REQUEST
    assert alter(world, BROKER, "", (interval, DELETE, None)) == (0, "")
    assert alter(world, BROKER, "", (interval, SET, "20000"))[0] == ErrorCode.INVALID_REQUEST


def test_validation_alone_writes_nothing(world: World) -> None:
    assert alter(world, BROKER, "", ("log.retention.ms", SET, "50"), validate_only=True) == (0, "")
    assert world.node.topics.resource_configs(ConfigKind.BROKERS, DEFAULT_NAME) == {}


def test_groups_and_subscriptions_are_kept_and_their_lists_change_as_a_whole(world: World) -> None:
    assert alter(world, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")) == (0, "")
    assert alter(world, METRICS, "m", ("metrics", SET, "*"), ("interval.ms", SET, "100")) == (0, "")
    assert world.node.topics.resource_configs(ConfigKind.GROUPS, "g") == {"consumer.session.timeout.ms": "50000"}
    assert alter(world, METRICS, "m", ("metrics", APPEND, "a"))[0] == ErrorCode.INVALID_CONFIG
    assert alter(world, GROUP, "g", ("consumer.session.timeout.ms", SET, "1"))[0] == ErrorCode.INVALID_CONFIG
    assert world.node.topics.resource_configs(ConfigKind.CLIENT_METRICS, "m") == {"metrics": "*", "interval.ms": "100"}


def test_tm1_the_number_of_subscriptions_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_targets, "SUBSCRIPTIONS_MAX", 2)
    for name in ("a", "b"):
        assert alter(world, METRICS, name, ("metrics", SET, "*")) == (0, "")
    code, message = alter(world, METRICS, "c", ("metrics", SET, "*"))
    assert (code, "2 client metrics subscriptions" in message) == (ErrorCode.POLICY_VIOLATION, True)
    assert alter(world, METRICS, "b", ("interval.ms", SET, "1000")) == (0, "")
    assert alter(world, METRICS, "a", ("metrics", DELETE, "")) == (0, "")
    assert alter(world, METRICS, "c", ("metrics", SET, "*")) == (0, "")
