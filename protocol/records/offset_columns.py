"""Committed offsets in columns: the bytes of OffsetCommit, of OffsetFetch and of the records between them.

mypyc compiles this file as `fast`. A topic of a request is one object, whatever its partitions; their lists are its
columns. A committed offset is kept as the bytes of its record, OffsetCommitValue v4 (v1 with an expiry), and the
answer to an OffsetFetch is made of those.

Laws
    W1  A length is checked against what is left of the frame before anything is allocated for it.
    W2  Garbage raises DecodeError, and nothing but DecodeError.
    W3  Results are those of `protocol/compiler.py`, and so those of construct, compiled and interpreted.

The file is longer than 400 lines because requests, records and responses share their helpers, and compiled calls within
one module are the cheapest.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from rota.protocol.constructs import ELEMENTS_MAX, GARBLED, DecodeError
from rota.protocol.records.fast import varint
from rota.protocol.varint import SMALL as _SMALL_VARINTS
from rota.protocol.varint import read_uvarint, skip_tags, text_size, uvarint

if TYPE_CHECKING:
    from mypy_extensions import i64

OFFSET_BYTES: Final = 8
HEAD_BYTES: Final = 12  # offset and leader epoch, in requests, records and responses
EPOCHS_SINCE: Final = 6  # versions of OffsetCommit
INSTANCES_SINCE: Final = 7
FLEXIBLE_SINCE: Final = 8
IDS_SINCE: Final = 10
RETENTION_UNTIL: Final = 4
FETCH_EPOCHS_SINCE: Final = 5  # versions of OffsetFetch
FETCH_FLEXIBLE_SINCE: Final = 6
FETCH_GROUPS_SINCE: Final = 8
SMALL_INDEXES: Final = 1024  # partition indexes of which the bytes are kept

_new: Final = object.__new__
_NO_EPOCH: Final = b"\xff\xff\xff\xff"
_INDEX: Final = Struct(">i")
_HEAD: Final = Struct(">qi")
_SHORT: Final = Struct(">h")
_INDEXES: Final = [_INDEX.pack(index) for index in range(SMALL_INDEXES)]
_UNKNOWN_HEAD: Final = b"\xff" * HEAD_BYTES  # offset -1, leader epoch -1
_ZERO_ID: Final = bytes(16)
SMALL: Final = list(_SMALL_VARINTS)  # of one byte
_CODES: Final = [_SHORT.pack(code) for code in range(128)]


class Columns:
    """One topic of a message in columns. It prints as the message does, with its partitions."""

    __slots__ = ()

    def __repr__(self) -> str:
        topic: Any = self
        return f"{type(self).__name__}(name={topic.name!r}, partitions={topic.partitions})"


class TopicOffsets(Columns):
    """One topic of an OffsetCommit; `heads` are offset and leader epoch of each partition, as in the request."""

    __slots__ = ("heads", "indexes", "metadata", "name", "shape", "topic_id")

    def __init__(
        self,
        shape: Any,
        name: str,
        topic_id: bytes,
        indexes: list[int],
        heads: list[bytes],
        metadata: list[str | None],
    ) -> None:
        """`shape` is the class OffsetCommitRequestPartition."""
        self.shape = shape
        self.name = name
        self.topic_id = topic_id
        self.indexes = indexes
        self.heads = heads
        self.metadata = metadata

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The partitions as messages, for code that is not hot."""
        made: list[Any] = []
        for position, index in enumerate(self.indexes):
            offset, epoch = _HEAD.unpack(self.heads[position])
            made.append(
                self.shape(
                    partition_index=index,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    committed_metadata=self.metadata[position],
                )
            )
        return tuple(made)

    def only(self, positions: list[int]) -> TopicOffsets:
        """The same topic with the partitions at these positions."""
        return TopicOffsets(
            self.shape,
            self.name,
            self.topic_id,
            [self.indexes[at] for at in positions],
            [self.heads[at] for at in positions],
            [self.metadata[at] for at in positions],
        )


