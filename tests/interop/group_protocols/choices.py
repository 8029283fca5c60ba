"""From a die to a request of either protocol: right most of the time, wrong in the ways in which clients are.

All members of the consumer protocol name the assignor `range`, and choose their ids: the order of Kafka's hash tables
decides nothing then.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.interop.group_protocols.members import Group, Slot

from rota.protocol.consumer_protocol import Subscription, TopicPartition, encode_subscription
from rota.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rota.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from rota.protocol.messages.sync_group import SyncGroupRequest

Built = tuple[Any, int]
SESSION_MS, REBALANCE_MS = 600_000, 900_000


class Choices:
    """Requests about the topics of one run."""

    def __init__(self, topic_ids: dict[str, bytes]) -> None:
        self.topic_ids = topic_ids
        self.names = sorted(topic_ids)

    # ---- consumer protocol

    def consumer_heartbeat(self, die: Random, group: Group, slot: Slot, **more: Any) -> Built:
        fields: dict[str, Any] = {"member_epoch": slot.epoch, "instance_id": slot.instance, **more}
        return ConsumerGroupHeartbeatRequest(group_id=group.group_id, member_id=slot.member_id, **fields), 1

    def join_consumer(self, die: Random, group: Group, slot: Slot, *, regex: bool = False) -> Built:
        """Epoch 0 with all that a member says."""
        slot.names = () if regex else self.subscription(die)
        return self.consumer_heartbeat(
            die,
            group,
            slot,
            member_epoch=0,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=None if regex else slot.names,
            subscribed_topic_regex=group.regex if regex else None,
            server_assignor="range",
            topic_partitions=(),
        )

    def subscription(self, die: Random) -> tuple[str, ...]:
        """Mostly all topics; names of which one may not exist."""
        if die.random() < 0.5:
            return tuple(self.names)
        return tuple(die.sample([*self.names, "missing"], die.randint(1, 2)))

    def owned(self, slot: Slot) -> tuple[TopicPartitions, ...]:
        return tuple(
            TopicPartitions(topic_id=self.topic_ids[name], partitions=parts)
            for name, parts in sorted(slot.owned.items())
            if name in self.topic_ids
        )

    def plain(self, die: Random, group: Group, slot: Slot) -> Built:
        return self.consumer_heartbeat(die, group, slot)

    def acknowledge(self, die: Random, group: Group, slot: Slot) -> Built:
        return self.consumer_heartbeat(die, group, slot, topic_partitions=self.owned(slot))

    def full(self, die: Random, group: Group, slot: Slot) -> Built:
        names = slot.names or None
        return self.consumer_heartbeat(
            die,
            group,
            slot,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=names,
            topic_partitions=self.owned(slot),
        )

    def stale(self, die: Random, group: Group, slot: Slot) -> Built:
        owned = die.choice([None, self.owned(slot), ()])
        return self.consumer_heartbeat(
            die, group, slot, member_epoch=slot.epoch + die.choice([-2, -1, 1]), topic_partitions=owned
        )

    def subscribe(self, die: Random, group: Group, slot: Slot) -> Built:
        slot.names = self.subscription(die)
        owned = die.choice([None, self.owned(slot)])
        return self.consumer_heartbeat(die, group, slot, subscribed_topic_names=slot.names, topic_partitions=owned)

    def invalid(self, die: Random, group: Group, slot: Slot) -> Built:
        """What is refused whatever the group is."""
        whole = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": ("a",), "topic_partitions": ()}
        fields: dict[str, Any] = die.choice(
            [
                {"member_epoch": 0},
                {**whole, "member_epoch": 0, "rebalance_timeout_ms": -1},
                {**whole, "member_epoch": 0, "topic_partitions": None},
                {**whole, "member_epoch": 0, "subscribed_topic_names": None},
                {"member_epoch": -3},
                {"member_epoch": -2, "instance_id": None},
                {"instance_id": ""},
                {"rack_id": ""},
                {"server_assignor": "unknown"},
                {"subscribed_topic_regex": "("},
                {"subscribed_topic_regex": "a(?=b)", "topic_partitions": self.owned(slot)},
                {"instance_id": die.choice(["i1", "i3", "i9"])},
            ]
        )
        return self.consumer_heartbeat(die, group, slot, **fields)

    def leave_consumer(self, die: Random, group: Group, slot: Slot) -> Built:
        epoch = -2 if slot.instance is not None and die.random() < 0.5 else -1
        return self.consumer_heartbeat(die, group, slot, member_epoch=epoch)

    # ---- classic protocol

    def protocols(self, die: Random, slot: Slot) -> tuple[JoinGroupRequestProtocol, ...]:
        owned = tuple(TopicPartition(topic=name, partitions=parts) for name, parts in sorted(slot.owned.items()))
        subscription = Subscription(topics=slot.names, owned_partitions=owned)
        metadata = encode_subscription(subscription, die.choice([0, 1, 1, 2, 3]))
        return (JoinGroupRequestProtocol(name="range", metadata=metadata),)

    def join_classic(self, die: Random, group: Group, slot: Slot, **more: Any) -> Built:
        if not slot.names or die.random() < 0.15:
            slot.names = self.subscription(die)
        fields: dict[str, Any] = {
            "member_id": slot.member_id,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "group_instance_id": slot.instance,
            "protocol_type": "consumer",
            "protocols": self.protocols(die, slot),
        }
        version = die.randint(5, 9)
        return JoinGroupRequest(group_id=group.group_id, **{**fields, **more}), version

    def join_refused(self, die: Random, group: Group, slot: Slot) -> Built:
        """A JoinGroup that a consumer group does not take."""
        metadata = JoinGroupRequestProtocol(name="range", metadata=b"\0")
        other = JoinGroupRequestProtocol(name="lonely", metadata=encode_subscription(Subscription(topics=("a",))))
        more: dict[str, Any] = die.choice(
            [
                {"protocol_type": "connect"},
                {"protocols": (metadata,)},
                {"protocols": ()},
                {"protocols": (other,)},
                {"session_timeout_ms": 10},
                {"member_id": "nobody", "group_instance_id": "i1"},
                {"member_id": "nobody", "group_instance_id": "i9"},
                {"member_id": "", "group_instance_id": None},
            ]
        )
        return self.join_classic(die, group, slot, **more)

    def sync(self, die: Random, group: Group, slot: Slot) -> Built:
        generation = slot.epoch if die.random() < 0.85 else slot.epoch + die.choice([-1, 1])
        protocol = "range" if die.random() < 0.95 else "sticky"
        request = SyncGroupRequest(
            group_id=group.group_id,
            generation_id=generation,
            member_id=slot.member_id,
            group_instance_id=slot.instance,
            protocol_type="consumer",
            protocol_name=protocol,
        )
        return request, 5

    def heartbeat(self, die: Random, group: Group, slot: Slot) -> Built:
        generation = slot.epoch if die.random() < 0.85 else slot.epoch + die.choice([-1, 1])
        instance = slot.instance if die.random() < 0.9 else "i1"
        return (
            HeartbeatRequest(
                group_id=group.group_id,
                generation_id=generation,
                member_id=slot.member_id,
                group_instance_id=instance,
            ),
            4,
        )

    def leave_group(self, die: Random, group: Group, slot: Slot) -> Built:
        named = MemberIdentity(member_id=slot.member_id, group_instance_id=slot.instance)
        more = (MemberIdentity(member_id="nobody"),) if die.random() < 0.3 else ()
        return LeaveGroupRequest(group_id=group.group_id, members=(named, *more)), 5

    # ---- offsets

    def commit(self, die: Random, group: Group, slot: Slot) -> Built:
        epoch = slot.epoch if die.random() < 0.7 else slot.epoch + die.choice([-2, -1, 1])
        name = die.choice(self.names)
        partition = OffsetCommitRequestPartition(partition_index=die.randrange(4), committed_offset=die.randrange(9))
        request = OffsetCommitRequest(
            group_id=group.group_id,
            generation_id_or_member_epoch=epoch if die.random() < 0.9 else -1,
            member_id=slot.member_id if die.random() < 0.95 else "nobody",
            group_instance_id=slot.instance,
            topics=(OffsetCommitRequestTopic(name=name, partitions=(partition,)),),
        )
        return request, die.choice([8, 9])

    def fetch(self, die: Random, group: Group, slot: Slot) -> Built:
        topics = (OffsetFetchRequestTopics(name=self.names[0], partition_indexes=(0, 1, 2, 3)),)
        requested = OffsetFetchRequestGroup(
            group_id=group.group_id,
            member_id=slot.member_id if die.random() < 0.8 else None,
            member_epoch=slot.epoch if die.random() < 0.7 else die.choice([-1, slot.epoch + 1]),
            topics=topics,
        )
        return OffsetFetchRequest(groups=(requested,)), 9
