"""TxnOffsetCommit in each version, with right and wrong producers, members and partitions; what OffsetFetch shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.interop.kit import until
from tests.interop.transaction_apis.scenario_client import Line, Producer, ScenarioClient

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from rota.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUP = "g"
MEMBERS_SINCE, ADDS_SINCE = 3, 5


def commit_offsets(t: ScenarioClient) -> Iterator[Line]:
    """The conversation."""
    find = FindCoordinatorRequest(key=t.named(GROUP), key_type=0)
    until(lambda: t.wire.send_request(find, 2).error_code == ErrorCode.NONE, "a coordinator of groups")
    until(lambda: _fetch(t, "ready", stable=False)["answer"]["groups"][0]["error_code"] == 0, "its groups")
    for version in range(6):
        yield from _transaction(t, version)
    yield from _zombie(t)


def _transaction(t: ScenarioClient, version: int) -> Iterator[Line]:
    name = f"offsets{version}"
    for committed in (True, False):
        producer_id, epoch = t.new(name)
        mine = producer_id, epoch
        yield _commit(t, "unknown id", "unknown", mine, version)
        yield _commit(t, "wrong producer id", name, (producer_id + 500, epoch), version)
        yield _commit(t, "wrong epoch", name, (producer_id, epoch + 1), version)
        if version < ADDS_SINCE:
            yield _commit(t, "not added", name, mine, version)
            yield t.offsets("add", name, mine, group=t.named(GROUP))
        yield _commit(t, "unknown partition", name, mine, version, index=99)
        if version >= MEMBERS_SINCE:
            for member in ({"generation_id": 3}, {"member_id": "m"}, {"generation_id": 3, "member_id": "m"}):
                yield _commit(t, f"no member {member}", name, mine, version, **member)
        yield _commit(t, "commit", name, mine, version, offset=10 * version + 7 + committed)
        yield _commit(t, "epoch before", name, (producer_id, epoch - 1), version)
        yield _commit(t, "next epoch", name, (producer_id, epoch + 1), version)
        for stable in (True, False):
            yield _fetch(t, "open", stable=stable)
        yield t.end("end", name, mine, committed, 5 if version >= ADDS_SINCE else 4)
        for stable in (True, False):
            yield _fetch(t, "ended", stable=stable)
        yield _commit(t, "late", name, mine, version)
        yield t.describe("ended", name)


def _zombie(t: ScenarioClient) -> Iterator[Line]:
    for version in (4, 5):
        name = f"offsets of a zombie {version}"
        producer_id, epoch = t.new(name)
        mine = producer_id, epoch
        if version < ADDS_SINCE:
            yield t.offsets("add", name, mine, group=t.named(GROUP))
        yield _commit(t, "commit", name, mine, version, offset=99)
        yield t.init("another producer", name)
        t.settle(name)
        yield _fetch(t, "aborted", stable=True)
        yield _commit(t, "zombie", name, mine, version)
        yield _commit(t, "zombie with the next epoch", name, (producer_id, epoch + 1), version)
        yield t.init("another producer again", name)
        t.settle(name)
        yield _commit(t, "zombie", name, mine, version)


def _commit(
    t: ScenarioClient,
    step: str,
    name: str,
    producer: Producer,
    version: int,
    *,
    index: int = 0,
    offset: int = 5,
    **more: Any,
) -> Line:
    partition = TxnOffsetCommitRequestPartition(
        partition_index=index, committed_offset=offset, committed_metadata="note"
    )
    request = TxnOffsetCommitRequest(
        transactional_id=t.named(name),
        group_id=t.named(GROUP),
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=(TxnOffsetCommitRequestTopic(name=t.topic, partitions=(partition,)),),
        **more,
    )
    return t.line(step, request, version)


def _fetch(t: ScenarioClient, step: str, *, stable: bool) -> Line:
    topics = (OffsetFetchRequestTopics(name=t.topic, partition_indexes=(0,)),)
    group = OffsetFetchRequestGroup(group_id=t.named(GROUP), topics=topics)
    return t.line(f"{step}, stable {stable}", OffsetFetchRequest(groups=(group,), require_stable=stable), 9)