class CommittedTopic(Columns):
    """One topic of an OffsetCommit response, with one error code for all of its partitions."""

    __slots__ = ("error_code", "indexes", "name", "shape", "topic_id")

    def __init__(self, shape: Any, name: str, topic_id: bytes, indexes: list[int], error_code: int) -> None:
        """`shape` is the class OffsetCommitResponsePartition."""
        self.shape = shape
        self.name = name
        self.topic_id = topic_id
        self.indexes = indexes
        self.error_code = error_code

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The partitions as messages, for code that is not hot."""
        return tuple([self.shape(partition_index=at, error_code=self.error_code) for at in self.indexes])


class FetchedTopic(Columns):
    """One topic of an OffsetFetch response: the record of each partition, None without a committed offset."""

    __slots__ = ("error_code", "indexes", "name", "shape", "topic_id", "values")

    def __init__(
        self, shape: Any, name: str, topic_id: bytes, indexes: list[int], values: list[bytes | None], error_code: int
    ) -> None:
        """`shape` is the class of a partition's response; that of version 8 and later is another one."""
        self.shape = shape
        self.name = name
        self.topic_id = topic_id
        self.indexes = indexes
        self.values = values
        self.error_code = error_code

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The partitions as messages, for code that is not hot."""
        made: list[Any] = []
        for position, index in enumerate(self.indexes):
            head, metadata = _parts(self.values[position])
            offset, epoch = _HEAD.unpack(head)
            made.append(
                self.shape(
                    partition_index=index,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    metadata=metadata.decode(),
                    error_code=self.error_code,
                )
            )
        return tuple(made)


# ---- requests


def decode_commit(made: Any, shape: Any, version: int, data: bytes, start: int = 0) -> tuple[Any, int]:
    """Return (an OffsetCommitRequest, the end position); its topics are TopicOffsets. Raises DecodeError.

    `made` is the class OffsetCommitRequest, `shape` that of its partitions.
    """
    try:
        return _commit(made, shape, version, data if isinstance(data, bytes) else bytes(data), start)
    except IndexError as cause:
        raise DecodeError("message longer than its frame") from cause


def _commit(made: Any, shape: Any, version: i64, data: bytes, start: i64) -> tuple[Any, int]:
    end: i64 = len(data)
    flexible = version >= FLEXIBLE_SINCE
    at = start
    group_id, at = _text(data, at, end, flexible)
    generation = _int32(data, at)
    at += 4
    member_id, at = _text(data, at, end, flexible)
    instance_id: str | None = None
    if version >= INSTANCES_SINCE:
        instance_id, at = _nullable_text(data, at, end, flexible)
    retention_ms = -1
    if version <= RETENTION_UNTIL:
        _check_end(at + 8, end)
        retention_ms = int.from_bytes(data[at : at + 8], "big", signed=True)
        at += 8
    left: i64 = ELEMENTS_MAX
    count, at = _count(data, at, flexible)
    left -= count
    smallest: i64 = 18 if version >= IDS_SINCE else 3 if flexible else 6
    _check_array(count, smallest, end - at, left)
    topics: list[TopicOffsets] = []
    while count > 0:
        count -= 1
        topic, left, at = _topic(shape, data, at, end, version, left)
        topics.append(topic)
    if flexible:
        at = _tags(data, at)
    _check_end(at, end)
    request = _new(made)
    request.group_id = group_id
    request.generation_id_or_member_epoch = generation
    request.member_id = member_id
    request.group_instance_id = instance_id
    request.retention_time_ms = retention_ms
    request.topics = tuple(topics)
    return request, at


def _topic(shape: Any, data: bytes, at: i64, end: i64, version: i64, left: i64) -> tuple[TopicOffsets, i64, i64]:
    flexible = version >= FLEXIBLE_SINCE
    name, topic_id = "", _ZERO_ID
    if version >= IDS_SINCE:
        _check_end(at + 16, end)
        topic_id = data[at : at + 16]
        at += 16
    else:
        name, at = _text(data, at, end, flexible)
    count, at = _count(data, at, flexible)
    left -= count
    has_epoch = version >= EPOCHS_SINCE
    smallest: i64 = 18 if has_epoch else 14
    _check_array(count, smallest, end - at, left)
    indexes: list[int] = []
    heads: list[bytes] = []
    metadata: list[str | None] = []
    while count > 0:
        count -= 1
        indexes.append(_int32(data, at))
        start = at + 4
        at = start + HEAD_BYTES if has_epoch else start + OFFSET_BYTES
        _check_end(at, end)
        heads.append(data[start:at] if has_epoch else data[start:at] + _NO_EPOCH)
        text, at = _nullable_text(data, at, end, flexible)
        metadata.append(text)
        if flexible:
            at = _tags(data, at)
    if flexible:
        at = _tags(data, at)
    return TopicOffsets(shape, name, topic_id, indexes, heads, metadata), left, at


def _check_end(at: i64, end: i64) -> None:
    if at > end:
        raise DecodeError("message longer than its frame")


def _check_array(count: i64, smallest: i64, rest: i64, left: i64) -> None:
    if count * smallest > rest or left < 0:
        raise DecodeError("array beyond its limits")


def _int32(data: bytes, at: i64) -> i64:
    value: i64 = data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]
    return value - 0x1_0000_0000 if value > 0x7FFF_FFFF else value


def _count(data: bytes, at: i64, flexible: bool) -> tuple[i64, i64]:
    """(elements of an array, position after their count). Raises DecodeError for a null array."""
    if not flexible:
        count = _int32(data, at)
        if count < 0:
            raise DecodeError("null in a field that has none")
        return count, at + 4
    size: i64 = data[at]
    at += 1
    if size > 0x7F:
        size, at = read_uvarint(data, at - 1)
    if not size:
        raise DecodeError("null in a field that has none")
    return size - 1, at


def _text(data: bytes, at: i64, end: i64, flexible: bool) -> tuple[str, i64]:
    text, at = _nullable_text(data, at, end, flexible)
    if text is None:
        raise DecodeError("null in a field that has none")
    return text, at


def _nullable_text(data: bytes, at: i64, end: i64, flexible: bool) -> tuple[str | None, i64]:
    if flexible:
        size: i64 = data[at]
        at += 1
        if size > 0x7F:
            size, at = text_size(data, at - 1)
        size -= 1
    else:
        size = data[at] << 8 | data[at + 1]
        at += 2
        if size > 0x7FFF:
            size = -1
    if size < 0:
        return None, at
    if size == 0:
        return "", at
    stop = at + size
    if stop > end:
        raise DecodeError("field longer than its frame")
    return data[at:stop].decode("utf-8", GARBLED), stop


def _tags(data: bytes, at: i64) -> i64:
    count: i64 = data[at]
    if not count:
        return at + 1
    number, after = read_uvarint(data, at)
    return skip_tags(data, after, number)


# ---- records


def offset_values(topic: TopicOffsets, partitions: int, metadata_chars_max: int, tail: bytes) -> list[bytes] | None:
    """Return an OffsetCommitValue v4 for each partition; None if one is unknown, or its metadata is too long.

    `partitions` is how many the topic has. `tail` is the end of the records: the time of the commit and the topic id.
    """
    values: list[bytes] = []
    count: i64 = partitions
    plain_tail = b"\x01" + tail
    for position, index in enumerate(topic.indexes):
        at: i64 = index
        if at < 0 or at >= count:
            return None
        text = topic.metadata[position]
        if text:
            if len(text) > metadata_chars_max:
                return None
            raw = text.encode()
            values.append(b"\x00\x04%b%b%b%b" % (topic.heads[position], _size(len(raw)), raw, tail))
        else:
            values.append(b"\x00\x04%b%b" % (topic.heads[position], plain_tail))
    return values


def store(by_topic: dict[str, dict[int, bytes]], topic: str, indexes: list[int], values: list[bytes]) -> None:
    """Set the offsets of these partitions, at least one of them."""
    offsets = by_topic.get(topic)
    if offsets is None:
        offsets = by_topic[topic] = {}
    for index, value in zip(indexes, values, strict=False):
        offsets[index] = value


def offset_pairs(
    lead: bytes, indexes: list[int], values: list[bytes], pairs: list[tuple[bytes | None, bytes | None]]
) -> None:
    """Append key and value of each record to `pairs`. `lead` is the key without its partition."""
    for index, value in zip(indexes, values, strict=False):
        pairs.append((lead + _packed(index), value))


def offset_records(
    records: list[Any], shape: Any, lead_of: Callable[[str, str], bytes], bytes_max: int
) -> tuple[bytes, int] | None:
    """Return the records of commits as they stand in a batch, and how many they are: `encode_pairs` of `offset_pairs`.

    None if one is not of the class `shape`, OffsetRecords, or keys and values are more than `bytes_max` bytes: then
    the pairs have to be made. `lead_of` returns the key of a group and topic without its partition.
    """
    parts: list[bytes] = []
    count: i64 = 0
    left: i64 = bytes_max
    for record in records:
        if type(record) is not shape:
            return None
        values: list[bytes] = record.values
        left = _topic_records(parts, count, left, lead_of(record.group_id, record.topic), record.partitions, values)
        if left < 0:
            return None
        count += len(values)
    return b"".join(parts), count


def _topic_records(
    parts: list[bytes], delta: i64, left: i64, lead: bytes, indexes: list[int], values: list[bytes]
) -> i64:
    """Append the records of one topic, the first with that offset delta; return the bytes left, -1 for none."""
    key_size: i64 = len(lead) + 4
    key = varint(key_size) + lead
    known_size: i64 = -1  # of the last value, and how many bytes its offset delta took: most are equal in a topic
    known_width: i64 = 0
    begin = value_size = b""
    for position, index in enumerate(indexes):
        value = values[position]
        size: i64 = len(value)
        left -= key_size + size
        if left < 0:
            return -1
        offset = varint(delta)
        width: i64 = len(offset)
        if size != known_size or width != known_width:
            known_size, known_width = size, width
            value_size = varint(size)
            begin = varint(3 + width + len(key) + 4 + len(value_size) + size) + b"\x00\x00"
        parts.append(b"%b%b%b%b%b%b\x00" % (begin, offset, key, _packed(index), value_size, value))
        delta += 1
    return left


def pairs_bytes(pairs: list[tuple[bytes | None, bytes | None]]) -> int:
    """Return how many bytes these keys and values have."""
    size: i64 = 0
    for key, value in pairs:
        if key is not None:
            size += len(key)
        if value is not None:
            size += len(value)
    return size


def is_plain(value: bytes) -> bool:
    """Return whether this is an OffsetCommitValue v4 without metadata, as most are: its parts have fixed places."""
    size: i64 = len(value)
    if size == 42:
        return value.startswith(b"\x00\x04") and value[14] == 1 and value[23:26] == b"\x01\x00\x10"
    return size == 24 and value.startswith(b"\x00\x04") and value[14] == 1 and value[23] == 0


def offset_run(entries: list[tuple[bytes, bytes | None]], start: int) -> tuple[bytes, list[int], list[bytes]]:
    """Return the offsets of one group and topic that are next in `entries`, keys and values of `__consumer_offsets`.

    That is (the keys without their partition, partitions, values); the lists are empty when the entry at `start` is
    something else than an offset without metadata: a tombstone, another kind of record, an offset of an old version.
    """
    indexes: list[int] = []
    values: list[bytes] = []
    key, value = entries[start]
    size: i64 = len(key)
    if value is None or not is_plain(value) or not _is_offset_key(key):
        return b"", indexes, values
    lead = key[: size - 4]
    position: i64 = start
    count: i64 = len(entries)
    while True:
        indexes.append(_int32(key, size - 4))
        values.append(value)
        position += 1
        if position == count:
            break
        key, value = entries[position]
        if value is None or len(key) != size or not key.startswith(lead) or not is_plain(value):
            break
    return lead, indexes, values


def _is_offset_key(key: bytes) -> bool:
    """Return whether this is an OffsetCommitKey of type 1, with nothing behind its fields."""
    size: i64 = len(key)
    if size < 10 or key[0] != 0 or key[1] != 1:
        return False
    group: i64 = key[2] << 8 | key[3]
    at = 4 + group
    if group > 0x7FFF or at + 6 > size:
        return False
    topic: i64 = key[at] << 8 | key[at + 1]
    return topic <= 0x7FFF and at + 2 + topic + 4 == size


def _packed(index: i64) -> bytes:
    if 0 <= index < SMALL_INDEXES:
        return _INDEXES[index]
    packed: bytes = _INDEX.pack(index)
    return packed


def _parts(value: bytes | None) -> tuple[bytes, bytes]:
    """Return (offset and leader epoch, metadata) of an OffsetCommitValue of version 4 or 1."""
    if value is None:
        return _UNKNOWN_HEAD, b""
    if value[1] != 4:
        size: i64 = value[10] << 8 | value[11]
        return value[2:10] + _NO_EPOCH, value[12 : 12 + size]
    at: i64 = 15
    size = value[14]
    if size > 0x7F:
        size, at = read_uvarint(value, 14)
    return value[2:14], value[at : at + size - 1]


# ---- responses


def encode_committed(otherwise: Any, version: int, response: Any) -> bytes:
    """Return an OffsetCommitResponse as bytes; `otherwise` encodes one with other topics than CommittedTopic."""
    topics: list[Any] = list(response.topics)
    flexible = version >= FLEXIBLE_SINCE
    parts: list[bytes] = []
    if version >= 3:
        parts.append(_INDEX.pack(response.throttle_time_ms))
    parts.append(_array(len(topics), flexible))
    for topic in topics:
        if not isinstance(topic, CommittedTopic):
            encoded: bytes = otherwise(response)
            return encoded
        if version >= IDS_SINCE:
            parts.append(topic.topic_id)
        else:
            parts.append(_named(topic.name, flexible))
        parts.append(_array(len(topic.indexes), flexible))
        code = _code(topic.error_code, flexible)
        for index in topic.indexes:
            parts.append(_packed(index))
            parts.append(code)
        if flexible:
            parts.append(b"\x00")
    if flexible:
        parts.append(b"\x00")
    return b"".join(parts)


def encode_fetched(otherwise: Any, version: int, response: Any) -> bytes:
    """Return an OffsetFetchResponse as bytes; `otherwise` encodes one with other topics than FetchedTopic."""
    flexible = version >= FETCH_FLEXIBLE_SINCE
    parts: list[bytes] = []
    if version >= 3:
        parts.append(_INDEX.pack(response.throttle_time_ms))
    if version < FETCH_GROUPS_SINCE:
        is_encoded = _fetched_topics(parts, response.topics, version, flexible)
        if version >= 2:
            parts.append(_SHORT.pack(response.error_code))
    else:
        groups = response.groups
        is_encoded = True
        parts.append(_array(len(groups), flexible))
        for group in groups:
            parts.append(_named(group.group_id, flexible))
            is_encoded = is_encoded and _fetched_topics(parts, group.topics, version, flexible)
            parts.append(_SHORT.pack(group.error_code))
            parts.append(b"\x00")
    if not is_encoded:
        encoded: bytes = otherwise(response)
        return encoded
    if flexible:
        parts.append(b"\x00")
    return b"".join(parts)


def _fetched_topics(parts: list[bytes], given: Any, version: i64, flexible: bool) -> bool:
    """Append the topics; return False if one is no FetchedTopic."""
    topics: list[Any] = list(given)
    parts.append(_array(len(topics), flexible))
    for topic in topics:
        if not isinstance(topic, FetchedTopic):
            return False
        if version >= IDS_SINCE:
            parts.append(topic.topic_id)
        else:
            parts.append(_named(topic.name, flexible))
        parts.append(_array(len(topic.indexes), flexible))
        _fetched_partitions(parts, topic, version, flexible)
        if flexible:
            parts.append(b"\x00")
    return True


def _fetched_partitions(parts: list[bytes], topic: FetchedTopic, version: i64, flexible: bool) -> None:
    """Append the partitions. The end of one and the index of the next are one part: a third fewer are to be joined."""
    code = _code(topic.error_code, flexible)
    no_metadata = (b"\x01" if flexible else b"\x00\x00") + code
    following = _ends_with_index(no_metadata)
    has_epoch = version >= FETCH_EPOCHS_SINCE
    end = b""  # of the partition before
    for position, index in enumerate(topic.indexes):
        value = topic.values[position]
        if end is no_metadata and 0 <= index < SMALL_INDEXES:
            parts.append(following[index])
        else:
            parts.append(end + _packed(index))
        end = no_metadata
        if value is None:
            parts.append(_UNKNOWN_HEAD if has_epoch else _UNKNOWN_HEAD[:8])
        elif value[1] == 4 and value[14] == 1:
            parts.append(value[2:14] if has_epoch else value[2:10])
        else:
            head, metadata = _parts(value)
            parts.append(head if has_epoch else head[:8])
            parts.append(_size(len(metadata)) if flexible else _SHORT.pack(len(metadata)))
            end = metadata + code
    parts.append(end)


_known_ends: Final[dict[bytes, list[bytes]]] = {}  # by the end: one of a version, of each error code that was answered


def _ends_with_index(end: bytes) -> list[bytes]:
    """Return the end of a partition with the index of the next one, for each small index."""
    known = _known_ends.get(end)
    if known is None:
        known = _known_ends[end] = [end + index for index in _INDEXES]
    return known


def _code(error_code: i64, flexible: bool) -> bytes:
    """Return the error code of a partition, and its tagged fields."""
    code: bytes = _CODES[error_code] if 0 <= error_code < 128 else _SHORT.pack(error_code)
    return code + b"\x00" if flexible else code


def _array(count: i64, flexible: bool) -> bytes:
    return _size(count) if flexible else _packed(count)


def _size(count: i64) -> bytes:
    """Return a compact length: one more than `count`, as a varint."""
    if count < 127:
        return SMALL[count + 1]
    return uvarint(count + 1)


def _named(name: str, flexible: bool) -> bytes:
    raw = name.encode()
    return (_size(len(raw)) if flexible else _SHORT.pack(len(raw))) + raw
