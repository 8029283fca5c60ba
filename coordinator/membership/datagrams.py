"""The datagrams of the failure detector: one declaration, a version, and a MAC with the cluster's secret.

    magic "RS" · version int8 · body · the first 16 bytes of HMAC-SHA256 over all before them

Laws
    FD6  Bytes whose MAC is wrong are not parsed. Bytes that are no datagram of a known version are discarded, without
         an exception.
    FD7  A datagram has at most DATAGRAM_BYTES_MAX bytes, so that no network on the way has to fragment it.
"""

from __future__ import annotations

import hmac
from enum import IntEnum
from typing import Final

from rota.protocol.compiler import codec
from rota.protocol.wire import NEVER, Array, DecodeError, Int8, Int32, Int64, wire, wired

DATAGRAM_BYTES_MAX: Final = 1200
CLAIMS_MAX: Final = 32  # in one datagram
INCARNATION_MAX: Final = (1 << 31) - 1  # the last one can not be suspected: no claim could refute it
VERSION: Final = 0

_MAGIC: Final = b"RS"
_HEAD_BYTES: Final = len(_MAGIC) + 1
_MAC_BYTES: Final = 16
_DIGEST: Final = "sha256"


class Kind(IntEnum):
    """The kinds of datagrams."""

    PING = 0  # answer with ACK and this sequence number
    ACK = 1  # `subject` answered the ping of this sequence number
    PING_REQUEST = 2  # ping `subject` for me; answer with ACK, or with NACK when it is silent
    NACK = 3  # I am alive, but `subject` did not answer me
    GOSSIP = 4  # only claims; no answer


class Status(IntEnum):
    """How a broker's life is seen. Of two claims about one incarnation the higher status wins."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2


@wired
class Claim:
    """The status of one life of a broker. The broker alone raises its incarnation, to refute a claim."""

    VERSIONS, FLEXIBLE = range(1), NEVER

    broker_id: int = wire(Int32)
    epoch: int = wire(Int64)
    incarnation: int = wire(Int32)
    status: int = wire(Int8)


@wired
class Datagram:
    """One datagram, from one life of a broker to one life of another. `counter` grows with each datagram of a life."""

    VERSIONS, FLEXIBLE = range(1), NEVER

    kind: int = wire(Int8)
    sender: int = wire(Int32)
    sender_epoch: int = wire(Int64)
    incarnation: int = wire(Int32)
    receiver: int = wire(Int32)
    receiver_epoch: int = wire(Int64)
    counter: int = wire(Int64)
    sequence: int = wire(Int32)
    subject: int = wire(Int32)
    subject_epoch: int = wire(Int64)
    claims: tuple[Claim, ...] = wire(Array(Claim), default=())


class DatagramCodec:
    """Seals and opens datagrams with one secret, which must not be empty."""

    def __init__(self, secret: bytes) -> None:
        assert secret, "datagrams need a secret"
        self._secret = secret
        self._body = codec(Datagram, VERSION)

    def seal(self, datagram: Datagram) -> bytes:
        """Encode and authenticate."""
        assert len(datagram.claims) <= CLAIMS_MAX
        plain = _MAGIC + bytes((VERSION,)) + self._body.encode(datagram)
        return plain + self._mac(plain)

    def open(self, raw: bytes) -> Datagram | None:
        """Decode; None for bytes that no broker of this cluster and version sent."""
        if not _HEAD_BYTES + _MAC_BYTES < len(raw) <= DATAGRAM_BYTES_MAX:
            return None
        plain, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
        if not hmac.compare_digest(self._mac(plain), mac):
            return None
        if plain[:_HEAD_BYTES] != _MAGIC + bytes((VERSION,)):
            return None
        return self._decode(plain)

    def _decode(self, plain: bytes) -> Datagram | None:
        try:
            datagram, end = self._body.decode(plain, _HEAD_BYTES)
        except DecodeError:
            return None
        is_valid = end == len(plain) and len(datagram.claims) <= CLAIMS_MAX and 0 <= datagram.kind <= Kind.GOSSIP
        is_valid = is_valid and 0 <= datagram.incarnation <= INCARNATION_MAX and datagram.counter >= 0
        return datagram if is_valid and all(map(_is_valid, datagram.claims)) else None

    def _mac(self, plain: bytes) -> bytes:
        return hmac.digest(self._secret, plain, _DIGEST)[:_MAC_BYTES]


def _is_valid(claim: Claim) -> bool:
    highest = INCARNATION_MAX if claim.status == Status.ALIVE else INCARNATION_MAX - 1
    return 0 <= claim.status <= Status.DEAD and 0 <= claim.incarnation <= highest
