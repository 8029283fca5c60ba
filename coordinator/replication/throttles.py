"""The throttles of this broker's replication, from its dynamic configs and from those of the topics (KIP-73)."""

from __future__ import annotations

from collections.abc import Callable

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.throttled_replicas import is_listed
from rota.coordinator.metadata.image import Image
from rota.coordinator.replica.replication_throttle import ByteRate, ReplicationThrottle


def leader_throttle(image: Image, config: BrokerConfig, now_ms: Callable[[], int]) -> ReplicationThrottle:
    """Return the throttle of what this broker sends to followers that are not in sync."""
    return ReplicationThrottle(
        _quota(config, now_ms),
        lambda: config.leader_replication_throttled_rate,
        _listed_in("leader.replication.throttled.replicas", image),
    )


def follower_throttle(image: Image, config: BrokerConfig, now_ms: Callable[[], int]) -> ReplicationThrottle:
    """Return the throttle of what this broker fetches of partitions in which it is not in sync."""
    return ReplicationThrottle(
        _quota(config, now_ms),
        lambda: config.follower_replication_throttled_rate,
        _listed_in("follower.replication.throttled.replicas", image),
    )


def _quota(config: BrokerConfig, now_ms: Callable[[], int]) -> ByteRate:
    return ByteRate(
        now_ms,
        windows=config.replication_quota_window_num,
        window_ms=1_000 * config.replication_quota_window_size_seconds,
    )


def _listed_in(name: str, image: Image) -> Callable[[str, int], bool]:
    def is_throttled(topic: str, index: int) -> bool:
        known = image.get(topic)
        text = "" if known is None else known.configs.get(name, "")
        return bool(text) and is_listed(text, index, image.broker_id)

    return is_throttled
