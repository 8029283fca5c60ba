"""P1: every (message, version) is read and written as construct, kio and kafka-python do it; garbage gives DecodeError.

kio and kafka-python were written from Kafka's schema files by others. Each is asked for every pair in the registry, and
the pairs that it does not know are listed here by name, so that what they cover cannot shrink unseen.
"""

from __future__ import annotations

import datetime
import io
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import construct as c
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kafka.protocol.data_container import DataContainer
from kafka.protocol.schemas import StructField, load_json
from kio.index import UnknownEntity, load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from tests.soak import examples

from rota.protocol import consumer_group_records, consumer_protocol, offsets_records
from rota.protocol.compiler import codec
from rota.protocol.constructs import UUID, UUID_BYTES, List, Maybe, Octets, RecordSet, Shape, Tags, Text
from rota.protocol.registry import APIS
from rota.protocol.source import fixed_code
from rota.protocol.wire import DecodeError, layout

EXAMPLES_PER_VERSION = 2
BYTES_PER_FRAME_BYTE_MAX = 400  # memory that reading may take, beside a constant
BYTES_BESIDE = 64 * 1024

KIO_LACKS: set[tuple[str, int]] = set()
KAFKA_PYTHON_LACKS = {
    (f"ConsumerGroup{name}{kind}", version)
    for name in ("Describe", "Heartbeat")
    for kind in ("Request", "Response")
    for version in (0, 1)
} | {
    (f"{api}{kind}", 0)
    for api in ("GetTelemetrySubscriptions", "PushTelemetry", "UnregisterBroker")
    for kind in ("Request", "Response")
}
KAFKA_PYTHON_LACKS |= {
    (f"{api}DelegationToken{kind}", version)
    for api, last in {"Create": 3, "Renew": 2, "Expire": 2, "Describe": 3}.items()
    for kind in ("Request", "Response")
    for version in range(1, last + 1)
}

MESSAGES = [message for api in APIS.values() for message in (api.request, api.response)]
RECORDS = [
    consumer_protocol.Subscription,
    consumer_protocol.Assignment,
    offsets_records.OffsetCommitKey,
    offsets_records.GroupMetadataKey,
    offsets_records.OffsetCommitValue,
    offsets_records.GroupMetadataValue,
    *consumer_group_records.VALUES,
    *consumer_group_records.VALUES.values(),
]
EVERYTHING = [*MESSAGES, *RECORDS]

# ---- instances nobody wrote

_SPECIAL = {  # what kio shows as an enumeration, a duration or a point in time cannot be any number
    "error_code": st.integers(-1, 133),
    "partition_error_code": st.integers(-1, 133),
    "transaction_start_time_ms": st.integers(0, 4 * 10**12),
    "topic_config_error_code": st.integers(-1, 133),
    "max_lifetime_ms": st.integers(-(10**12), 10**12),
    "renew_period_ms": st.integers(-(10**12), 10**12),
    "session_lifetime_ms": st.integers(-(10**12), 10**12),
    "expiry_time_period_ms": st.integers(-(10**12), 10**12),
    "issue_timestamp_ms": st.integers(0, 4 * 10**12),
    "expiry_timestamp_ms": st.integers(0, 4 * 10**12),
    "max_timestamp_ms": st.integers(0, 4 * 10**12),
    "retention_time_ms": st.integers(-(10**12), 10**12),
    "log_append_time_ms": st.just(-1) | st.integers(0, 4 * 10**12),
}


class Form(NamedTuple):
    """`is_full`: every field is there, and each array has an element with all and one with nothing.

    Else the simplest value of what may be null is null, or empty in an odd version.
    """

    is_full: bool
    is_odd: bool


def values(node: Any, form: Form, name: str = "") -> st.SearchStrategy[Any]:
    if name in _SPECIAL:
        return _SPECIAL[name]
    if isinstance(node, Shape):
        return instances(node, form)
    if isinstance(node, Maybe):
        inner = values(node.subcon, form)
        return inner if form.is_full else st.none() | inner
    plain = sized(node, form) if isinstance(node, Text | Octets | RecordSet | List) else numbers(node)
    if form.is_full or not getattr(node, "nullable", False):
        return plain
    return plain | st.none() if form.is_odd else st.none() | plain


def sized(node: Any, form: Form) -> st.SearchStrategy[Any]:
    if isinstance(node, Text):
        return st.text(min_size=form.is_full, max_size=5)
    if not isinstance(node, List):
        return st.binary(min_size=form.is_full, max_size=5)
    item = values(node.item, form)
    if form.is_full and isinstance(node.item, Shape):
        return st.tuples(item, st.just(simplest(node.item, form)))
    return st.lists(item, min_size=form.is_full, max_size=2 - form.is_full).map(tuple)


def simplest(node: Any, form: Form) -> Any:
    """A value without anything in it: 0, what is not written, and null or empty."""
    if isinstance(node, Shape):
        return node.made(**{entry.name: simplest(entry.subcon, form) for entry in _untagged(node)})
    if isinstance(node, Maybe) or (getattr(node, "nullable", False) and not form.is_odd):
        return None
    if isinstance(node, Text):
        return ""
    if isinstance(node, Octets | RecordSet):
        return b""
    return () if isinstance(node, List) else bytes(UUID_BYTES) if node is UUID else 0


