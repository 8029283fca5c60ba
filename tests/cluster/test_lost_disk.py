"""A broker that comes back without its logs, when nobody was left to take it out of its ISRs."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.cluster.brokers import until
from tests.cluster.test_stray_logs import DiskBrokers
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.client import Admin, AdminConfig, NewTopic, Producer, ProducerConfig
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.metadata.registration import AlreadyRegistered
from rota.coordinator.storage import Disk

SLOW_TO_SUSPECT = {"rota.swim.suspicion.timeout.ms": "60000"}


async def topic_with_a_record(
    brokers: DiskBrokers, replicas: Sequence[int] = (1, 2), configs: Mapping[str, str] | None = None
) -> None:
    address = brokers.bootstrap(1)
    async with Admin(AdminConfig(bootstrap_servers=address)) as admin:
        await admin.create_topics([NewTopic("t", replica_assignments=[replicas], configs=configs or {})])
    async with Producer(ProducerConfig(bootstrap_servers=address, acks="all")) as producer:
        await producer.send("t", b"value")
    assert isr(brokers, 1) == set(replicas)


def isr(brokers: DiskBrokers, broker_id: int) -> set[int]:
    state = brokers.by_id[broker_id].topics.partition("t", 0)
    assert state is not None
    return set(state.isr)


def elr(brokers: DiskBrokers, broker_id: int) -> set[int]:
    state = brokers.by_id[broker_id].topics.partition("t", 0)
    assert state is not None
    return set(state.elr)


async def test_a_broker_with_a_new_disk_is_not_elected_with_an_empty_log(tmp_path: Path) -> None:
    """CM5. Both die at the same time; the one whose disk was replaced starts first."""
    async with DiskBrokers(2, tmp_path) as brokers:
        await topic_with_a_record(brokers)
        dead = [brokers.by_id.pop(broker_id) for broker_id in (1, 2)]
        await asyncio.gather(*(broker.abandon() for broker in dead))
        for session in brokers.sessions.values():
            await session.expire()
        shutil.rmtree(brokers.folder(2))
        await brokers.start(2)
        assert isr(brokers, 2) == {1}
        await brokers.start(1)
        await until(lambda: isr(brokers, 1) == {1, 2}, "the new disk has a copy")
        copies = [brokers.by_id[broker_id].partitions.get("t", 0) for broker_id in (1, 2)]
        assert [copy.log.log_end_offset for copy in copies if copy is not None] == [1, 1]


async def test_a_broker_that_was_given_the_id_of_a_live_one_takes_no_isr_from_it(tmp_path: Path) -> None:
    """CM5, RG1."""
    async with DiskBrokers(2, tmp_path) as brokers:
        brokers.properties["zookeeper.session.timeout.ms"] = "500"
        await topic_with_a_record(brokers)
        live, session = brokers.by_id[2], brokers.sessions[2]
        brokers.path = tmp_path / "another machine"
        with pytest.raises(AlreadyRegistered):
            await brokers.start(2)
        brokers.by_id[2], brokers.sessions[2] = live, session
        assert isr(brokers, 1) == {1, 2}


@pytest.mark.parametrize("was_clean", [True, False])
async def test_a_broker_with_an_older_disk_is_not_elected_with_what_that_lacks(
    tmp_path: Path, *, was_clean: bool
) -> None:
    """CM5. Both die; one comes back first, with the disk from before its last start, as from a backup."""
    async with DiskBrokers(2, tmp_path) as brokers:
        await topic_with_a_record(brokers)
        await end(brokers, 2, was_clean=was_clean)
        shutil.copytree(brokers.folder(2), tmp_path / "backup")
        await brokers.start(2)
        await until(lambda: isr(brokers, 1) == {1, 2}, "broker 2 is back")
        async with Producer(ProducerConfig(bootstrap_servers=brokers.bootstrap(1), acks="all")) as producer:
            await producer.send("t", b"another")
        await asyncio.gather(*(end(brokers, broker_id, was_clean=False) for broker_id in (1, 2)))
        shutil.rmtree(brokers.folder(2))
        (tmp_path / "backup").rename(brokers.folder(2))
        await brokers.start(2)
        assert isr(brokers, 2) == {1}
        await brokers.start(1)
        await until(lambda: isr(brokers, 1) == {1, 2}, "the older disk has a copy")
        copies = [brokers.by_id[broker_id].partitions.get("t", 0) for broker_id in (1, 2)]
        assert [copy.log.log_end_offset for copy in copies if copy is not None] == [2, 2]


async def end(brokers: DiskBrokers, broker_id: int, *, was_clean: bool) -> None:
    if was_clean:
        await brokers.stop(broker_id)
    else:
        await brokers.by_id.pop(broker_id).abandon()
        await brokers.sessions[broker_id].expire()


class FailingBrokers(DiskBrokers):
    """`files` are the disk of broker 1."""

    files: FaultyFiles

    async def start(self, broker_id: int) -> Broker:
        own = {"node.id": str(broker_id), "log.dirs": str(self.folder(broker_id))}
        broker = self.by_id[broker_id] = Broker(
            BrokerConfig({**self.properties, **own}), open_store=self._opener(broker_id)
        )
        if broker_id == 1:
            assert isinstance(broker.storage, Disk)
            broker.storage._system = self.files = FaultyFiles()
        await broker.start()
        return broker


async def test_a_broker_whose_log_had_failed_when_it_ended_is_not_elected_with_what_is_left(tmp_path: Path) -> None:
    """ELR2. Whoever has the record is dead, and in the ELR; nobody knows what the log has lost."""
    async with FailingBrokers(2, tmp_path, SLOW_TO_SUSPECT) as brokers:
        await topic_with_a_record(brokers, configs={"min.insync.replicas": "2"})
        other, failing = brokers.by_id[2], brokers.by_id[1]
        await brokers.crash(2)
        other.storage.abandon()
        await brokers.sessions[2].expire()
        await until(lambda: (isr(brokers, 1), elr(brokers, 1)) == ({1}, {2}), "broker 1 is alone in the ISR")
        brokers.files.fail("open", "/t-0/")
        replica = failing.partitions.get("t", 0)
        assert replica is not None
        replica.fail("the disk is broken")
        failing.partitions.reopen_failed(failing.now_ms())
        await failing.partitions.stop_reopening()
        await brokers.by_id.pop(1).abandon()
        await brokers.sessions[1].expire()
        (brokers.folder(1) / "t-0" / f"{0:020}.log").write_bytes(b"")
        await brokers.start(1)
        assert (isr(brokers, 1), elr(brokers, 1)) == ({2}, set())
        await brokers.start(2)
        await until(lambda: isr(brokers, 1) == {1, 2}, "both are in the ISR again")
        copies = [brokers.by_id[broker_id].partitions.get("t", 0) for broker_id in (1, 2)]
        assert [copy.log.log_end_offset for copy in copies if copy is not None] == [1, 1]


async def test_a_broker_that_left_the_isr_with_every_record_leads_when_the_last_member_has_lost_them(
    tmp_path: Path,
) -> None:
    """ELR1. Broker 2 loses its power; the session of broker 3 expires before anybody knows that."""
    async with DiskBrokers(3, tmp_path, SLOW_TO_SUSPECT) as brokers:
        await topic_with_a_record(brokers, replicas=[2, 3], configs={"min.insync.replicas": "2"})
        lost = brokers.by_id[2]
        await brokers.crash(2)
        lost.storage.abandon()
        await brokers.sessions[3].expire()
        await until(lambda: isr(brokers, 1) == {2}, "the controller leaves the dead broker alone in the ISR")
        assert elr(brokers, 1) == {3}
        await brokers.sessions[2].expire()
        shutil.rmtree(brokers.folder(2))
        await brokers.start(2)
        await until(lambda: isr(brokers, 1) == {2, 3}, "both are in the ISR again")
        assert elr(brokers, 1) == set()
        copies = [brokers.by_id[broker_id].partitions.get("t", 0) for broker_id in (2, 3)]
        assert [copy.log.log_end_offset for copy in copies if copy is not None] == [1, 1]
