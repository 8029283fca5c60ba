"""W1-W3 of offset_columns: compiled and interpreted, it reads and writes as the codecs that are generated."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.protocol.records.conftest import VARIANTS, interpreted

from rota.protocol.compiler import codec
from rota.protocol.constructs import ELEMENTS_MAX
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rota.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from rota.protocol.offsets_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
    offset_tail_writer,
)
from rota.protocol.records import offset_columns as imported
from rota.protocol.records.fast import encode_pairs
from rota.protocol.varint import uvarint
from rota.protocol.wire import DecodeError

VERSIONS = list(OffsetCommitRequest.VERSIONS)
FETCH_VERSIONS = list(OffsetFetchResponse.VERSIONS)
PLAIN = encode_value(OffsetCommitValue(offset=1, metadata="", commit_timestamp=2, topic_id=b"i" * 16), 4)
PART = OffsetCommitRequestPartition
REQUEST_FIELDS = OffsetCommitRequest.__slots__  # type: ignore[attr-defined]

text = st.text(max_size=5) | st.just("x" * 200)
int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
uuids = st.binary(min_size=16, max_size=16)
partitions = st.builds(
    OffsetCommitRequestPartition,
    partition_index=int32,
    committed_offset=int64,
    committed_leader_epoch=int32,
    committed_metadata=st.none() | text,
)
topics = st.builds(
    OffsetCommitRequestTopic, name=text, topic_id=uuids, partitions=st.lists(partitions, max_size=4).map(tuple)
)
requests = st.builds(
    OffsetCommitRequest,
    group_id=text,
    generation_id_or_member_epoch=int32,
    member_id=text,
    group_instance_id=st.none() | text,
    retention_time_ms=int64,
    topics=st.lists(topics, max_size=3).map(tuple),
)
values = st.builds(
    OffsetCommitValue, offset=int64, leader_epoch=int32, metadata=text, commit_timestamp=int64, topic_id=uuids
).map(lambda value: encode_value(value, 4)) | st.builds(
    OffsetCommitValue, offset=int64, metadata=text, commit_timestamp=int64, expire_timestamp=int64
).map(lambda value: encode_value(value, 1))
fetched = st.lists(st.tuples(int32, st.none() | values), max_size=4)


@pytest.fixture(params=VARIANTS, scope="module")
def columns(request: pytest.FixtureRequest) -> ModuleType:
    return imported if request.param == "compiled" else interpreted("offset_columns")


def read(request: Any) -> tuple[Any, ...]:
    """The fields of a request; its topics as messages, however they are kept."""
    plain = [(topic.name, topic.topic_id, topic.partitions) for topic in request.topics]
    return *(getattr(request, name) for name in REQUEST_FIELDS if name != "topics"), plain


def outcome(decode: Any, data: bytes, at: int) -> object:
    try:
        request, end = decode(data, at)
    except DecodeError:
        return "DecodeError"
    return read(request), end


@given(requests, st.sampled_from(VERSIONS), st.binary(max_size=3))
def test_a_commit_is_decoded_as_by_its_generated_codec(
    columns: ModuleType, request_: OffsetCommitRequest, version: int, lead: bytes
) -> None:
    generated = codec(OffsetCommitRequest, version)
    data = lead + generated.encode(request_) + b"rest"
    expected = generated.decode(data, len(lead))
    request, end = columns.decode_commit(OffsetCommitRequest, PART, version, data, len(lead))
    assert (read(request), end) == (read(expected[0]), expected[1])
    assert type(request) is OffsetCommitRequest


@settings(max_examples=200)
@given(requests, st.sampled_from(VERSIONS), st.data())
def test_damaged_bytes_have_the_outcome_of_the_generated_codec(
    columns: ModuleType, request_: OffsetCommitRequest, version: int, data: st.DataObject
) -> None:
    generated = codec(OffsetCommitRequest, version)
    raw = bytearray(generated.encode(request_))
    for _ in range(data.draw(st.integers(1, 3))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from((0, 1, 2, 18, 127, 128, 255)))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))]) if data.draw(st.booleans()) else bytes(raw)
    decode = lambda raw, at: columns.decode_commit(OffsetCommitRequest, PART, version, raw, at)  # noqa: E731
    assert outcome(decode, cut, 0) == outcome(generated.decode, cut, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_of_any_length_are_a_message_or_a_decode_error(columns: ModuleType, version: int) -> None:
    whole = codec(OffsetCommitRequest, version)
    parts = tuple(OffsetCommitRequestPartition(partition_index=i, committed_offset=i) for i in range(3))
    topic = OffsetCommitRequestTopic(name="t", topic_id=b"i" * 16, partitions=parts)
    raw = whole.encode(OffsetCommitRequest(group_id="g", topics=(topic, topic)))
    for end in range(len(raw)):
        with pytest.raises(DecodeError):
            columns.decode_commit(OffsetCommitRequest, PART, version, raw[:end], 0)


def test_an_array_beyond_its_limits_is_refused_before_it_is_read(columns: ModuleType) -> None:
    head = b"\x02g\xff\xff\xff\xff\x01\x00"
    for count in (ELEMENTS_MAX + 1, 2**31, 2**34):
        with pytest.raises(DecodeError):
            columns.decode_commit(
                OffsetCommitRequest, OffsetCommitRequestPartition, 8, head + uvarint(count) + bytes(64), 0
            )
    many = uvarint(ELEMENTS_MAX + 1)  # topics of three bytes, of which the first has a partition: one element too many
    data = head + many + b"\x01\x02" + bytes(18) + b"\x00" + b"\x01\x01\x00" * ELEMENTS_MAX
    with pytest.raises(DecodeError, match="limits"):
        columns.decode_commit(OffsetCommitRequest, PART, 8, data, 0)


@given(st.lists(st.tuples(text, uuids, st.lists(int32, max_size=4), st.integers(-1, 200)), max_size=3), int32)
def test_an_answer_to_a_commit_has_the_bytes_of_its_generated_codec(
    columns: ModuleType, given_: list[tuple[str, bytes, list[int], int]], throttle_ms: int
) -> None:
    topics = tuple(columns.CommittedTopic(OffsetCommitResponsePartition, *topic) for topic in given_)
    plain = tuple(
        OffsetCommitResponseTopic(
            name=name,
            topic_id=topic_id,
            partitions=tuple(OffsetCommitResponsePartition(partition_index=i, error_code=code) for i in indexes),
        )
        for name, topic_id, indexes, code in given_
    )
    for version in VERSIONS:
        generated = codec(OffsetCommitResponse, version).encode
        expected = generated(OffsetCommitResponse(throttle_time_ms=throttle_ms, topics=plain))
        for answered in (topics, (*topics[:1], *plain[1:])):  # also where some topics are messages
            response = OffsetCommitResponse(throttle_time_ms=throttle_ms, topics=answered)
            assert columns.encode_committed(generated, version, response) == expected


@given(st.lists(st.tuples(text, uuids, fetched, st.integers(-1, 200)), max_size=3), st.integers(-1, 100))
def test_an_answer_with_offsets_has_the_bytes_of_its_generated_codec(
    columns: ModuleType, given_: list[tuple[str, bytes, list[tuple[int, bytes | None]], int]], error_code: int
) -> None:
    for version in FETCH_VERSIONS:
        generated, of_group = codec(OffsetFetchResponse, version).encode, version >= 8
        shape: Any = OffsetFetchResponseTopics if of_group else OffsetFetchResponseTopic
        part = OffsetFetchResponsePartitions if of_group else OffsetFetchResponsePartition
        topics = tuple(
            columns.FetchedTopic(part, name, uuid, [i for i, _ in each], [raw for _, raw in each], code)
            for name, uuid, each, code in given_
        )
        ids = [{"topic_id": topic.topic_id} if of_group else {} for topic in topics]
        plain = tuple(
            shape(name=topic.name, partitions=topic.partitions, **uuid) for topic, uuid in zip(topics, ids, strict=True)
        )

        def response(topics: Any, version: int = version) -> OffsetFetchResponse:
            group = OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=error_code)
            if version < 8:
                return OffsetFetchResponse(topics=topics, error_code=error_code)
            return OffsetFetchResponse(groups=(group, group))

        expected = generated(response(plain))
        assert columns.encode_fetched(generated, version, response(topics)) == expected
        assert columns.encode_fetched(generated, version, response((*topics[:1], *plain[1:]))) == expected


def test_a_topic_without_an_offset_has_minus_one(columns: ModuleType) -> None:
    (partition,) = columns.FetchedTopic(OffsetFetchResponsePartition, "t", bytes(16), [3], [None], 0).partitions
    assert (partition.partition_index, partition.committed_offset, partition.committed_leader_epoch) == (3, -1, -1)
    assert partition.metadata == ""


@given(st.lists(partitions, max_size=4), int64, uuids)
def test_records_have_the_bytes_of_the_general_encoder(
    columns: ModuleType, committed: list[OffsetCommitRequestPartition], commit_ms: int, topic_id: bytes
) -> None:
    raw = codec(OffsetCommitRequest, 9).encode(
        OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=tuple(committed)),))
    )
    (topic,) = columns.decode_commit(OffsetCommitRequest, PART, 9, raw, 0)[0].topics
    made = columns.offset_values(topic, 2**31, 200, offset_tail_writer()(commit_ms, topic_id))
    expected = [
        encode_value(
            OffsetCommitValue(
                offset=each.committed_offset,
                leader_epoch=each.committed_leader_epoch,
                metadata=each.committed_metadata or "",
                commit_timestamp=commit_ms,
                topic_id=topic_id,
            ),
            4,
        )
        for each in committed
    ]
    assert made == (None if any(each.partition_index < 0 for each in committed) else expected)
    for value in expected:
        assert columns.is_plain(value) == (len(value) == (42 if any(topic_id) else 24))
    pairs: list[tuple[bytes, bytes]] = []
    columns.offset_pairs(b"lead", topic.indexes, expected, pairs)
    keys = [b"lead" + each.partition_index.to_bytes(4, "big", signed=True) for each in committed]
    assert pairs == list(zip(keys, expected, strict=True))
    assert columns.pairs_bytes(pairs) == sum(len(key) + len(value) for key, value in pairs)


@dataclass
class Offsets:
    group_id: str
    topic: str
    partitions: list[int]
    values: list[bytes]


def lead_of(group_id: str, topic: str) -> bytes:
    return encode_key(OffsetCommitKey(group=group_id, topic=topic, partition=0))[:-4]


def as_pairs(columns: ModuleType, records: list[Offsets]) -> list[tuple[bytes | None, bytes | None]]:
    pairs: list[tuple[bytes | None, bytes | None]] = []
    for record in records:
        columns.offset_pairs(lead_of(record.group_id, record.topic), record.partitions, record.values, pairs)
    return pairs


columns_of_offsets = st.lists(st.tuples(int32, values), max_size=4) | st.integers(60, 70).map(
    lambda count: [(index, PLAIN) for index in range(count)]
)


@given(st.lists(st.tuples(text, text, columns_of_offsets), max_size=4))
def test_w3_offsets_in_a_batch_have_the_bytes_of_the_encoder_of_pairs(
    columns: ModuleType, made: list[tuple[str, str, list[tuple[int, bytes]]]]
) -> None:
    records = [
        Offsets(group, topic, [index for index, _ in offsets], [value for _, value in offsets])
        for group, topic, offsets in made
    ]
    pairs = as_pairs(columns, records)
    size = columns.pairs_bytes(pairs)
    assert columns.offset_records(records, Offsets, lead_of, size) == (encode_pairs(pairs), len(pairs))
    if pairs:
        assert columns.offset_records(records, Offsets, lead_of, size - 1) is None


def test_other_records_are_left_to_the_encoder_of_pairs(columns: ModuleType) -> None:
    record = Offsets("g", "t", [1], [PLAIN])
    assert columns.offset_records([record, "another"], Offsets, lead_of, 1_000) is None


def test_a_partition_that_is_not_there_and_long_metadata_are_refused(columns: ModuleType) -> None:
    def values(index: int, metadata: str) -> list[bytes] | None:
        topic = columns.TopicOffsets(
            OffsetCommitRequestPartition, "t", bytes(16), [0, index], [bytes(12)] * 2, ["", metadata]
        )
        made: list[bytes] | None = columns.offset_values(topic, 3, 4, b"tail")
        return made

    assert len(values(2, "abcd") or []) == 2
    assert values(3, "") is values(-1, "") is values(2, "abcde") is None


def test_some_partitions_of_a_topic(columns: ModuleType) -> None:
    topic = columns.TopicOffsets(
        OffsetCommitRequestPartition, "t", b"i" * 16, [4, 5, 6], [b"a" * 12, b"b" * 12, b"c" * 12], ["", None, "m"]
    )
    kept = topic.only([0, 2])
    assert (kept.name, kept.topic_id, kept.indexes, kept.metadata) == ("t", b"i" * 16, [4, 6], ["", "m"])
    assert kept.heads == [b"a" * 12, b"c" * 12]


def test_offsets_are_stored_by_topic_and_partition(columns: ModuleType) -> None:
    by_topic: dict[str, dict[int, bytes]] = {}
    columns.store(by_topic, "t", [1, 2], [b"a", b"b"])
    columns.store(by_topic, "t", [2, 3], [b"c", b"d"])
    columns.store(by_topic, "u", [1], [b"e"])
    assert by_topic == {"t": {1: b"a", 2: b"c", 3: b"d"}, "u": {1: b"e"}}


def in_log(group: str, topic: str, partition: int) -> bytes:
    return encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition))


@given(st.lists(st.tuples(st.sampled_from(("g", "h", "")), st.sampled_from(("t", "u")), int32), min_size=1, max_size=8))
def test_offsets_of_one_topic_in_a_row_are_taken_together(
    columns: ModuleType, names: list[tuple[str, str, int]]
) -> None:
    entries = [(in_log(*name), PLAIN) for name in names]
    at = 0
    while at < len(names):
        lead, indexes, taken = columns.offset_run(entries, at)
        row = names[at : at + len(indexes)]
        assert [lead + index.to_bytes(4, "big", signed=True) for index in indexes] == [in_log(*name) for name in row]
        assert taken == [PLAIN] * len(row)
        assert len({name[:2] for name in row}) == 1
        at += len(indexes)
        assert at == len(names) or names[at][:2] != row[0][:2]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (in_log("g", "t", 0), None),  # a tombstone
        (in_log("g", "t", 0), encode_value(OffsetCommitValue(offset=1, metadata="m", commit_timestamp=2), 4)),
        (in_log("g", "t", 0), encode_value(OffsetCommitValue(offset=1, metadata="", commit_timestamp=2), 3)),
        (in_log("g", "t", 0) + b"?", PLAIN),  # a key that goes on
        (b"\0\0" + in_log("g", "t", 0)[2:], PLAIN),  # the obsolete type
        (b"\0\2\0\1g", PLAIN),
        (b"\0\1\xff\xff\0\0\0\0\0\0", PLAIN),
        (b"\0\1\0\0\xff\xff\0\0\0\0", PLAIN),
        (b"\0\1\0\4\0\0\0\0\0\0", PLAIN),
        (b"\0\1", PLAIN),
        (b"", PLAIN),
    ],
)
def test_other_records_are_left_to_the_general_decoder(columns: ModuleType, key: bytes, value: bytes | None) -> None:
    assert columns.offset_run([(key, value)], 0) == (b"", [], [])
    first = (in_log("g", "t", 5), PLAIN)
    assert columns.offset_run([first, (key, value), first], 0)[1:] == ([5], [PLAIN])