def _untagged(node: Shape) -> Iterator[Any]:
    return (part for part in node.subcon.subcons if not isinstance(part.subcon, Tags))


def numbers(node: Any) -> st.SearchStrategy[Any]:
    if node is c.Flag:
        return st.booleans()
    if node is UUID:
        return st.binary(min_size=UUID_BYTES, max_size=UUID_BYTES)
    if node is c.Float64b:
        return st.floats(allow_nan=False)
    code, bits = str(fixed_code(node)), 8 * node.sizeof()
    return st.integers(0, 2**bits - 1) if code.isupper() else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def instances(node: Shape, form: Form) -> st.SearchStrategy[Any]:
    kinds: dict[str, st.SearchStrategy[Any]] = {}
    for part in node.subcon.subcons:
        if isinstance(part.subcon, Tags):
            for entry in part.subcon.known:
                other = values(entry.subcon, form, entry.name).filter(_is_not_default)
                kinds[entry.name] = other if form.is_full else st.just(entry.default) | other
        else:
            kinds[part.name] = values(part.subcon, form, part.name)
    return st.fixed_dictionaries(kinds).map(lambda found: node.made(**found))


@cache
def instances_of(message: Any, version: int, *, is_full: bool) -> st.SearchStrategy[Any]:
    return instances(layout(message, version), Form(is_full, version % 2 == 1))


def _is_not_default(value: Any) -> bool:
    """A tagged struct of defaults is not written by the others; we say None for it."""
    return not hasattr(value, "__dataclass_fields__") or value != type(value)()


def drawn(data: st.DataObject, message: type[Any]) -> Iterator[tuple[int, Any, bytes]]:
    """An instance of each version, with its bytes. The first example is the simplest, nearly all others are full."""
    is_full = data.draw(st.sampled_from((False, *[True] * 15)), label="is_full")
    for version in message.VERSIONS:
        value = data.draw(instances_of(message, version, is_full=is_full), label=f"v{version}")
        yield version, value, codec(message, version).encode(value)


