"""Three brokers on three ZooKeeper servers; the server that leads them is killed under load (L1, O1, S10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from tests.chaos.cluster_clients import (
    HEALED_SECONDS,
    PARTITIONS,
    TOPIC,
    Committer,
    ConfluentWriter,
    Writer,
    check,
    records,
    until,
)
from tests.chaos.test_cluster import PROPERTIES
from tests.soak import SOAK, soak_only
from tools.cluster import Cluster
from tools.zookeeper import ZooKeeperEnsemble, missing

pytestmark = pytest.mark.java
MORE_RECORDS = 200
READ, ALL = 1, 31  # ZooKeeper's permissions
USER = {"rota.zookeeper.digest": "rota:planted-secret", "zookeeper.set.acl": "true"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    reason = missing()
    if reason is not None:
        pytest.skip(f"no ZooKeeper: {reason}")
    ensemble = ZooKeeperEnsemble(tmp_path / "ensemble") if SOAK else None  # who may change nodes is not up to it
    with Cluster(tmp_path, properties={**PROPERTIES, **USER}, zookeeper=ensemble) as running:
        create(running, TOPIC)
        yield running


def create(cluster: Cluster, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic(name, PARTITIONS, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[name].result(HEALED_SECONDS)


def epochs(cluster: Cluster) -> list[int]:
    return [cluster.leader_epoch(TOPIC, index) for index in range(PARTITIONS)]


def until_more_is_written(writers: list[Writer]) -> None:
    before = [len(writer.acknowledged) for writer in writers]
    until(
        lambda: all(
            len(writer.acknowledged) > count + MORE_RECORDS for writer, count in zip(writers, before, strict=True)
        ),
        "no record is acknowledged any more",
    )


@soak_only
@pytest.mark.timeout(180)
def test_brokers_stay_when_the_leader_of_their_ensemble_is_killed(cluster: Cluster) -> None:
    """The two servers that are left serve the same sessions: no partition changes its leader, topics can be created."""
    assert isinstance(cluster.zookeeper, ZooKeeperEnsemble)
    writers: list[Writer] = [ConfluentWriter(cluster.bootstrap, partition) for partition in range(PARTITIONS)]
    committer = Committer(cluster.bootstrap, "g")
    try:
        until_more_is_written(writers)
        before = epochs(cluster)
        killed = cluster.zookeeper.leader()
        killed.kill()
        until_more_is_written(writers)
        cluster.zookeeper.leader()
        create(cluster, "later")
        assert epochs(cluster) == before, "a broker had to register again"
        killed.start()
        cluster.kill(cluster.leader(TOPIC))
        until_more_is_written(writers)
    finally:
        for writer in writers:
            writer.stop()
        committer.stop()
    for writer in writers:
        check(writer, list(records(cluster.bootstrap, writer.partition)), ["the leader of the ensemble"])
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0})
    (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=HEALED_SECONDS)
    consumer.close()
    assert committer.acknowledged <= committed.offset <= committer.sent


def nodes(client: KazooClient, path: str = "/") -> Iterator[str]:
    """The paths of all nodes but ZooKeeper's own."""
    for name in client.get_children(path):
        child = f"{path.rstrip('/')}/{name}"
        if child != "/zookeeper":
            yield child
            yield from nodes(client, child)


def test_only_the_user_of_the_brokers_may_change_nodes(cluster: Cluster) -> None:
    unauthenticated = KazooClient(cluster.zookeeper.address, auth_data=[("digest", "somebody:guessed")])
    unauthenticated.start(HEALED_SECONDS)
    try:
        paths = list(nodes(unauthenticated))
        assert {"/brokers/topics/t", "/controller", "/brokers/ids/1"} <= set(paths)
        for path in paths:
            rights = {
                (acl.id.scheme, acl.id.id.partition(":")[0], acl.perms) for acl in unauthenticated.get_acls(path)[0]
            }
            assert rights == {("digest", "rota", ALL), ("world", "anyone", READ)}, path
            with pytest.raises(NoAuthError):
                unauthenticated.set(path, b"")
    finally:
        unauthenticated.stop()
        unauthenticated.close()
