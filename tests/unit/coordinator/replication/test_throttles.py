from __future__ import annotations

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.replication.throttles import follower_throttle, leader_throttle

RATES = {"leader.replication.throttled.rate": "10", "follower.replication.throttled.rate": "1000"}


def image(**configs: str) -> Image:
    states = tuple(PartitionState(index=index, leader=1, replicas=(1, 2), isr=(1,)) for index in range(2))
    image = Image(1)
    named = {name.replace("_", "."): value for name, value in configs.items()}
    image.apply_topic(Topic(name="t", topic_id=bytes(16), partitions=states, configs=named))
    return image


def test_leaders_and_followers_have_their_own_rates_and_replicas() -> None:
    config = BrokerConfig().with_dynamic({}, RATES)
    known = image(leader_replication_throttled_replicas="0:1,1:2", follower_replication_throttled_replicas="1:1")
    leader, follower = leader_throttle(known, config, lambda: 0), follower_throttle(known, config, lambda: 0)
    for throttle in (leader, follower):
        for index in (0, 1):
            throttle.record("t", index, 100)
    assert [leader.is_held_back("t", index, is_in_sync=False) for index in (0, 1)] == [True, False]
    assert [follower.is_held_back("t", index, is_in_sync=False) for index in (0, 1)] == [False, False]
    follower.record("t", 1, 1_000)
    assert follower.is_held_back("t", 1, is_in_sync=False)


def test_changed_configs_count_at_once() -> None:
    config, known = BrokerConfig(), image(leader_replication_throttled_replicas="*")
    throttle = leader_throttle(known, config, lambda: 0)
    throttle.record("t", 0, 100)  # there is no rate yet
    config.reconfigure({}, RATES)
    assert not throttle.is_held_back("t", 0, is_in_sync=False)
    throttle.record("t", 0, 100)
    assert throttle.is_held_back("t", 0, is_in_sync=False)
    known.remove_topic("t")
    assert not throttle.is_held_back("t", 0, is_in_sync=False)


def test_the_quota_has_the_configured_windows() -> None:
    now_ms = 0
    windows = {"replication.quota.window.num": "2", "replication.quota.window.size.seconds": "3"}
    config = BrokerConfig(windows).with_dynamic({}, RATES)
    throttle = leader_throttle(image(leader_replication_throttled_replicas="*"), config, lambda: now_ms)
    throttle.record("t", 0, 1_000_000)
    now_ms = 5_999
    assert throttle.is_held_back("t", 0, is_in_sync=False)
    now_ms = 6_000
    assert not throttle.is_held_back("t", 0, is_in_sync=False)
