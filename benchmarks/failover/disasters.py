"""The scenarios of a network that is cut between brokers and ZooKeeper, and of machines that lose their power.

The broker that is cut off coordinates the group and leads the partition that is written. Clients reach every broker. A
cut lasts for 40 seconds: what goes on later than that has waited for its end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from random import Random
from typing import Final

from tools.fault_network import ZOOKEEPER
from tools.networked_cluster import NetworkedCluster

from benchmarks.failover.members import Committer
from benchmarks.failover.scenarios import PARTITIONS, Stage, until
from benchmarks.failover.writers import Writer, longest_gap

CUT_S: Final = 40.0  # longer than a session of ZooKeeper, a request of librdkafka and replica.lag.time.max.ms
HEALED_S: Final = 5.0
DELIVERED_S: Final = 2.0  # acknowledgements that the kernel still had when the brokers were killed


def cut_from_brokers(stage: Stage) -> dict[str, float]:
    """A broker is cut off from the others, not from ZooKeeper, until it goes on."""
    return _partitioned(stage, is_received=False, receives=False)


def cut_from_all(stage: Stage) -> dict[str, float]:
    """A broker is cut off from the others and from ZooKeeper, until it goes on."""
    return _partitioned(stage, ZOOKEEPER, is_received=False, receives=False)


def not_received(stage: Stage) -> dict[str, float]:
    """A broker receives from the others, and they do not receive from it, until it goes on."""
    return _partitioned(stage, is_received=False, receives=True)


def receives_nothing(stage: Stage) -> dict[str, float]:
    """A broker does not receive from the others, which receive from it, until it goes on."""
    return _partitioned(stage, is_received=True, receives=False)


def _partitioned(stage: Stage, *more: int, is_received: bool, receives: bool) -> dict[str, float]:
    cluster, (victim, writer, member) = stage.cluster, _working(stage)
    assert isinstance(cluster, NetworkedCluster)
    at = time.perf_counter()
    for other in {*cluster.brokers, *more} - {victim}:
        if not is_received:
            cluster.network.cut(victim, other)
        if not receives:
            cluster.network.cut(other, victim)
    time.sleep(CUT_S)
    healed = time.perf_counter()
    cluster.network.heal()
    return {**_first_after(writer, member, at), **_healed(stage, writer, member, healed)}


def power_cut(stage: Stage) -> dict[str, float]:
    """All machines lose their power and start again, with log.flush.interval.messages=1, until it goes on."""
    random, cluster, (_, writer, member) = Random(0), stage.cluster, _working(stage)
    assert isinstance(cluster, NetworkedCluster)
    for broker in cluster.brokers:
        cluster.kill(broker)
    time.sleep(DELIVERED_S)
    for broker in cluster.brokers:
        cluster.lose_power(broker, stage.topic, {writer.partition: writer.end}, random)
    at = time.perf_counter()
    for broker in cluster.brokers:
        cluster.start(broker, wait=False)
    return {**_first_after(writer, member, at), **_healed(stage, writer, member, at)}


def _working(stage: Stage) -> tuple[int, Writer, Committer]:
    """The coordinator of the group, a producer to the partition that it leads, and the member; all have begun."""
    victim = stage.cluster.coordinator(stage.group)
    led = next(index for index in range(PARTITIONS) if stage.cluster.leader(stage.topic, index) == victim)
    writer, member = Writer(stage.cluster, stage.topic, led), Committer(stage.cluster, stage.topic, stage.group)
    until(lambda: len(writer.acknowledged) > 200 and len(member.committed) > 50)
    return victim, writer, member


def _first_after(writer: Writer, member: Committer, at: float) -> dict[str, float]:
    return {"acks=all goes on": writer.first_after(at), "commits go on": member.first_after(at)}


def _healed(stage: Stage, writer: Writer, member: Committer, at: float) -> dict[str, float]:
    """What clients notice after the fault has ended."""
    until(stage.is_in_sync)
    in_sync = time.perf_counter() - at
    time.sleep(HEALED_S)
    member.stop()
    writer.stop()
    for error in (*writer.errors, *member.errors):
        print(f"    {error}")
    return {
        "in the ISRs after it ended": in_sync,
        "longest silence then of the producer": longest_gap(
            _since(at, sorted(done for _, done in writer.acknowledged))
        ),
        "longest silence then of commits": longest_gap(_since(at, (done for _, done in member.committed))),
        "errors (count)": len(writer.errors) + len(member.errors),
        "rejoined (count)": member.assignments - 1,
    }


def _since(at: float, times: Iterable[float]) -> list[float]:
    return [at, *(each for each in times if each > at)]
