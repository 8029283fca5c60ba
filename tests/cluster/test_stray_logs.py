"""A broker that was down while a topic was deleted keeps the topic's records on disk, under another name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from structlog.testing import capture_logs
from tests.cluster.brokers import Brokers, until

from rota.client import Admin, AdminConfig, NewTopic, Producer, ProducerConfig
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig


class DiskBrokers(Brokers):
    """The same with a folder for each broker, which outlives it."""

    def __init__(self, count: int, path: Path, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(count, {"auto.create.topics.enable": "false", **(properties or {})})
        self.path = path

    def folder(self, broker_id: int) -> Path:
        return self.path / f"broker-{broker_id}"

    async def start(self, broker_id: int) -> Broker:
        own = {"node.id": str(broker_id), "log.dirs": str(self.folder(broker_id))}
        config = BrokerConfig({**self.properties, **own})
        broker = self.by_id[broker_id] = Broker(config, open_store=self._opener(broker_id))
        await broker.start()
        return broker

    def logs(self, broker_id: int) -> set[str]:
        return {entry.name for entry in self.folder(broker_id).iterdir() if entry.is_dir()}


async def test_the_log_of_a_topic_that_was_deleted_meanwhile_is_set_aside_and_not_deleted(tmp_path: Path) -> None:
    async with DiskBrokers(2, tmp_path) as brokers:
        address = brokers.bootstrap(1)
        async with Admin(AdminConfig(bootstrap_servers=address)) as admin:
            await admin.create_topics([NewTopic(topic, 1, 2) for topic in ("deleted", "kept")])
            async with Producer(ProducerConfig(bootstrap_servers=address, acks="all")) as producer:
                for topic in ("deleted", "kept"):
                    await producer.send(topic, b"value")
            await brokers.stop(2)
            records = (brokers.folder(2) / "deleted-0" / f"{0:020}.log").read_bytes()
            assert b"value" in records
            await admin.delete_topics(["deleted"])
        await until(lambda: brokers.by_id[1].topics.get("deleted") is None, "the topic is deleted")
        with capture_logs() as lines:
            await brokers.start(2)
        assert brokers.by_id[2].partitions.get("kept", 0) is not None
        assert "kept-0" in brokers.logs(2)
        (stray,) = [name for name in brokers.logs(2) if name.startswith("deleted-0")]
        assert stray.endswith("-stray")
        assert (brokers.folder(2) / stray / f"{0:020}.log").read_bytes() == records
        (line,) = [line for line in lines if line["event"] == "Stray log set aside"]
        assert (line["log_level"], line["topic"], line["partition"], line["folder"]) == ("warning", "deleted", 0, stray)


async def test_a_standalone_broker_without_its_journal_renames_no_log(tmp_path: Path) -> None:
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}
    async with Broker(BrokerConfig(properties)) as broker:
        host, port = broker.address
        async with Producer(ProducerConfig(bootstrap_servers=f"{host}:{port}")) as producer:
            await producer.send("t", b"value")
    (tmp_path / "metadata.journal").unlink()
    async with Broker(BrokerConfig(properties)):
        assert (tmp_path / "t-0").is_dir()
