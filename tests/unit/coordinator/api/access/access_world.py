"""Two brokers without sockets, one with secrets and one without, and a request of every version of every API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.unit.coordinator.api.data_world import batch, fetch_request, produces
from tests.unit.coordinator.api.group_world import SUBSCRIPTION, GroupWorld

from rota.coordinator.api.node import Call
from rota.coordinator.api.routes import routes
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.acl import Entry, ResourcePattern
from rota.coordinator.security.acl_nodes import follow
from rota.coordinator.security.authorizer import Authorizer
from rota.coordinator.security.principal import Principal
from rota.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from rota.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from rota.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from rota.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from rota.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from rota.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from rota.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from rota.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from rota.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rota.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from rota.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from rota.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from rota.protocol.messages.delete_groups import DeleteGroupsRequest
from rota.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rota.protocol.messages.describe_acls import DescribeAclsRequest
from rota.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from rota.protocol.messages.describe_cluster import DescribeClusterRequest
from rota.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from rota.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from rota.protocol.messages.describe_groups import DescribeGroupsRequest
from rota.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from rota.protocol.messages.describe_producers import DescribeProducersRequest
from rota.protocol.messages.describe_producers import TopicRequest as ProducersTopic
from rota.protocol.messages.describe_quorum import DescribeQuorumRequest, QuorumPartition, QuorumTopic
from rota.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from rota.protocol.messages.describe_topic_partitions import TopicRequest as PartitionsTopic
from rota.protocol.messages.describe_transactions import DescribeTransactionsRequest
from rota.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from rota.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from rota.protocol.messages.end_txn import EndTxnRequest
from rota.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from rota.protocol.messages.fetch import FetchRequest, ReplicaState
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.incremental_alter_configs import (
    AlterableConfig as IncrementalConfig,
)
from rota.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from rota.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from rota.protocol.messages.init_producer_id import InitProducerIdRequest
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rota.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from rota.protocol.messages.list_config_resources import ListConfigResourcesRequest
from rota.protocol.messages.list_groups import ListGroupsRequest
from rota.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rota.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from rota.protocol.messages.list_transactions import ListTransactionsRequest
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from rota.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from rota.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from rota.protocol.messages.sync_group import SyncGroupRequest
from rota.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rota.protocol.messages.unregister_broker import UnregisterBrokerRequest
from rota.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from rota.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

ALICE = Principal("User", "alice")
HOST = "127.0.0.1"
TOPIC, GROUP, MISSING, TRANSACTION = "secret", "secret-group", "missing", "secret-transaction"
CONSUMERS = "secret-consumers"  # a group of the consumer protocol


class AccessWorld(GroupWorld):
    """A broker with an authorizer.

    With `secrets`: a topic with records, a group with offsets, a group of the consumer protocol, configs of a group.
    """

    def __init__(self, authorizer: Authorizer, *, secrets: bool = True, **properties: str) -> None:
        super().__init__({name.replace("_", "."): value for name, value in properties.items()})
        self.node.authorizer = authorizer
        follow(authorizer, self.node.topics)
        self.open()
        if secrets:
            self.topic(TOPIC, 2)
            self.append(b"payload", name=TOPIC)
            self.send_as_broker(8, next(commit(8)), 8)
            self.send_as_broker(10, FindCoordinatorRequest(key=TRANSACTION, key_type=1), 2)
            opening = InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=900_000)
            assert self.send_as_broker(22, opening, 4).producer_id == 0
            self.send_as_broker(24, next(add_partitions_to_txn(3)), 3)
            self.send_as_broker(68, next(consumer_group_heartbeat(1)), 1)
            bob = Entry.parse("ALLOW READ * User:bob")
            self.configs(ConfigKind.ACLS, "TOPIC:LITERAL:other", str(bob))
            self.configs(ConfigKind.GROUPS, GROUP, "consumer.session.timeout.ms", "46000")
            self.configs(ConfigKind.CLIENT_METRICS, "m", "interval.ms", "1000")
        self.routes = routes(checks_access=True)

    def configs(self, kind: ConfigKind, name: str, config: str, value: str = "") -> None:
        eager_tasks.run_eagerly(self.node.topics.configs.update(kind, name, lambda before: {**before, config: value}))

    def send_as_broker(self, key: int, request: Any, version: int) -> Any:
        """The response to a request that no guard checks."""
        return self.finish(routes()[key].serve(self.node, call(version), request))

    def send(self, key: int, request: Any, version: int) -> Any:
        """The response that Alice gets."""
        return self.finish(self.routes[key].serve(self.node, call(version), request))

    def finish(self, reply: Any) -> Any:
        for _ in range(6):
            self.turn()
        if isinstance(reply, DelayedReply):
            if not reply.answered:
                self.after(60_000)
                self.turn()
            return reply.result()
        return reply

    def state(self) -> list[tuple[object, ...]]:
        """All that a request could change: the nodes of the store, the logs, the groups."""
        node = self.node
        partitions = [self.partition(topic.name, state.index) for topic in node.topics for state in topic.partitions]
        logs = [(each.topic, each.index, each.log_start_offset, each.log.log_end_offset) for each in partitions]
        groups = [(group.group_id, group.describe(), dict(group.offsets)) for group in node.groups.machines()]
        return [*self._nodes("/"), *sorted(logs), *groups, *node.transactions.states()]

    def _nodes(self, path: str) -> Iterator[tuple[object, ...]]:
        store = self.node.topics.store
        yield path, eager_tasks.run_eagerly(store.get(path))
        for child in eager_tasks.run_eagerly(store.children(path)):
            yield from self._nodes(f"{path.rstrip('/')}/{child}")


def call(version: int) -> Call:
    return Call(version, "test", f"/{HOST}", HOST, 9092, principal=ALICE)


# ---- requests: (version) -> those that name a secret or ask for all


def produce(version: int, topic_id: int = 0) -> Iterator[Any]:
    yield produces([(TOPIC if version < 13 else topic_id.to_bytes(16, "big"), 0, batch(b"x"))])
    records = batch(b"x", is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    yield produces([(TOPIC, 0, records)], transactional_id="secret-transaction")


def fetch(version: int) -> Iterator[FetchRequest]:
    if version < 13:
        yield fetch_request((TOPIC, 0, 0))
        yield fetch_request((TOPIC, 0, 0), replica_id=1)
    if version == 15:
        yield fetch_request((bytes(15) + b"\2", 0, 0), replica_state=ReplicaState(replica_id=1, replica_epoch=1))


def list_offsets(version: int) -> Iterator[Any]:
    partitions = (ListOffsetsPartition(partition_index=0, timestamp=-1),)
    yield ListOffsetsRequest(topics=(ListOffsetsTopic(name=TOPIC, partitions=partitions),))


def metadata(version: int) -> Iterator[Any]:
    flags = {
        "include_cluster_authorized_operations": 8 <= version <= 10,
        "include_topic_authorized_operations": version >= 8,
    }
    yield MetadataRequest(topics=None if version else (), **flags)
    yield MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC), MetadataRequestTopic(name=MISSING)), **flags)


def commit(version: int) -> Iterator[Any]:
    partitions = (OffsetCommitRequestPartition(partition_index=0, committed_offset=1),)
    yield OffsetCommitRequest(group_id=GROUP, topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=partitions),))


def offset_fetch(version: int) -> Iterator[Any]:
    if version < 8:
        yield OffsetFetchRequest(group_id=GROUP, topics=(OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,)),))
        if version >= 2:
            yield OffsetFetchRequest(group_id=GROUP, topics=None)
        return
    for topics in ((OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,)),), None):
        yield OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=topics),))


def find_coordinator(version: int) -> Iterator[Any]:
    for key_type in (0, 1, 2)[: 3 if version >= 6 else 2 if version else 1]:
        yield FindCoordinatorRequest(key=GROUP, key_type=key_type, coordinator_keys=(GROUP,))


def join_group(version: int) -> Iterator[Any]:
    yield JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    )


def heartbeat(version: int) -> Iterator[Any]:
    yield HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m")


def consumer_group_heartbeat(version: int) -> Iterator[Any]:
    joining = {"member_epoch": 0, "rebalance_timeout_ms": 60_000, "topic_partitions": ()}
    yield ConsumerGroupHeartbeatRequest(group_id=CONSUMERS, member_id="m", subscribed_topic_names=(TOPIC,), **joining)
    yield ConsumerGroupHeartbeatRequest(group_id=CONSUMERS, member_id="m", member_epoch=2)


def consumer_group_describe(version: int) -> Iterator[Any]:
    yield ConsumerGroupDescribeRequest(group_ids=(CONSUMERS, GROUP), include_authorized_operations=True)


def leave_group(version: int) -> Iterator[Any]:
    yield LeaveGroupRequest(group_id=GROUP, member_id="m", members=(MemberIdentity(member_id="m"),))


def sync_group(version: int) -> Iterator[Any]:
    yield SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="m", protocol_type="consumer", protocol_name="a")


def describe_groups(version: int) -> Iterator[Any]:
    yield DescribeGroupsRequest(groups=(GROUP,), include_authorized_operations=version >= 3)


def list_groups(version: int) -> Iterator[Any]:
    yield ListGroupsRequest()


def create_topics(version: int) -> Iterator[Any]:
    for name in (TOPIC, MISSING):
        yield CreateTopicsRequest(topics=(CreatableTopic(name=name, num_partitions=1, replication_factor=1),))


def delete_topics(version: int) -> Iterator[Any]:
    yield DeleteTopicsRequest(
        topics=(DeleteTopicState(name=TOPIC, topic_id=bytes(16)),), topic_names=(TOPIC,), timeout_ms=1000
    )
    if version == 6:
        yield DeleteTopicsRequest(topics=(DeleteTopicState(name=None, topic_id=bytes(15) + b"\2"),), timeout_ms=1000)


def delete_records(version: int) -> Iterator[Any]:
    partitions = (DeleteRecordsPartition(partition_index=0, offset=-1),)
    yield DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=TOPIC, partitions=partitions),), timeout_ms=1000)


def init_producer_id(version: int) -> Iterator[Any]:
    for transactional_id in (None, "secret-transaction"):
        yield InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)


def offset_for_leader_epoch(version: int) -> Iterator[Any]:
    partitions = (OffsetForLeaderPartition(partition=0, leader_epoch=0),)
    yield OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=TOPIC, partitions=partitions),))


def describe_acls(version: int) -> Iterator[Any]:
    yield DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def create_acls(version: int) -> Iterator[Any]:
    acl = AclCreation(
        resource_type=2, resource_name="*", principal="User:alice", host="*", operation=2, permission_type=3
    )
    yield CreateAclsRequest(creations=(acl,))


def delete_acls(version: int) -> Iterator[Any]:
    everything = DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    yield DeleteAclsRequest(filters=(everything,))


CONFIGS = ((2, TOPIC, "retention.ms"), (4, "0", "log.retention.ms"), (8, "0", "root"), (16, "m", "interval.ms"))
GROUP_CONFIG = (32, GROUP, "consumer.session.timeout.ms")


def describe_configs(version: int) -> Iterator[Any]:
    for kind, name, _ in (*CONFIGS, GROUP_CONFIG):
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        yield DescribeConfigsRequest(resources=(resource,))


def alter_configs(version: int) -> Iterator[Any]:
    for kind, name, config in (*CONFIGS, GROUP_CONFIG):
        change = AlterableConfig(name=config, value="50000")
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(change,))
        yield AlterConfigsRequest(resources=(resource,))


def incremental_alter_configs(version: int) -> Iterator[Any]:
    for kind, name, config in (*CONFIGS, GROUP_CONFIG):
        value = "WARN" if kind == 8 else "50000"
        change = IncrementalConfig(name=config, config_operation=0, value=value)
        resource = IncrementalResource(resource_type=kind, resource_name=name, configs=(change,))
        yield IncrementalAlterConfigsRequest(resources=(resource,))


def alter_replica_log_dirs(version: int) -> Iterator[Any]:
    topic = AlterReplicaLogDirTopic(name=TOPIC, partitions=(0,))
    yield AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path="/x", topics=(topic,)),))


def describe_log_dirs(version: int) -> Iterator[Any]:
    for topics in (None, (DescribableLogDirTopic(topic=TOPIC, partitions=(0,)),)):
        yield DescribeLogDirsRequest(topics=topics)


def create_partitions(version: int) -> Iterator[Any]:
    yield CreatePartitionsRequest(topics=(CreatePartitionsTopic(name=TOPIC, count=5),), timeout_ms=1000)


def delete_groups(version: int) -> Iterator[Any]:
    yield DeleteGroupsRequest(groups_names=(GROUP,))


def write_txn_markers(version: int) -> Iterator[Any]:
    yield WriteTxnMarkersRequest(
        markers=(
            WritableTxnMarker(
                producer_id=7,
                producer_epoch=0,
                transaction_result=True,
                topics=(WritableTxnMarkerTopic(name=TOPIC, partition_indexes=(0,)),),
                coordinator_epoch=0,
            ),
        )
    )


def txn_offset_commit(version: int) -> Iterator[Any]:
    partitions = (TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1),)
    yield TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=GROUP,
        producer_id=7,
        producer_epoch=0,
        topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=partitions),),
    )


def add_partitions_to_txn(version: int) -> Iterator[Any]:
    topics = (AddPartitionsToTxnTopic(name=TOPIC, partitions=(0,)),)
    if version < 4:
        yield AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TRANSACTION,
            v3_and_below_producer_id=0,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
        return
    for verify_only in (True, False):
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=TRANSACTION, producer_id=0, producer_epoch=0, verify_only=verify_only, topics=topics
        )
        yield AddPartitionsToTxnRequest(transactions=(transaction,))


def add_offsets_to_txn(version: int) -> Iterator[Any]:
    yield AddOffsetsToTxnRequest(transactional_id=TRANSACTION, producer_id=0, producer_epoch=0, group_id=GROUP)


def end_txn(version: int) -> Iterator[Any]:
    yield EndTxnRequest(transactional_id=TRANSACTION, producer_id=0, producer_epoch=0, committed=False)


def describe_transactions(version: int) -> Iterator[Any]:
    yield DescribeTransactionsRequest(transactional_ids=(TRANSACTION, MISSING))


def list_transactions(version: int) -> Iterator[Any]:
    yield ListTransactionsRequest()


def create_delegation_token(version: int) -> Iterator[Any]:
    yield CreateDelegationTokenRequest()
    if version >= 3:
        yield CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob")


def renew_delegation_token(version: int) -> Iterator[Any]:
    yield RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=-1)


def expire_delegation_token(version: int) -> Iterator[Any]:
    yield ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=-1)


def describe_delegation_token(version: int) -> Iterator[Any]:
    yield DescribeDelegationTokenRequest()


def elect_leaders(version: int) -> Iterator[Any]:
    for topics in (None, (TopicPartitions(topic=TOPIC, partitions=(0,)),)):
        yield ElectLeadersRequest(topic_partitions=topics)


def alter_partition_reassignments(version: int) -> Iterator[Any]:
    partition = ReassignablePartition(partition_index=0, replicas=(0,))
    yield AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=TOPIC, partitions=(partition,)),))


def list_partition_reassignments(version: int) -> Iterator[Any]:
    yield ListPartitionReassignmentsRequest(topics=None)


def offset_delete(version: int) -> Iterator[Any]:
    partitions = (OffsetDeleteRequestPartition(partition_index=0),)
    yield OffsetDeleteRequest(group_id=GROUP, topics=(OffsetDeleteRequestTopic(name=TOPIC, partitions=partitions),))


def describe_client_quotas(version: int) -> Iterator[Any]:
    yield DescribeClientQuotasRequest()


def alter_client_quotas(version: int) -> Iterator[Any]:
    entity = (EntityData(entity_type="user", entity_name="mallory"),)
    entry = EntryData(entity=entity, ops=(OpData(key="producer_byte_rate", value=1.0),))
    yield AlterClientQuotasRequest(entries=(entry,))


def describe_user_scram_credentials(version: int) -> Iterator[Any]:
    yield DescribeUserScramCredentialsRequest(users=None)


def alter_user_scram_credentials(version: int) -> Iterator[Any]:
    upsertion = ScramCredentialUpsertion(
        name="mallory", mechanism=1, iterations=4096, salt=b"s" * 16, salted_password=b"p" * 32
    )
    yield AlterUserScramCredentialsRequest(upsertions=(upsertion,))


def describe_quorum(version: int) -> Iterator[Any]:
    topic = QuorumTopic(topic_name="__cluster_metadata", partitions=(QuorumPartition(partition_index=0),))
    yield DescribeQuorumRequest(topics=(topic,))


def update_features(version: int) -> Iterator[Any]:
    update = FeatureUpdateKey(feature="metadata.version", max_version_level=1)
    yield UpdateFeaturesRequest(feature_updates=(update,))


def unregister_broker(version: int) -> Iterator[Any]:
    yield UnregisterBrokerRequest(broker_id=9)


def describe_cluster(version: int) -> Iterator[Any]:
    yield DescribeClusterRequest(include_cluster_authorized_operations=True)


def describe_producers(version: int) -> Iterator[Any]:
    yield DescribeProducersRequest(topics=(ProducersTopic(name=TOPIC, partition_indexes=(0,)),))


def list_config_resources(version: int) -> Iterator[Any]:
    yield ListConfigResourcesRequest()


def describe_topic_partitions(version: int) -> Iterator[Any]:
    for topics in ((), (PartitionsTopic(name=TOPIC),)):
        yield DescribeTopicPartitionsRequest(topics=topics)


def granted(*grants: str) -> Authorizer:
    """An authorizer that allows Alice `PATTERN OPERATION` each."""
    authorizer = Authorizer()
    entries: dict[str, list[Entry]] = {}
    for grant in grants:
        pattern, _, operation = grant.rpartition(" ")
        entries.setdefault(pattern, []).append(Entry.parse(f"ALLOW {operation} * {ALICE}"))
    for pattern, allowed in entries.items():
        authorizer.replace(ResourcePattern.parse(pattern), allowed)
    return authorizer


offset_commit = commit
