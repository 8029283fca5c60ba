"""The defaults are Kafka 4.3's."""

from __future__ import annotations

from rota.coordinator.group.config import GroupConfig


def test_defaults() -> None:
    config = GroupConfig()
    assert (config.session_min_ms, config.session_max_ms) == (6_000, 30 * 60_000)
    assert (config.initial_rebalance_delay_ms, config.new_member_join_ms) == (3_000, 5 * 60_000)
    assert (config.group_size_max, config.offsets_retention_ms) == (2**31 - 1, 7 * 24 * 3_600_000)
