from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld, commit_request

from rota.coordinator.api.offset_commit import offset_commit
from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.runtime.routing import shard_of
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from rota.protocol.records.batch import headers

DECISIONS = ("at once", "by an event")


def decide(how: str, patch: pytest.MonkeyPatch) -> None:
    """Have commits decided at once, as far as that goes, or all of them by an event of the group."""
    if how == "by an event":
        patch.setattr(HostedGroup, "take_commit", lambda group, *request: False)


@pytest.fixture(autouse=True, params=DECISIONS)
def decided(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(request.param, monkeypatch)


def codes(answer: object) -> list[list[int]]:
    return [[partition.error_code for partition in topic.partitions] for topic in answer.topics]  # type: ignore[attr-defined]


def stored(world: GroupWorld, group_id: str = "g") -> dict[tuple[str, int], int]:
    shard = world.node.groups.ready(group_id)
    assert not isinstance(shard, ErrorCode)
    group = shard.machines.get(group_id)
    return {} if group is None else {key: value.offset for key, value in group.offsets.items()}


@pytest.mark.parametrize("version", range(2, 10))
def test_a_simple_consumer_commits(version: int) -> None:
    world = GroupWorld().open()
    assert codes(world.send_request(offset_commit, commit_request(7), version)) == [[0]]
    assert stored(world) == {("t", 0): 7}


def test_version_10_names_topics_by_id() -> None:
    world = GroupWorld().open()
    topic = world.node.topics.get("t")
    assert topic is not None
    partitions = (OffsetCommitRequestPartition(partition_index=1, committed_offset=7),)
    known = OffsetCommitRequestTopic(topic_id=topic.topic_id, partitions=partitions)
    unknown = OffsetCommitRequestTopic(topic_id=b"x" * 16, partitions=partitions)
    answer = world.send_request(offset_commit, commit_request(0, topics=(known, unknown)), 10)
    assert codes(answer) == [[ErrorCode.UNKNOWN_TOPIC_ID], [0]]
    assert [found.topic_id for found in answer.topics] == [b"x" * 16, topic.topic_id]
    assert stored(world) == {("t", 1): 7}


def test_the_answer_waits_until_the_offset_is_written() -> None:
    world = GroupWorld().open()
    reply = world.serve(offset_commit, commit_request(7), 8)
    assert not reply.answered
    assert not reply.mutes
    world.turn()
    assert codes(reply.value) == [[0]]


def test_an_unknown_topic_and_too_long_metadata_do_not_affect_other_partitions() -> None:
    world = GroupWorld().open()
    parts = (
        OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="x" * 4097),
        OffsetCommitRequestPartition(partition_index=1, committed_offset=2, committed_metadata="x" * 4096),
        OffsetCommitRequestPartition(partition_index=3, committed_offset=3),
    )
    topics = (
        OffsetCommitRequestTopic(name="t", partitions=parts),
        OffsetCommitRequestTopic(name="none", partitions=parts[:1]),
    )
    answer = world.send_request(offset_commit, commit_request(0, topics=topics), 8)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(answer) == [[missing, ErrorCode.OFFSET_METADATA_TOO_LARGE, 0], [missing]]
    assert stored(world) == {("t", 1): 2}


@pytest.mark.parametrize(("metadata", "code"), [("\U0001f600" * 2048, 0), ("\U0001f600" * 2049, 12), ("x" * 2049, 0)])
def test_o7_a_character_above_u_ffff_counts_twice(metadata: str, code: int) -> None:
    world = GroupWorld().open()
    parts = (OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=metadata),)
    topics = (OffsetCommitRequestTopic(name="t", partitions=parts),)
    assert codes(world.send_request(offset_commit, commit_request(0, topics=topics), 8)) == [[code]]
    assert stored(world) == ({} if code else {("t", 0): 1})


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_a_group_that_does_not_exist(version: int, code: ErrorCode) -> None:
    request = commit_request(7, generation_id_or_member_epoch=3, member_id="m")
    assert codes(GroupWorld().open().send_request(offset_commit, request, version)) == [[code]]


def test_a_group_with_members_takes_commits_of_its_members_only() -> None:
    world = GroupWorld().open()
    member = world.member()
    assert codes(world.send_request(offset_commit, commit_request(7), 8)) == [[ErrorCode.UNKNOWN_MEMBER_ID]]
    stale = commit_request(7, generation_id_or_member_epoch=0, member_id=member.member_id)
    assert codes(world.send_request(offset_commit, stale, 8)) == [[ErrorCode.ILLEGAL_GENERATION]]
    assert stored(world) == {}
    long = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="x" * 4097)
    too_long = commit_request(0, topics=(OffsetCommitRequestTopic(name="t", partitions=(long,)),))
    assert codes(world.send_request(offset_commit, too_long, 8)) == [[ErrorCode.UNKNOWN_MEMBER_ID]]
    accepted = commit_request(7, generation_id_or_member_epoch=1, member_id=member.member_id)
    assert codes(world.send_request(offset_commit, accepted, 8)) == [[0]]
    assert stored(world) == {("t", 0): 7}


