"""How the work of controller, metadata and failure detector grows with brokers and partitions: no sockets, no disk.

    python -m benchmarks.growth                    print the tables, draw docs/growth.svg (needs rota[report])
    python -m benchmarks.growth --partitions 1000  a short run: at most 1,000 partitions, no picture
    python -m benchmarks.growth --zookeeper        the same work of three brokers over a real ZooKeeper, in elapsed time

Partitions have three replicas on round-robin brokers, 100 of them a topic. The store is a tree in memory, so that
what is measured is the work of the brokers: `idle` is a look of the controller at all partitions when nothing has to be
done, `decide` and `write` what it does when a broker is dead, `load` the image of a broker that starts, and `follow`
what each other broker reads after the death. Times are processor time, the best of three rounds; 100,000 partitions run
once. With `--zookeeper` there are up to 10,000 partitions, and a server on this machine that waits for its disk.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tools.zookeeper import ZooKeeperServer

from benchmarks.swim import steady
from rota.coordinator.controller.decisions import Decision, decide_each, decide_partition, find_partitions_to_change
from rota.coordinator.controller.election import LiveBrokers
from rota.coordinator.controller_service.state_writer import StateWriter
from rota.coordinator.metadata import placement, topic_nodes, znodes
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.image_updater import ImageUpdater
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import Check, Create, Delete, WatchEvent
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.metadata.tree_session import TreeSession
from rota.coordinator.metadata.zookeeper import ZooKeeperStore

BROKERS: Final = (3, 10, 50)
PARTITIONS: Final = (1_000, 10_000, 100_000)
PER_TOPIC: Final = 100
REPLICAS: Final = 3
MIN_ISR: Final = 2
ROUNDS: Final = 3
ROUNDS_PARTITIONS_MAX: Final = 30_000  # more partitions are measured once
DEAD: Final = 1
OVER_ZOOKEEPER_MAX: Final = 10_000  # partitions
PICTURE: Final = Path(__file__).parents[1] / "docs" / "growth.svg"
WORK: Final = ("idle", "decide", "write", "load", "follow")


@dataclass(frozen=True, slots=True)
class Growth:
    """Processor time in ms; `elections` are the leaderships of the dead broker, `changes` all states that change."""

    brokers: int
    partitions: int
    elections: int
    changes: int
    idle: float
    decide: float
    write: float
    load: float
    follow: float


class Store(TreeSession):
    """A session whose watches are collected in place of being called."""

    def __init__(self, shared: SharedTree) -> None:
        super().__init__(shared)
        self.events: list[WatchEvent] = []
        self.is_collecting = False

    def _deliver(self, watch: Any, event: WatchEvent) -> None:
        if self.is_collecting:
            self.events.append(event)
        else:
            super()._deliver(watch, event)


class Member:
    """The image of one broker, which follows the store."""

    def __init__(self, store: Store | ZooKeeperStore, broker_id: int) -> None:
        ids = itertools.count(1)
        self.store, self.updater = store, ImageUpdater()
        self.topics = Topics(
            self.store,
            broker_id=broker_id,
            fresh_uuid=lambda: next(ids).to_bytes(16, "big"),
            watch=self.updater.changed,
        )
        self.topics.min_insync_replicas = lambda _: MIN_ISR

    async def load(self) -> float:
        began = time.process_time()
        await self.updater.follow(self.topics)
        await self.updater.wait_until_applied()
        return time.process_time() - began

    async def follow(self) -> float:
        """Read what the collected watches have reported."""
        assert isinstance(self.store, Store)
        events, self.store.events, self.store.is_collecting = self.store.events, [], False
        began = time.process_time()
        for event in events:
            self.updater.changed(event)
        await self.updater.wait_until_applied()
        return time.process_time() - began


async def measure(brokers: int, partitions: int) -> Growth:
    """One round: a cluster is created, a broker starts, another one dies."""
    shared = SharedTree()
    await _create(Member(Store(shared), DEAD), brokers, partitions)
    stores = Store(shared), Store(shared)
    controller, other = Member(stores[0], 2), Member(stores[1], 3)
    await controller.load()
    load_s = await other.load()
    for store in stores:
        store.is_collecting = True
    live = LiveBrokers({broker: entry.epoch for broker, entry in controller.topics.brokers.items()})
    idle_s, unneeded = _decide(controller.topics, live)
    assert not unneeded
    survivors = LiveBrokers({broker: epoch for broker, epoch in live.epochs.items() if broker != DEAD})
    decide_s, decisions = _decide(controller.topics, survivors)
    began = time.process_time()
    written = await _write(controller.topics, survivors, decisions)
    write_s = time.process_time() - began
    assert written == len(decisions) > 0
    follow_s = await other.follow()
    assert all(state.leader != DEAD for topic in other.topics for state in topic.partitions)
    times = (idle_s, decide_s, write_s, load_s, follow_s)
    elections = sum(decision.is_election for decision in decisions)
    for member in (controller, other):
        await member.updater.close()
    await shared.close()
    return Growth(brokers, partitions, elections, len(decisions), *(seconds * 1000 for seconds in times))


async def _create(first: Member, brokers: int, partitions: int) -> None:
    await first.topics.load()  # creates the store's first nodes
    store, epochs = first.store, {}
    for broker in range(1, brokers + 1):
        node = znodes.json_bytes({"version": 5, "endpoints": [f"PLAINTEXT://10.0.0.{broker}:9092"], "rack": None})
        await store.create(znodes.broker_path(broker), node, ephemeral=True)
        _, stat = await store.get(znodes.broker_path(broker))
        epochs[broker] = BrokerRegistration(broker_id=broker, epoch=stat.created)
    await store.commit([Create(znodes.CONTROLLER_EPOCH, b"1"), Create(znodes.CONTROLLER, znodes.controller_node(2, 0))])
    for index in range(partitions // PER_TOPIC):
        name = f"topic-{index}"
        states = placement.assign_round_robin(epochs, 0, PER_TOPIC, REPLICAS, start=placement.start_of(name))
        assert isinstance(states, tuple)
        topic = Topic(name=name, topic_id=(index + 1).to_bytes(16, "big"), partitions=states)
        for commit in topic_nodes.creation(topic):
            await store.commit(commit)


def _allows_unclean(_: Topic) -> bool:
    return False


def _min_isr(_: Topic) -> int:
    return MIN_ISR


def _decide(topics: Topics, live: LiveBrokers) -> tuple[float, list[Decision]]:
    began = time.process_time()
    decisions = decide_each(find_partitions_to_change(topics, live), live, _allows_unclean, _min_isr)
    return time.process_time() - began, decisions


async def _write(topics: Topics, live: LiveBrokers, decisions: Sequence[Decision]) -> int:
    def again(topic: Topic, state: PartitionState) -> PartitionState | None:
        return decide_partition(topic, state, live, _allows_unclean, _min_isr)

    deletes = [Delete(znodes.broker_path(DEAD))]
    return await StateWriter(topics).delete_and_write(deletes, decisions, again, Check(znodes.CONTROLLER_EPOCH, 0))


async def measure_over_zookeeper(address: str, partitions: int) -> dict[str, float]:
    """The same work of three brokers, in elapsed seconds. `address` has a chroot of its own."""
    members = [Member(await ZooKeeperStore(address).open(), broker) for broker in range(1, 4)]
    first, controller, other = members
    began = time.perf_counter()
    await _create(first, 3, partitions)
    created = time.perf_counter()
    await controller.load()
    loading = time.perf_counter()
    load_cpu_s = await other.load()
    loaded = time.perf_counter()
    live = LiveBrokers({broker: entry.epoch for broker, entry in controller.topics.brokers.items() if broker != DEAD})
    _, decisions = _decide(controller.topics, live)
    assert await _write(controller.topics, live, decisions) == len(decisions) > 0
    written = time.perf_counter()
    await other.store.exists("/")  # the watches that fired before come before its answer
    await other.updater.wait_until_applied()
    followed = time.perf_counter()
    assert all(state.leader != DEAD for topic in other.topics for state in topic.partitions)
    for member in members:
        await member.updater.close()
        await member.store.close()
    return {
        "create": created - began,
        "load": loaded - loading,
        "load, processor": load_cpu_s,
        "decide and write": written - loaded,
        "follow after that": followed - written,
    }


def over_zookeeper(partitions_max: int) -> None:
    """Print a table of `measure_over_zookeeper`."""
    sizes = [partitions for partitions in PARTITIONS if partitions <= partitions_max]
    with tempfile.TemporaryDirectory() as folder, ZooKeeperServer(Path(folder), sync=True) as server:
        rows = [asyncio.run(measure_over_zookeeper(f"{server.address}/{size}", size)) for size in sizes]
    print("| partitions |" + "".join(f" {name} s |" for name in rows[0]))
    print("|---|" + "---|" * len(rows[0]))
    for size, row in zip(sizes, rows, strict=True):
        print(f"| {size:,} |" + "".join(f" {seconds:.2f} |" for seconds in row.values()))


def best(brokers: int, partitions: int) -> Growth:
    """The least of several rounds, of each kind of work."""
    rounds = []
    for _ in range(ROUNDS if partitions <= ROUNDS_PARTITIONS_MAX else 1):
        gc.collect()
        rounds.append(asyncio.run(measure(brokers, partitions)))
    least = {name: min(getattr(each, name) for each in rounds) for name in WORK}
    return Growth(**{**asdict(rounds[0]), **least})


def print_tables(rows: Sequence[Growth], detectors: Sequence[tuple[int, float, float]]) -> None:
    """As in benchmarks/README.md."""
    print("| brokers | partitions | elections | changes | idle ms | decide ms | write ms | load ms | follow ms |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        times = " | ".join(f"{getattr(row, name):,.1f}" for name in WORK)
        print(f"| {row.brokers} | {row.partitions:,} | {row.elections:,} | {row.changes:,} | {times} |")
    print("\n| brokers | bytes/s of a broker | CPU us/s of a broker |\n|---|---|---|")
    for brokers, size, cpu_us in detectors:
        print(f"| {brokers} | {size:,.0f} | {cpu_us:,.0f} |")


def picture(rows: Sequence[Growth], detectors: Sequence[tuple[int, float, float]]) -> str:
    """The tables as SVG, drawn by Vega-Lite."""
    import vl_convert

    data = [{**asdict(row), "dead": row.decide + row.write} for row in rows]
    titles = {
        "idle": "Controller: a look at all partitions",
        "dead": "Controller: a broker is dead",
        "load": "Image: a broker starts",
        "follow": "Image: a broker is dead",
    }
    charts = [_chart(name, title) for name, title in titles.items()]
    detector = {
        "title": "Failure detector, each broker",
        "data": {"values": [{"brokers": brokers, "cpu": cpu_us / 1000} for brokers, _, cpu_us in detectors]},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "brokers", "type": "quantitative", "title": "brokers"},
            "y": {"field": "cpu", "type": "quantitative", "title": "CPU ms of a second"},
        },
    }
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "data": {"values": data},
        "columns": 3,
        "concat": [*charts, detector],
    }
    return str(vl_convert.vegalite_to_svg(spec))


def _chart(field: str, title: str) -> dict[str, Any]:
    return {
        "title": title,
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "partitions", "type": "quantitative", "scale": {"type": "log"}, "axis": {"format": "~s"}},
            "y": {"field": field, "type": "quantitative", "scale": {"type": "log"}, "title": "CPU ms"},
            "color": {"field": "brokers", "type": "ordinal"},
        },
    }


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--partitions", type=int, help="at most so many; no picture is drawn")
    parser.add_argument("--zookeeper", action="store_true", help="three brokers over a real ZooKeeper, elapsed time")
    arguments = parser.parse_args()
    limit = arguments.partitions
    if arguments.zookeeper:
        over_zookeeper(limit or OVER_ZOOKEEPER_MAX)
        return
    sizes = [partitions for partitions in PARTITIONS if limit is None or partitions <= limit]
    rows = [best(brokers, partitions) for brokers in BROKERS for partitions in sizes]
    detectors = [(brokers, size, cpu_us) for brokers in BROKERS for _, size, cpu_us in (steady(brokers),)]
    print_tables(rows, detectors)
    if limit is None:
        PICTURE.write_text(picture(rows, detectors))


if __name__ == "__main__":
    main()
