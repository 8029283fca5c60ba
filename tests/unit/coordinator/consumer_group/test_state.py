"""What is derived from the durable state."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.script import Script, TopicsInMemory, id_of
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.consumer_group import records
from rota.coordinator.consumer_group.member import Member
from rota.coordinator.consumer_group.state import FIRST_EPOCH, NO_EPOCH, ConsumerGroup, ConsumerGroupState
from rota.coordinator.consumer_group.topics import NO_HASH


def test_a_new_group_is_empty_in_epoch_1() -> None:
    group = ConsumerGroup("g")
    assert (group.epoch, group.target_epoch, group.metadata_hash) == (FIRST_EPOCH, FIRST_EPOCH, NO_HASH)
    assert group.state is ConsumerGroupState.EMPTY


def test_the_state_follows_from_epochs_and_members() -> None:
    script = two_members()
    assert script.group.state is ConsumerGroupState.STABLE
    script.group.replay(records.epoch("g", 4, 0))
    assert script.group.state is ConsumerGroupState.ASSIGNING
    script.group.replay(records.target_epoch("g", 4, 0))
    assert script.group.state is ConsumerGroupState.RECONCILING


def test_an_old_record_of_a_compacted_log_does_not_take_a_partition_from_its_new_owner() -> None:
    """The log of a, b, a is read as b, a: what a no longer has was b's since."""
    group, topic = ConsumerGroup("g"), id_of("t")
    group.replay(records.current("g", Member(member_id="a", epoch=1, assigned={topic: {0: 1}})))
    group.replay(records.current("g", Member(member_id="b", epoch=2, assigned={topic: {0: 2}})))
    group.replay(records.current("g", Member(member_id="a", epoch=2)))
    assert group.owners == {(topic, 0): "b"}


def test_tombstones_remove_what_their_records_made() -> None:
    script = two_members()
    script.group.replay(records.removed_target_epoch("g"))
    assert script.group.target_epoch == NO_EPOCH
    for tombstone in records.removed_member("g", "a"):
        script.group.replay(tombstone)
    assert set(script.group.members) == set(script.group.targets) == {"b"}
    assert script.group.names == {"t": 1}


def test_subscriptions_are_counted_by_name_and_by_expression() -> None:
    script = Script(TopicsInMemory(t=1, u=1, foo=1))
    script.join("a", "t", "u")
    script.join("b", "t")
    assert not script.group.is_homogeneous
    assert script.group.subscribed_topics() == {"t", "u"}
    script.heartbeat("b", 3, names=("t", "u"))
    assert script.group.is_homogeneous
    script.heartbeat("b", 4, names=(), regex="f.*")
    script.advance(0)
    assert script.group.is_subscribed_to("foo")
    assert not script.group.is_subscribed_to("bar")


def test_a_record_of_kafka_4_0_is_removed_with_the_next_heartbeat() -> None:
    script = two_members()
    key = records.removed_partition_metadata("g").key
    script.group.replay(records.ConsumerRecord(key, object()))
    before = len(script.log)
    script.heartbeat("a", 3)
    assert script.records(before) == [("PartitionMetadataKey", None)]
    assert not script.group.has_partition_metadata
