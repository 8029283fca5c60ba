"""The values of `leader.` and `follower.replication.throttled.replicas`: `PARTITION:BROKER,…`, or `*` for all."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from rota.coordinator.config.definition import ConfigRefused

NAMES: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
ALL: Final = "*"
_REPLICA: Final = re.compile(r"([0-9]+):([0-9]+)", re.ASCII)


def check_throttled_replicas(name: str, text: str) -> None:
    """Raises ConfigRefused, in Kafka's words, unless `text` lists replicas."""
    items = [item.strip() for item in text.split(",")] if text.strip() else []
    if items[:1] == [ALL] or all(_REPLICA.fullmatch(item) or not item for item in items):
        return
    listed = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    why = f"{name} must be the literal '*' or a list of replicas in the following format: {listed}"
    raise ConfigRefused(name, f"Invalid value [{', '.join(items)}] for configuration {name}: {why}")


def is_listed(text: str, partition: int, broker: int) -> bool:
    """Return whether the value of such a config, which was checked, lists this replica."""
    replicas = _replicas(text)
    return replicas is None or (partition, broker) in replicas


@lru_cache(maxsize=1_000)
def _replicas(text: str) -> frozenset[tuple[int, int]] | None:
    """None: all."""
    if text.strip().startswith(ALL):
        return None
    return frozenset((int(match[1]), int(match[2])) for match in _REPLICA.finditer(text))
