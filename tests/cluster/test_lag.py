"""The lag of a group is the same whichever broker is asked: one that has the partitions, or one that has none."""

from __future__ import annotations

import asyncio

from tests.cluster.brokers import Brokers, until

from rota.client import Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from rota.coordinator.observe.lag_service import Lag
from rota.coordinator.web.broker_requests import BrokerRequests
from rota.coordinator.web.lag_source import LagSource

TIMES_MS = (1_700_000_000_000, 1_700_000_001_000)  # of the records, as their producer sends them


async def test_gl1_every_broker_returns_the_same_lag_of_a_group() -> None:
    async with Brokers(3) as brokers:
        await brokers.by_id[1].topics.create("t", assignment=[(0, (2,)), (1, (3,))])
        await until(lambda: all("t" in broker.topics for broker in brokers.by_id.values()), "t is known")
        async with Producer(ProducerConfig(bootstrap_servers=brokers.bootstrap())) as producer:
            for partition in (0, 1):
                for time_ms in TIMES_MS:
                    await producer.send("t", b"v", partition=partition, timestamp_ms=time_ms)
        async with Consumer(ConsumerConfig(bootstrap_servers=brokers.bootstrap(), group_id="g")) as consumer:
            consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
            await consumer.commit({TopicPartition("t", 0): 0, TopicPartition("t", 1): 1})
        for broker in brokers.by_id.values():
            requests = BrokerRequests(broker.node)
            lag = await Lag(LagSource(requests), now_ms=broker.now_ms, wall_ms=broker.wall_ms).get("g")
            requests.stop()
            await asyncio.sleep(0)  # the connections close
            first, second = lag.partitions
            assert (first.committed, first.end, first.records) == (0, 2, 2)
            assert (second.committed, second.end, second.records) == (1, 2, 1)
            assert [lag.time_ms - each.age_ms for each in lag.partitions] == list(TIMES_MS)
