"""How group traffic spreads over brokers: `python -m benchmarks.shards [GROUPS]`, a simulation of a few seconds.

The groups of a cluster are hashed to the 50 partitions of the offsets topic, and Rota's own assignment spreads their
leaders over the brokers. The busiest broker is the first without room: the traffic of all brokers can grow to `times`
that of one broker, at most, before it is. `equal` groups send equally much; of `skewed` ones the n-th sends 1/n of the
first (Zipf). Names are random: medians of several
draws. One broker is a process, and a process takes one core.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Final

from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.placement import assign_round_robin, start_of
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.runtime.routing import shard_of

BROKERS: Final = (1, 2, 4, 8, 16, 25, 32, 50, 64)
SHARDS: Final = (50, 200, 500)  # offsets.topic.num.partitions: Kafka's default, and more of them
GROUPS: Final = 10_000
DRAWS: Final = 5
OFFSETS_TOPIC: Final = "__consumer_offsets"


@dataclass(frozen=True, slots=True)
class Spread:
    """How many times the traffic of one broker so many brokers can take, and how many of them have a group."""

    times: float
    used: int


def leaders(brokers: int, shards: int) -> list[int]:
    """The broker that leads each shard."""
    registrations = {number: BrokerRegistration(broker_id=number, epoch=1) for number in range(brokers)}
    states = assign_round_robin(registrations, 0, shards, 1, start=start_of(OFFSETS_TOPIC))
    assert not isinstance(states, Refusal)
    return [state.leader for state in states]


def spread(brokers: int, shards: int, traffic: Mapping[str, float]) -> Spread:
    """Add up the traffic of each broker."""
    leads, load = leaders(brokers, shards), defaultdict[int, float](float)
    for group, weight in traffic.items():
        load[leads[shard_of(group, shards)]] += weight
    return Spread(sum(load.values()) / max(load.values()), len(load))


def equal(random: Random, groups: int) -> dict[str, float]:
    return {_name(random): 1.0 for _ in range(groups)}


def skewed(random: Random, groups: int) -> dict[str, float]:
    return {_name(random): 1.0 / rank for rank in range(1, groups + 1)}


def _name(random: Random) -> str:
    return f"{random.choice(('orders', 'billing', 'search', 'mail'))}-{random.getrandbits(48):x}"


def usual(brokers: int, shards: int, draws: Sequence[Mapping[str, float]]) -> Spread:
    spreads = [spread(brokers, shards, traffic) for traffic in draws]
    return Spread(median(one.times for one in spreads), round(median(one.used for one in spreads)))


def main() -> None:
    """Print a table for each traffic."""
    groups = int(sys.argv[1]) if len(sys.argv) > 1 else GROUPS
    random = Random(50)
    for name, traffic in (("equal", equal), ("skewed", skewed)):
        draws = [traffic(random, groups) for _ in range(DRAWS)]
        print(f"\n| {name}: brokers |" + "".join(f" times, {shards} shards | used |" for shards in SHARDS))
        print("|---|" + "---|---|" * len(SHARDS))
        for brokers in BROKERS:
            cells = [usual(brokers, shards, draws) for shards in SHARDS]
            print(f"| {brokers} |" + "".join(f" {cell.times:.1f} | {cell.used} |" for cell in cells))


if __name__ == "__main__":
    main()