law = settings(
    max_examples=examples(EXAMPLES_PER_VERSION),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking dozens of versions at once takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
every_message = pytest.mark.parametrize("message", EVERYTHING, ids=lambda message: message.__name__)

# ---- the same as construct


@every_message
@law
@given(data=st.data())
def test_compiled_codecs_equal_those_of_construct(message: type[Any], data: st.DataObject) -> None:
    for version, value, raw in drawn(data, message):
        made, reference = codec(message, version), layout(message, version)
        assert made.decode(raw, 0) == (value, len(raw))
        assert made.decode(b"x" + raw + b"yz", 1) == (value, len(raw) + 1), "position and trailing bytes are respected"
        assert made.decode(memoryview(raw)) == (value, len(raw))
        assert b"".join(made.parts(value)) == raw
        assert reference.build(value) == raw
        assert reference.parse(raw) == value


# ---- the same as kio and kafka-python

ZERO = bytes(UUID_BYTES)


def ours(value: Any, node: Any) -> Any:
    """Our value as dicts of what this version has; a tagged struct that is not there becomes its defaults."""
    if isinstance(node, Maybe) and value is not None:
        return ours(value, node.subcon)
    if isinstance(node, Shape):
        value = node.made() if value is None else value
        return {name: ours(getattr(value, name), inner) for name, inner in _present(node)}
    if isinstance(value, tuple):
        return [ours(entry, node.item) for entry in value]
    return bytes(value) if isinstance(value, memoryview) else value


def _present(node: Shape) -> Iterator[tuple[str, Any]]:
    for part in node.subcon.subcons:
        for entry in part.subcon.known if isinstance(part.subcon, Tags) else (part,):
            yield entry.name, entry.subcon


def kios(value: Any) -> Any:
    """A value of kio in the same form."""
    if isinstance(value, tuple):
        return [kios(entry) for entry in value]
    if hasattr(value, "__dataclass_fields__"):
        return {entry.name: kios(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(milliseconds=1)
    return value.bytes if isinstance(value, uuid.UUID) else getattr(value, "value", value)


def kafka_pythons(value: Any, node: Any) -> Any:
    """A value of kafka-python in the same form; its objects have the fields of all versions, so `node` says which."""
    if isinstance(node, Maybe) and value is not None:
        return kafka_pythons(value, node.subcon)
    if isinstance(node, Shape):
        if value is None:
            return ours(None, node)
        return {name: kafka_pythons(getattr(value, name), inner) for name, inner in _present(node)}
    if isinstance(value, list | tuple):
        return [kafka_pythons(entry, node.item) for entry in value]
    if isinstance(value, memoryview):
        return bytes(value)
    return value.bytes if isinstance(value, uuid.UUID) else value


def without_dialect(value: Any) -> Any:
    """Names without their unit and "nothing" as None: there the libraries differ in taste."""
    if isinstance(value, dict):
        named = {name.removesuffix("_ms"): entry for name, entry in value.items()}
        if named.get("log_append_time") == -1:
            named["log_append_time"] = None
        return {name: without_dialect(entry) for name, entry in named.items()}
    if isinstance(value, list):
        return [without_dialect(entry) for entry in value]
    return None if value == ZERO else value


def kio_type(message: type[Any], version: int) -> type[Any] | None:
    load = load_request_schema if message.__name__.endswith("Request") else load_response_schema
    try:
        return load(message.KEY, version)
    except UnknownEntity:
        return None


@cache
def kafka_python_type(message: Any) -> type[Any] | None:
    """The bare schema: kafka-python's own classes rename fields and turn some numbers into sets."""
    try:
        struct = StructField(load_json(message.__name__))
    except FileNotFoundError:
        return None
    return type(message.__name__, (DataContainer,), {"_struct": struct})


def kafka_python_knows(message: type[Any], version: int) -> bool:
    theirs = kafka_python_type(message)
    return theirs is not None and theirs._struct.for_version_q(version)


every_api_message = pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)


@every_api_message
@law
@given(data=st.data())
def test_kio_reads_and_writes_the_same(message: type[Any], data: st.DataObject) -> None:
    for version, value, raw in drawn(data, message):
        theirs = kio_type(message, version)
        if theirs is None:
            assert (message.__name__, version) in KIO_LACKS
            continue
        read, size = entity_reader(theirs)(raw, 0)
        assert size == len(raw)
        assert without_dialect(kios(read)) == without_dialect(ours(value, layout(message, version)))
        out = io.BytesIO()
        entity_writer(theirs)(out, read)
        assert out.getvalue() == raw


@every_api_message
@law
@given(data=st.data())
def test_kafka_python_reads_and_writes_the_same(message: type[Any], data: st.DataObject) -> None:
    for version, value, raw in drawn(data, message):
        if not kafka_python_knows(message, version):
            assert (message.__name__, version) in KAFKA_PYTHON_LACKS
            continue
        theirs: Any = kafka_python_type(message)
        form = {"compact": version >= message.FLEXIBLE, "tagged": version >= message.FLEXIBLE}
        read, end = theirs._struct.compiled_decode_from(version, data_class=theirs, **form)(memoryview(raw), 0)
        assert end == len(raw)
        node = layout(message, version)
        assert without_dialect(kafka_pythons(read, node)) == without_dialect(ours(value, node))
        assert theirs._struct.encode(read, version=version, **form) == raw


@pytest.mark.parametrize(("find", "lacks"), [(kio_type, KIO_LACKS), (kafka_python_knows, KAFKA_PYTHON_LACKS)])
def test_messages_without_an_oracle_are_listed(find: Callable[..., Any], lacks: set[tuple[str, int]]) -> None:
    pairs = {(message.__name__, version) for message in MESSAGES for version in message.VERSIONS}
    known = {(entry.__name__, version) for entry in MESSAGES for version in entry.VERSIONS if find(entry, version)}
    assert pairs - known == lacks
    assert len(pairs) == 510


# ---- garbage


@every_message
@law
@given(data=st.data())
def test_a_message_that_was_cut_is_refused(message: type[Any], data: st.DataObject) -> None:
    for version, _, raw in drawn(data, message):
        for end in range(len(raw)):
            with pytest.raises(DecodeError):
                codec(message, version).decode(raw[:end])


@every_message
@law
@given(data=st.data())
def test_damaged_and_random_bytes_are_refused_or_read_as_construct_reads_them(
    message: type[Any], data: st.DataObject
) -> None:
    for version, _, raw in drawn(data, message):
        where = data.draw(st.integers(0, len(raw)))
        damage = data.draw(st.binary(max_size=6) | st.sampled_from(HOSTILE))
        bad = raw[:where] + damage + raw[where + len(damage) :]
        try:
            expected: Any = layout(message, version).parse(bad)
        except c.ConstructError:
            expected = DecodeError
        try:
            found: Any = codec(message, version).decode(bad)[0]
        except DecodeError:
            found = DecodeError
        assert found == expected


HOSTILE = [
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x00\x0f\x42\x41",
]


@every_message
def test_hostile_lengths_take_no_memory(message: type[Any]) -> None:
    """Frames full of large counts, of small counts and of empty things: what reading takes is bounded by the frame."""
    frames = [
        pattern * (4096 // len(pattern)) for pattern in (*HOSTILE, b"\x01", b"\x02", b"\x00", b"\x7f", b"\0\0\0\1")
    ]
    for version in message.VERSIONS:
        codec(message, version)
    tracemalloc.start()
    try:
        for version, frame in product(message.VERSIONS, frames):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            with suppress(DecodeError):
                codec(message, version).decode(frame)
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < BYTES_BESIDE + BYTES_PER_FRAME_BYTE_MAX * len(frame)
    finally:
        tracemalloc.stop()
