"""What a declaration means, on messages of our own that use every kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota.protocol.compiler import codec
from rota.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from rota.protocol.wire import (
    NEVER,
    UUID_ZERO,
    Array,
    Blob,
    Bool,
    DecodeError,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Nested,
    Records,
    String,
    UInt16,
    UInt32,
    Uuid,
    layout,
    wire,
    wired,
)


@wired
class Inner:
    name: str = wire(String)
    rank: int = wire(Int32, since=1, default=-1)


@wired
class Kinds:
    """v1 flexible."""

    VERSIONS, FLEXIBLE = range(2), 1

    a: int = wire(Int8, default=-1)
    b: int = wire(Int16, default=-2)
    c: int = wire(Int32, default=-3)
    d: int = wire(Int64, default=-4)
    e: int = wire(UInt16, default=2**16 - 1)
    f: int = wire(UInt32, default=2**32 - 1)
    g: float = wire(Float64, default=1.5)
    h: bool = wire(Bool, default=True)
    i: bytes = wire(Uuid, default=UUID_ZERO)
    j: str = wire(String, default="ä")
    k: bytes = wire(Blob, default=b"\x00\xff")
    l: bytes | None = wire(Records, nullable_since=0, default=b"batch")  # noqa: E741 - one letter a kind
    m: tuple[int, ...] = wire(Array(Int32), default=(1, 2))
    n: tuple[bytes, ...] = wire(Array(Uuid), default=(b"u" * 16,))
    o: tuple[str, ...] | None = wire(Array(String), nullable_since=0, default=("x", ""))
    p: Inner = wire(Nested(Inner))
    q: Inner | None = wire(Nested(Inner), nullable_since=0, default=None)


@wired
class Tagging:
    VERSIONS, FLEXIBLE = range(2), 0

    plain: int = wire(Int8, default=0)
    late: int = wire(Int32, tag=3, since=1, default=-1)
    text: str | None = wire(String, tag=1, nullable_since=0, default=None)
    inner: Inner | None = wire(Nested(Inner), tag=0, default=None)


@wired
class Narrow:
    VERSIONS, FLEXIBLE = range(4), NEVER

    early: int = wire(Int8, until=1, default=7)
    late: str | None = wire(String, since=2, nullable_since=3, default="none")


def test_every_kind_has_the_bytes_of_the_specification() -> None:
    legacy = codec(Kinds, 0).encode(Kinds(p=Inner(name="in")))
    assert legacy == (
        b"\xff\xff\xfe\xff\xff\xff\xfd\xff\xff\xff\xff\xff\xff\xff\xfc\xff\xff\xff\xff\xff\xff"
        b"\x3f\xf8\0\0\0\0\0\0" + b"\x01" + bytes(16) + b"\0\x02\xc3\xa4" + b"\0\0\0\x02\0\xff" + b"\0\0\0\x05batch"
        b"\0\0\0\x02\0\0\0\x01\0\0\0\x02" + b"\0\0\0\x01" + b"u" * 16 + b"\0\0\0\x02\0\x01x\0\0" + b"\0\x02in" + b"\xff"
    )
    flexible = codec(Kinds, 1).encode(Kinds(p=Inner(name="in")))
    assert flexible[46:] == (
        b"\x03\xc3\xa4"
        + b"\x03\0\xff"
        + b"\x06batch"
        + b"\x03\0\0\0\x01\0\0\0\x02"
        + b"\x02"
        + b"u" * 16
        + b"\x03\x02x\x01"
        b"\x03in\xff\xff\xff\xff\0" + b"\xff" + b"\0"
    )


@pytest.mark.parametrize("version", Kinds.VERSIONS)
def test_every_field_type_survives_encode_and_decode(version: int) -> None:
    value = Kinds(o=None, l=None, p=Inner(name="in"), q=Inner(name="there"))
    raw = codec(Kinds, version).encode(value)
    assert codec(Kinds, version).decode(raw) == (value, len(raw))
    assert layout(Kinds, version).parse(raw) == value
    assert layout(Kinds, version).build(value) == raw


def test_a_field_outside_its_versions_keeps_its_default_and_is_not_written() -> None:
    assert codec(Narrow, 0).encode(Narrow(early=1, late="lost")) == b"\x01"
    assert codec(Narrow, 0).decode(b"\x01") == (Narrow(early=1, late="none"), 1)
    assert codec(Narrow, 2).decode(b"\0\x01x") == (Narrow(early=7, late="x"), 3)


def test_null_is_for_versions_that_allow_it() -> None:
    assert codec(Narrow, 3).decode(b"\xff\xff")[0].late is None
    with pytest.raises(DecodeError, match="null"):
        codec(Narrow, 2).decode(b"\xff\xff")


def test_a_tagged_field_is_written_only_if_it_is_not_the_default() -> None:
    assert codec(Tagging, 1).encode(Tagging()) == b"\0\0"
    value = Tagging(late=5, text="t", inner=Inner(name="n"))
    raw = codec(Tagging, 1).encode(value)
    assert (
        raw
        == b"\0\x03"
        + b"\x00\x07\x02n\xff\xff\xff\xff\0"[:2]
        + b"\x02n\xff\xff\xff\xff\0"
        + b"\x01\x02\x02t"
        + b"\x03\x04\0\0\0\x05"
    )
    assert codec(Tagging, 1).decode(raw) == (value, len(raw))


def test_unknown_tags_are_skipped_and_known_ones_found_among_them() -> None:
    raw = b"\0\x03" + b"\x01\x02\x02t" + b"\x02\x03abc" + b"\x03\x04\0\0\0\x09"
    assert codec(Tagging, 1).decode(raw) == (Tagging(text="t", late=9), len(raw))
    assert codec(Tagging, 0).decode(raw) == (Tagging(text="t"), len(raw)), "a tag of a later version is unknown"


def test_a_tag_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(DecodeError, match="size"):
        codec(Tagging, 1).decode(b"\0\x01\x03\x05\0\0\0\x09\0")


def test_text_that_is_not_utf8_is_replaced_as_kafka_does() -> None:
    found, _ = codec(Narrow, 2).decode(b"\0\x03a\xffb")
    assert found.late == "a\N{REPLACEMENT CHARACTER}b"


def test_a_text_that_was_read_can_be_written_again_in_any_version() -> None:
    def raw(size: int, version: int) -> bytes:
        request = HeartbeatRequest(group_id="g" * size, generation_id=1, member_id="")
        return codec(HeartbeatRequest, version).encode(request)

    read, _ = codec(HeartbeatRequest, 4).decode(raw(0x7FFF, 4))
    assert codec(HeartbeatRequest, 3).encode(read)
    with pytest.raises(DecodeError):
        codec(HeartbeatRequest, 4).decode(raw(0x8000, 4))
    garbled, _ = codec(HeartbeatRequest, 3).decode(raw(10_922, 3).replace(b"g", b"\xff"))
    assert codec(HeartbeatRequest, 3).encode(garbled)
    with pytest.raises(DecodeError):
        codec(HeartbeatRequest, 3).decode(raw(10_923, 3).replace(b"g", b"\xff"))


def test_a_declared_message_is_a_dataclass_in_all_that_shows() -> None:
    item = Inner(name="x", rank=2)
    assert item == Inner(name="x", rank=2)
    assert item != Inner(name="x")
    assert item != ("x", 2)
    assert repr(item) == "Inner(name='x', rank=2)"
    assert replace(item, rank=3).rank == 3
    with pytest.raises(AttributeError):
        item.other = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="name"):
        Inner()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unhashable"):
        hash(item)


def test_a_layout_for_an_unsupported_version_is_refused() -> None:
    with pytest.raises(ValueError, match="HeartbeatRequest has no version 5"):
        layout(HeartbeatRequest, 5)


def test_a_layout_can_be_read_by_people() -> None:
    names = [part.name for part in layout(HeartbeatRequest, 4).subcon.subcons]
    assert names == ["group_id", "generation_id", "member_id", "group_instance_id", "_tags"]


def test_a_field_of_some_versions_needs_a_default() -> None:
    @wired
    class Careless:
        VERSIONS, FLEXIBLE = range(2), NEVER

        late: int = wire(Int8, since=1)

    with pytest.raises(AssertionError, match="default"):
        layout(Careless, 0)


def test_numbers_cannot_be_null() -> None:
    @wired
    class Impossible:
        VERSIONS, FLEXIBLE = range(1), NEVER

        number: int | None = wire(Int8, nullable_since=0)

    with pytest.raises(AssertionError, match="null"):
        layout(Impossible, 0)


def test_no_repr_of_a_message_has_a_secret() -> None:
    secret = b"alice-secret"
    password = ScramCredentialUpsertion(name="alice", mechanism=1, iterations=4096, salt=b"", salted_password=secret)
    messages = (
        SaslAuthenticateRequest(auth_bytes=secret),
        SaslAuthenticateResponse(auth_bytes=secret),
        AlterUserScramCredentialsRequest(upsertions=(password,)),
    )
    assert all("alice-secret" not in repr(message) for message in messages)