def conversation() -> tuple[list[list[list[int]]], bytes, list[tuple[str, int | None]]]:
    """The codes of commits of all kinds, the bytes of the log, and the groups with the ends of their sessions."""
    world = GroupWorld().open()
    member = world.member()
    ours = {"member_id": member.member_id, "generation_id_or_member_epoch": 1}
    long = OffsetCommitRequestPartition(partition_index=1, committed_offset=1, committed_metadata="x" * 4097)
    partly = (OffsetCommitRequestTopic(name="t", partitions=(*commit_request(9).topics[0].partitions, long)),)
    requests = [
        commit_request(1, **ours),
        commit_request(2),
        commit_request(3, **{**ours, "generation_id_or_member_epoch": 0}),
        commit_request(4, **{**ours, "group_instance_id": "i"}),
        commit_request(5, topics=(), **ours),
        commit_request(6, topics=partly, **ours),
        commit_request(7, group_id="other"),
        commit_request(8, group_id="none", topics=()),
        commit_request(9, group_id="none", member_id="m", generation_id_or_member_epoch=0),
    ]
    replies = [world.serve(offset_commit, request, 8) for request in requests]
    world.turn()
    answers = [codes(reply.value if isinstance(reply, DelayedReply) else reply) for reply in replies]
    logs = [world.partition(CONSUMER_OFFSETS, index).log for index in range(4)]
    groups = [
        (group.group_id, group.members.by_id[member.member_id].deadline_ms if group.members else None)
        for group in world.node.groups.machines()
    ]
    return answers, b"".join(log.read(0, 1 << 20) for log in logs), groups


def test_g4_a_commit_that_is_decided_at_once_is_the_commit_of_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.coordinator.api.join_group.uuid4", lambda: UUID(int=1))
    outcomes = []
    for how in DECISIONS:
        with monkeypatch.context() as patch:
            decide(how, patch)
            outcomes.append(conversation())
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0][2]) == 2


def test_a_mistake_in_a_group_is_answered_and_stops_its_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GroupWorld().open()
    world.send_request(offset_commit, commit_request(6), 8)

    def mistaken(group: HostedGroup, records: object) -> None:
        raise RuntimeError("nobody wrote a test for this")

    with monkeypatch.context() as patch:
        patch.setattr(HostedGroup, "replay_offsets", mistaken)
        reply = world.serve(offset_commit, commit_request(7), 8)
    world.turn()
    assert codes(reply.value if isinstance(reply, DelayedReply) else reply) == [[ErrorCode.NOT_COORDINATOR]]
    assert stored(world) == {("t", 0): 6}


def test_before_the_offsets_topic_exists_this_is_not_the_coordinator() -> None:
    world = GroupWorld()
    world.topic("t")
    assert codes(world.send_request(offset_commit, commit_request(7), 8)) == [[ErrorCode.NOT_COORDINATOR]]


def test_a_retention_time_of_old_clients_is_kept_with_the_offset() -> None:
    world = GroupWorld().open()
    world.send_request(offset_commit, commit_request(7, retention_time_ms=1_000), 4)
    shard = world.node.groups.ready("g")
    assert not isinstance(shard, ErrorCode)
    (value,) = shard.machines["g"].offsets.values()
    assert value.expire_ms is not None
    assert 0 < value.expire_ms - world.now_ms <= 1_000


def test_a_retention_time_without_end_is_taken() -> None:
    world = GroupWorld().open()
    assert codes(world.send_request(offset_commit, commit_request(7, retention_time_ms=(1 << 63) - 1), 3)) == [[0]]


def large_topics(count: int, metadata: str) -> tuple[OffsetCommitRequestTopic, ...]:
    partitions = (
        OffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata=metadata)
        for index in range(count)
    )
    return (OffsetCommitRequestTopic(name="wide", partitions=tuple(partitions)),)


def test_co8_a_large_commit_is_one_batch() -> None:
    """It is in the log as a whole or not at all, whatever fails."""
    world = GroupWorld().open()
    world.topic("wide", 200)
    request = commit_request(0, topics=large_topics(200, "m" * 4_000))
    world.serve(offset_commit, commit_request(1), 8)
    reply = world.serve(offset_commit, request, 8)
    world.turn()
    assert codes(reply.value) == [[0] * 200]
    log = world.partition(CONSUMER_OFFSETS, shard_of("g", 4)).log
    assert [header.count for _, header in headers(log.read(0, 1 << 22))] == [1, 200]


def test_co8_commits_of_one_tick_are_not_cut_inside_a_commit() -> None:
    """The log has room for one of them in a batch; each is several topics, and their topics have many partitions."""
    world = GroupWorld().open()
    topics = []
    for name in ("wide", "broad"):
        world.topic(name, 80)
        topics.append(replace(large_topics(80, "m" * 3_000)[0], name=name))
    world.serve(offset_commit, commit_request(1), 8)
    replies = [world.serve(offset_commit, commit_request(0, topics=tuple(topics)), 8) for _ in range(2)]
    world.turn()
    assert [codes(reply.value) for reply in replies] == [[[0] * 80] * 2] * 2
    log = world.partition(CONSUMER_OFFSETS, shard_of("g", 4)).log
    assert [header.count for _, header in headers(log.read(0, 1 << 22))] == [1 + 160, 160]


def test_co8_offsets_that_do_not_fit_into_one_batch_are_refused_as_a_whole() -> None:
    world = GroupWorld().open()
    world.topic("wide", 300)
    answer = world.send_request(offset_commit, commit_request(0, topics=large_topics(300, "m" * 4_000)), 8)
    assert codes(answer) == [[ErrorCode.UNKNOWN_SERVER_ERROR] * 300]
    assert stored(world) == {}
    answer = world.send_request(offset_commit, commit_request(0, topics=large_topics(300, "m" * 3_000)), 8)
    assert codes(answer) == [[0] * 300]
