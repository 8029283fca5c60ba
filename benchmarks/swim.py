"""What the failure detector costs: `python -m benchmarks.swim`.

Clusters of 3, 10 and 50 pure machines in virtual time (tests/simulation/swim_world.py), nothing lost: datagrams and
bytes that a broker sends in a second, and the processor time of its machine for that second, with all that it decodes,
authenticates, decides and encodes. What the sockets cost is measured with two services on loopback.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from random import Random
from typing import Any

from tests.simulation.swim_world import SwimWorld

from rota.coordinator.membership.contract import Effects, SwimSettings
from rota.coordinator.membership.service import SwimService
from rota.coordinator.scheduling.clock import Clock

BROKERS = (3, 10, 50)
SECONDS = 5
DEATHS = 5
PINGS_PER_SECOND = 100


def steady(brokers: int) -> tuple[float, float, float]:
    """Return datagrams, bytes and CPU microseconds for a broker and a second."""
    world, stopwatch = SwimWorld(1, brokers), Stopwatch()
    world.run(3_000)
    world.sent.clear()
    world.sent_bytes = 0
    for node in world.nodes.values():
        swim: Any = node.swim
        swim.received, swim.tick = stopwatch.timed(swim.received), stopwatch.timed(swim.tick)
    world.run(SECONDS * 1000)
    share = brokers * SECONDS
    return sum(world.sent.values()) / share, world.sent_bytes / share, stopwatch.ns / 1000 / share


class Stopwatch:
    """Adds up the processor time of calls."""

    def __init__(self) -> None:
        self.ns = 0

    def timed(self, call: Callable[..., Effects]) -> Callable[..., Effects]:
        def timed(*arguments: Any) -> Effects:
            began = time.thread_time_ns()
            effects = call(*arguments)
            self.ns += time.thread_time_ns() - began
            return effects

        return timed


def detected(brokers: int, *, accused: bool) -> tuple[float, float]:
    """Return the medians: ms from a kill until the first and until the last broker has declared it dead."""
    first, last = [], []
    for seed in range(DEATHS):
        world = SwimWorld(seed, brokers)
        world.run(2_000 + 37 * seed)
        killed_ms = world.now_ms
        world.kill(1)
        if accused:
            world.accuse(2, 1)
        world.run(3_000)
        times = [at_ms - killed_ms for at_ms, _, _ in world.deaths(1)]
        assert len(times) == brokers - 1
        first.append(min(times))
        last.append(max(times))
    return statistics.median(first), statistics.median(last)


async def socket_cost() -> float:
    """Return CPU microseconds for a datagram, sent and received over loopback by one process."""
    settings, now_ms = SwimSettings(interval_ms=1000 // PINGS_PER_SECOND), Clock().now_ms
    one, two = (SwimService(broker, settings, b"secret", print, now_ms, random=Random(broker)) for broker in (1, 2))
    async with one, two:
        registered = {1: (11, one.address), 2: (12, two.address)}
        for service in (one, two):
            service.members_changed(registered)
        await asyncio.sleep(0.5)
        before, began = one.swim.channel.sent + two.swim.channel.sent, time.process_time()
        await asyncio.sleep(5)
        sent = one.swim.channel.sent + two.swim.channel.sent - before
        return (time.process_time() - began) * 1e6 / sent


def main() -> None:
    """Print the table."""
    print("| brokers | datagrams/s | bytes/s | CPU us/s | dead: first, last ms | with evidence: first, last ms |")
    print("|---|---|---|---|---|---|")
    for brokers in BROKERS:
        datagrams, size, cpu_us = steady(brokers)
        plain, accused = detected(brokers, accused=False), detected(brokers, accused=True)
        print(
            f"| {brokers} | {datagrams:.1f} | {size:,.0f} | {cpu_us:,.0f} | {plain[0]:.0f}, {plain[1]:.0f}"
            f" | {accused[0]:.0f}, {accused[1]:.0f} |"
        )
    print(f"with asyncio and sockets: {asyncio.run(socket_cost()):.0f} us of CPU a datagram")


if __name__ == "__main__":
    main()
