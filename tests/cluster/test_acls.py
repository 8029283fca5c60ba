"""ACLs on a cluster: a change through one broker is in force on every one; followers need CLUSTER_ACTION."""

from __future__ import annotations

import asyncio

from tests.cluster.brokers import Brokers, until
from tests.interop.acl_apis.scenario import ALL, CLIENT, CLUSTER, CLUSTER_NAME, DENY, TOPICS, creation
from tests.interop.differential.wire import Wire
from tests.unit.coordinator.api.data_world import batch, produces

from rota.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from rota.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

SECURED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "replica.fetch.wait.max.ms": "100",
}
CLUSTER_ACTION, DENIED = 9, 29


async def send_request(
    brokers: Brokers, broker_id: int, request: object, version: int, own_host: str | None = None
) -> object:
    def run() -> object:
        wire = Wire(brokers.bootstrap(broker_id), "acls", own_host)
        try:
            return wire.send_request(request, version)
        finally:
            wire.close()

    return await asyncio.to_thread(run)


async def create(brokers: Brokers, *acls: AclCreation) -> None:
    await send_request(brokers, 1, CreateAclsRequest(creations=acls), 3)


async def create_topic(brokers: Brokers, leader: int, follower: int) -> None:
    replicas = (CreatableReplicaAssignment(partition_index=0, broker_ids=(leader, follower)),)
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=replicas)
    await send_request(brokers, 1, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
    await until(lambda: all("t" in broker.topics for broker in brokers.by_id.values()))


async def test_a_change_is_in_force_on_every_broker() -> None:
    async with Brokers(3, SECURED) as brokers:
        await create_topic(brokers, 2, 3)
        await create(brokers, creation(TOPICS, "t", ALL, host="127.0.0.1"))
        await until(
            lambda: all(b.authorizer is not None and len(list(b.authorizer.acls)) == 1 for b in brokers.by_id.values())
        )
        request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),), allow_auto_topic_creation=False)
        for broker_id in brokers.by_id:
            for host, code in (("127.0.0.1", 0), (CLIENT, DENIED)):
                answer = await send_request(brokers, broker_id, request, 9, host)
                assert answer.topics[0].error_code == code  # type: ignore[attr-defined]
        await brokers.stop(3)
        restarted = await brokers.start(3)
        assert restarted.authorizer is not None
        assert len(list(restarted.authorizer.acls)) == 1


async def test_a_follower_without_cluster_action_copies_nothing() -> None:
    async with Brokers(2, SECURED) as brokers:
        await create(brokers, creation(CLUSTER, CLUSTER_NAME, CLUSTER_ACTION, host="127.0.0.1", permission=DENY))
        await create_topic(brokers, 1, 2)
        leader, follower = (brokers.by_id[each].partitions.get("t", 0) for each in (1, 2))
        assert leader is not None
        assert follower is not None
        await send_request(brokers, 1, produces([("t", 0, batch(b"secret"))], acks=1), 9)
        node = brokers.by_id[1].node
        await until(lambda: node.denials is not None and node.denials.total > 1, "refused fetches")
        assert leader.log.log_end_offset == 1
        assert follower.log.log_end_offset == 0
