"""Datagrams: what is sealed is opened again, everything else is nothing."""

from __future__ import annotations

import hmac
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import examples

from rota.coordinator.membership.datagrams import (
    CLAIMS_MAX,
    DATAGRAM_BYTES_MAX,
    INCARNATION_MAX,
    VERSION,
    Claim,
    Datagram,
    DatagramCodec,
    Kind,
    Status,
)
from rota.protocol.wire import layout

SECRET = b"secret"
CODEC = DatagramCodec(SECRET)
INT32, INT64 = st.integers(0, (1 << 31) - 1), st.integers(0, (1 << 63) - 1)
CLAIMS = st.builds(
    Claim,
    broker_id=INT32,
    epoch=INT64,
    incarnation=st.integers(0, INCARNATION_MAX - 1),
    status=st.sampled_from(Status),
)
DATAGRAMS = st.builds(
    Datagram,
    kind=st.sampled_from(Kind),
    sender=INT32,
    sender_epoch=INT64,
    incarnation=st.integers(0, INCARNATION_MAX),
    receiver=INT32,
    receiver_epoch=INT64,
    counter=INT64,
    sequence=INT32,
    subject=INT32,
    subject_epoch=INT64,
    claims=st.lists(CLAIMS, max_size=CLAIMS_MAX).map(tuple),
)


def a_datagram(**fields: Any) -> Datagram:
    """A ping from broker 1 to broker 2."""
    usual: dict[str, Any] = {"kind": Kind.PING, "sender": 1, "sender_epoch": 11, "incarnation": 0}
    usual |= {"receiver": 2, "receiver_epoch": 12, "counter": 1, "sequence": 1, "subject": 0, "subject_epoch": 0}
    return Datagram(**usual | fields)


def authentic(body: bytes) -> bytes:
    """These bytes with the right MAC."""
    return body + hmac.digest(SECRET, body, "sha256")[:16]


@given(DATAGRAMS)
@settings(max_examples=examples(50))
def test_a_sealed_datagram_is_opened(datagram: Datagram) -> None:
    raw = CODEC.seal(datagram)
    assert CODEC.open(raw) == datagram
    assert raw[3:-16] == layout(Datagram, VERSION).build(datagram)


def test_the_largest_datagram_is_within_the_bound() -> None:
    """FD7."""
    claim = Claim(broker_id=1, epoch=1, incarnation=1, status=Status.DEAD)
    assert len(CODEC.seal(a_datagram(claims=(claim,) * CLAIMS_MAX))) <= DATAGRAM_BYTES_MAX


def test_a_changed_bit_a_cut_and_another_secret_are_noticed() -> None:
    """FD6."""
    raw = CODEC.seal(a_datagram())
    for at in range(len(raw)):
        assert CODEC.open(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]) is None
        assert CODEC.open(raw[:at]) is None
    assert CODEC.open(raw + b"\0") is None
    assert DatagramCodec(b"another").open(raw) is None


def test_bytes_without_the_mac_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """FD6."""
    codec = DatagramCodec(SECRET)
    monkeypatch.setattr(codec, "_decode", lambda plain: pytest.fail("parsed"))
    assert codec.open(CODEC.seal(a_datagram())[:-1] + b"\0\0") is None


@given(st.binary(max_size=1300))
@settings(max_examples=examples(200))
def test_hostile_bytes_are_nothing(raw: bytes) -> None:
    """FD6, also for one who knows the secret."""
    assert CODEC.open(raw) is None
    for body in (raw, b"RS" + bytes([VERSION]) + raw):
        opened = CODEC.open(authentic(body))
        assert opened is None or CODEC.open(CODEC.seal(opened)) == opened


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": 5},
        {"kind": -1},
        {"incarnation": -1},
        {"counter": -1},
        {"claims": (Claim(broker_id=1, epoch=1, incarnation=0, status=3),)},
        {"claims": (Claim(broker_id=1, epoch=1, incarnation=-1, status=0),)},
        # no broker could refute this one
        {"claims": (Claim(broker_id=1, epoch=1, incarnation=INCARNATION_MAX, status=Status.DEAD),)},
    ],
)
def test_invalid_field_values_are_refused(fields: dict[str, Any]) -> None:
    assert CODEC.open(CODEC.seal(a_datagram(**fields))) is None


def test_another_version_and_another_magic_are_not_opened() -> None:
    plain = CODEC.seal(a_datagram())[:-16]
    assert CODEC.open(authentic(plain)) is not None
    assert CODEC.open(authentic(plain[:2] + bytes([VERSION + 1]) + plain[3:])) is None
    assert CODEC.open(authentic(b"XX" + plain[2:])) is None
    assert CODEC.open(authentic(plain + b"\0")) is None


def test_too_many_claims_are_refused() -> None:
    claim = layout(Claim, VERSION).build(Claim(broker_id=1, epoch=1, incarnation=1, status=0))
    none = layout(Datagram, VERSION).build(a_datagram())
    body = b"RS" + bytes([VERSION]) + none[:-4] + (CLAIMS_MAX + 1).to_bytes(4, "big") + claim * (CLAIMS_MAX + 1)
    assert CODEC.open(authentic(body)) is None


def test_an_empty_secret_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(AssertionError):
        DatagramCodec(b"")
