"""What consumer groups see of the image, and of the settings."""

from __future__ import annotations

from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, MigrationPolicy
from rota.coordinator.group_environment import ImageTopics, settings_of
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.changes import ConfigKind


def test_topics_are_seen_with_their_partitions_and_racks() -> None:
    world = GroupWorld().open()
    topics = ImageTopics(world.node.topics)
    found = topics.get("t")
    assert found is not None
    assert (found.name, found.racks) == ("t", ((), (), ()))
    assert topics.by_id(found.topic_id) == found
    assert "t" in topics.names()
    assert topics.get("none") is None
    assert topics.by_id(b"x" * 16) is None


def test_the_version_grows_with_topics_and_racks_and_with_nothing_else() -> None:
    world = GroupWorld().open()
    image = world.node.topics
    topics = ImageTopics(image)
    seen = [topics.version]
    world.topic("u", 1)
    seen.append(topics.version)
    assert topics.created_version == topics.version
    image.apply_brokers({0: BrokerRegistration(broker_id=0, rack="r1")})
    seen.append(topics.version)
    found = topics.get("t")
    assert found is not None
    assert found.racks == (("r1",), ("r1",), ("r1",))
    image.remove_topic("u")
    seen.append(topics.version)
    assert seen == sorted(set(seen))
    assert topics.created_version < topics.version
    image.apply_brokers({})  # the broker is down: it keeps its rack
    image.apply_controller(5)
    assert topics.version == seen[-1]
    assert topics.get("t") == found


def test_the_configs_of_a_group_are_cut_to_the_limits_of_the_broker() -> None:
    world = GroupWorld(
        {
            "group.consumer.heartbeat.interval.ms": "7000",
            "group.consumer.assignors": "range",
            "group.consumer.migration.policy": "upgrade",
        }
    )
    image = world.node.topics
    settings = settings_of(image, world.node.config)
    assert settings("g") == ConsumerGroupSettings(
        heartbeat_interval_ms=7_000, assignors=("range",), migration=MigrationPolicy.UPGRADE
    )
    own = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "99000"}
    eager_tasks.run_eagerly(image.configs.update(ConfigKind.GROUPS, "g", lambda before: own))
    assert (settings("g").session_ms, settings("g").heartbeat_interval_ms) == (50_000, 15_000)
    assert settings("other").session_ms == 45_000
    assert settings("g").record_bytes_max == world.node.config.message_max_bytes


def test_a_stored_config_of_a_group_that_cannot_be_used_is_ignored() -> None:
    """BC4. Another program, or a later release, wrote it."""
    world = GroupWorld()
    own = {"consumer.session.timeout.ms": "soon", "consumer.heartbeat.interval.ms": "6000", "of.later": "1"}
    world.node.topics.apply_configs(ConfigKind.GROUPS, "g", own)
    settings = settings_of(world.node.topics, world.node.config)("g")
    assert (settings.session_ms, settings.heartbeat_interval_ms) == (45_000, 6_000)


def test_kafkas_class_names_name_assignors() -> None:
    name = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    world = GroupWorld({"group.consumer.assignors": f"{name},uniform"})
    assert settings_of(world.node.topics, world.node.config)("g").assignors == ("range", "uniform")
