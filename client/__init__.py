"""Kafka's client for asyncio: Consumer, Producer, Admin, PartitionReader. Talks to Rota and to Apache Kafka alike.

    async with Producer(ProducerConfig(bootstrap_servers="127.0.0.1:9092")) as producer:
        await producer.send("topic1", b"hello", key=b"1")

Everything that is public is exported here; docs/CLIENT.md has recipes. A name is loaded when it is first used, so that
a program pays for what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rota.client.admin.admin import Admin
    from rota.client.admin.cluster_info import ClusterDescription
    from rota.client.admin.configs import (
        ConfigChange,
        ConfigEntry,
        ConfigOperation,
        ConfigResource,
        ConfigSource,
        ConfigSynonym,
        ConfigType,
        ResourceType,
    )
    from rota.client.admin.descriptions import GroupDescription, MemberDescription
    from rota.client.admin.groups import GroupListing
    from rota.client.admin.lag import PartitionLag
    from rota.client.admin.topics import CreatedTopic, NewPartitions, NewTopic, TopicDescription, TopicListing
    from rota.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
    from rota.client.consumer.consumer import Consumer
    from rota.client.consumer.reader import Fetched, FetchedRaw, PartitionReader
    from rota.client.errors import (
        AdminFailed,
        AssignmentFailed,
        AuthenticationFailed,
        BrokerError,
        BufferFull,
        CommitFailed,
        CommitOutcomeUnknown,
        ConfigError,
        CorruptRecords,
        DeliveryFailed,
        FencedInstance,
        IllegalArgument,
        IllegalUse,
        KafkaError,
        LogTruncated,
        NoOffset,
        OffsetOutOfRange,
        ProducerFenced,
        RebalancedError,
        RebalanceInProgress,
        RecordTooLarge,
        TimedOut,
        TlsFailed,
        TransactionAbortable,
        TransactionAborted,
        TransactionError,
        TransactionFailed,
        UnknownTopic,
        Unreachable,
        Unsupported,
    )
    from rota.client.group.assignors.base import Assignor, GroupAssignment, MemberSubscription, RebalanceProtocol
    from rota.client.group.assignors.cooperative_sticky import CooperativeStickyAssignor
    from rota.client.group.assignors.original import OriginalAssignor
    from rota.client.group.assignors.range import RangeAssignor
    from rota.client.group.assignors.roundrobin import RoundRobinAssignor
    from rota.client.group.assignors.sticky import StickyAssignor
    from rota.client.network.metadata import BrokerInfo
    from rota.client.offsets.list_offsets import EARLIEST, LATEST, MAX_TIMESTAMP
    from rota.client.producer.delivery import Delivery
    from rota.client.producer.producer import Producer
    from rota.client.read_process_write import read_process_write
    from rota.client.types import (
        ConsumerRecord,
        GroupMetadata,
        Headers,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        PartitionInfo,
        RecordMetadata,
        TimestampType,
        TopicPartition,
    )
    from rota.protocol.errors import ErrorCode
    from rota.transport.sasl.tokens import Token

_FROM: Final = {
    "rota.client.admin.admin": ("Admin",),
    "rota.client.admin.cluster_info": ("ClusterDescription",),
    "rota.client.admin.configs": (
        "ConfigChange",
        "ConfigEntry",
        "ConfigOperation",
        "ConfigResource",
        "ConfigSource",
        "ConfigSynonym",
        "ConfigType",
        "ResourceType",
    ),
    "rota.client.admin.descriptions": ("GroupDescription", "MemberDescription"),
    "rota.client.admin.groups": ("GroupListing",),
    "rota.client.admin.lag": ("PartitionLag",),
    "rota.client.admin.topics": (
        "CreatedTopic",
        "NewPartitions",
        "NewTopic",
        "TopicDescription",
        "TopicListing",
    ),
    "rota.client.config": ("AdminConfig", "ClientConfig", "ConsumerConfig", "ProducerConfig"),
    "rota.client.consumer.consumer": ("Consumer",),
    "rota.client.offsets.list_offsets": ("EARLIEST", "LATEST", "MAX_TIMESTAMP"),
    "rota.client.consumer.reader": ("Fetched", "FetchedRaw", "PartitionReader"),
    "rota.client.errors": (
        "AdminFailed",
        "AssignmentFailed",
        "AuthenticationFailed",
        "BrokerError",
        "BufferFull",
        "CommitFailed",
        "CommitOutcomeUnknown",
        "ConfigError",
        "CorruptRecords",
        "DeliveryFailed",
        "FencedInstance",
        "IllegalArgument",
        "IllegalUse",
        "KafkaError",
        "LogTruncated",
        "NoOffset",
        "OffsetOutOfRange",
        "ProducerFenced",
        "RebalanceInProgress",
        "RebalancedError",
        "RecordTooLarge",
        "TimedOut",
        "TlsFailed",
        "TransactionAbortable",
        "TransactionAborted",
        "TransactionError",
        "TransactionFailed",
        "UnknownTopic",
        "Unreachable",
        "Unsupported",
    ),
    "rota.client.group.assignors.base": ("Assignor", "GroupAssignment", "MemberSubscription", "RebalanceProtocol"),
    "rota.client.group.assignors.cooperative_sticky": ("CooperativeStickyAssignor",),
    "rota.client.group.assignors.original": ("OriginalAssignor",),
    "rota.client.group.assignors.range": ("RangeAssignor",),
    "rota.client.group.assignors.roundrobin": ("RoundRobinAssignor",),
    "rota.client.group.assignors.sticky": ("StickyAssignor",),
    "rota.client.network.metadata": ("BrokerInfo",),
    "rota.client.producer.delivery": ("Delivery",),
    "rota.client.producer.producer": ("Producer",),
    "rota.client.read_process_write": ("read_process_write",),
    "rota.client.types": (
        "ConsumerRecord",
        "GroupMetadata",
        "Headers",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
        "PartitionInfo",
        "RecordMetadata",
        "TimestampType",
        "TopicPartition",
    ),
    "rota.protocol.errors": ("ErrorCode",),
    "rota.transport.sasl.tokens": ("Token",),
}
_MODULES: Final = {name: module for module, names in _FROM.items() for name in names}

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Admin",
    "AdminConfig",
    "AdminFailed",
    "AssignmentFailed",
    "Assignor",
    "AuthenticationFailed",
    "BrokerError",
    "BrokerInfo",
    "BufferFull",
    "ClientConfig",
    "ClusterDescription",
    "CommitFailed",
    "CommitOutcomeUnknown",
    "ConfigChange",
    "ConfigEntry",
    "ConfigError",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "Consumer",
    "ConsumerConfig",
    "ConsumerRecord",
    "CooperativeStickyAssignor",
    "CorruptRecords",
    "CreatedTopic",
    "Delivery",
    "DeliveryFailed",
    "ErrorCode",
    "FencedInstance",
    "Fetched",
    "FetchedRaw",
    "GroupAssignment",
    "GroupDescription",
    "GroupListing",
    "GroupMetadata",
    "Headers",
    "IllegalArgument",
    "IllegalUse",
    "KafkaError",
    "LogTruncated",
    "MemberDescription",
    "MemberSubscription",
    "NewPartitions",
    "NewTopic",
    "NoOffset",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRange",
    "OriginalAssignor",
    "PartitionInfo",
    "PartitionLag",
    "PartitionReader",
    "Producer",
    "ProducerConfig",
    "ProducerFenced",
    "RangeAssignor",
    "RebalanceInProgress",
    "RebalanceProtocol",
    "RebalancedError",
    "RecordMetadata",
    "RecordTooLarge",
    "ResourceType",
    "RoundRobinAssignor",
    "StickyAssignor",
    "TimedOut",
    "TimestampType",
    "TlsFailed",
    "Token",
    "TopicDescription",
    "TopicListing",
    "TopicPartition",
    "TransactionAbortable",
    "TransactionAborted",
    "TransactionError",
    "TransactionFailed",
    "UnknownTopic",
    "Unreachable",
    "Unsupported",
    "read_process_write",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"rota.client has no {name}; it has {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return [*__all__]
