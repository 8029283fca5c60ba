"""The broker's settings that a group obeys. Kafka's property names stand beside them."""

from __future__ import annotations

from dataclasses import dataclass

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Kafka 4.3's defaults."""

    group_size_max: int = INT32_MAX  # group.max.size
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    session_min_ms: int = 6_000  # group.min.session.timeout.ms
    session_max_ms: int = 1_800_000  # group.max.session.timeout.ms
    offsets_retention_ms: int = 604_800_000  # offsets.retention.minutes
    new_member_join_ms: int = 300_000  # how long a member that waits for its first generation is kept
