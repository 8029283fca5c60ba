"""OffsetFetch responses of old and new versions."""

from __future__ import annotations

from rota.client.offsets.offset_fetch import _fetch_codes, _offsets
from rota.client.types import OffsetAndMetadata, TopicPartition
from rota.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_an_answer_reads_the_same_in_both_shapes() -> None:
    old = OffsetFetchResponse(
        topics=(
            OffsetFetchResponseTopic(
                name="orders",
                partitions=(
                    OffsetFetchResponsePartition(partition_index=0, committed_offset=5, metadata="note"),
                    OffsetFetchResponsePartition(partition_index=1, committed_offset=-1, error_code=88),
                ),
            ),
        ),
        error_code=14,
    )
    new = OffsetFetchResponse(
        groups=(
            OffsetFetchResponseGroup(
                group_id="tellers",
                topics=(
                    OffsetFetchResponseTopics(
                        name="orders",
                        partitions=(
                            OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata="note"),
                            OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1, error_code=88),
                        ),
                    ),
                ),
                error_code=14,
            ),
        )
    )
    assert _offsets(old) == _offsets(new) == {FIRST: OffsetAndMetadata(5, "note")}
    assert _fetch_codes(old) == _fetch_codes(new) == {None: 14, FIRST: 0, SECOND: 88}
