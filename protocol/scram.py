"""SCRAM, RFC 5802 and 7677, as Kafka speaks it: the arithmetic of keys and the syntax of messages. Pure.

A mechanism has no channel binding, so that a client-first message begins with `n,`. User names are escaped (`=2C` is a
comma, `=3D` an equals sign) and not normalised with SASLprep; Kafka's clients do the same. The size of a message is
bounded. Whatever a peer sends wrong raises ScramError; no error text, `repr`
or log line has a password, a key or a proof.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import field
from typing import Final

from rota.protocol.dataclass import dataclass

MESSAGE_BYTES_MAX: Final = 4096
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384  # what Kafka's broker accepts for a credential
PEER_ITERATIONS_MAX: Final = 1_000_000  # what a client computes for a broker
SALT_BYTES: Final = 24  # of the salts that a broker chooses, also of those that it makes up for unknown users
SALT_BYTES_MAX: Final = 1024

_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")  # printable ASCII without the comma
_NAME = re.compile(r"(?:[^,=\0]|=2C|=3D)+")
_ATTRIBUTE = re.compile(r"([A-Za-z]+)=(.*)", re.DOTALL)


class ScramError(Exception):
    """A peer sent what no SCRAM message is, or another message than the expected."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One of Kafka's SCRAM mechanisms; `type` is its number in APIs 50 and 51."""

    name: str
    type: int
    hash_name: str
    key_bytes: int


SHA_256: Final = Mechanism("SCRAM-SHA-256", 1, "sha256", 32)
SHA_512: Final = Mechanism("SCRAM-SHA-512", 2, "sha512", 64)
MECHANISMS: Final = {mechanism.name: mechanism for mechanism in (SHA_256, SHA_512)}
MECHANISM_TYPES: Final = {mechanism.type: mechanism for mechanism in (SHA_256, SHA_512)}


# ---- keys


def salted_password(mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Hi(password, salt, i): the expensive step, about 1 ms for each 1000 iterations."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def client_key(mechanism: Mechanism, salted: bytes) -> bytes:
    """ClientKey of a salted password."""
    return _hmac(mechanism, salted, b"Client Key")


def stored_key(mechanism: Mechanism, client: bytes) -> bytes:
    """StoredKey of a client key: H(ClientKey)."""
    return hashlib.new(mechanism.hash_name, client).digest()


def server_key(mechanism: Mechanism, salted: bytes) -> bytes:
    """ServerKey of a salted password."""
    return _hmac(mechanism, salted, b"Server Key")


def auth_message(client_first_bare: str, server_first: str, client_final_without_proof: str) -> bytes:
    """AuthMessage: the three messages that both sides sign."""
    return f"{client_first_bare},{server_first},{client_final_without_proof}".encode()


def client_proof(mechanism: Mechanism, salted: bytes, message: bytes) -> bytes:
    """ClientProof: ClientKey XOR ClientSignature."""
    key = client_key(mechanism, salted)
    return _xor(key, _hmac(mechanism, stored_key(mechanism, key), message))


def is_proof_of(mechanism: Mechanism, stored: bytes, message: bytes, proof: bytes) -> bool:
    """Return whether a client proof was made with the password of the stored key, in constant time."""
    if len(proof) != mechanism.key_bytes:
        return False
    key = _xor(proof, _hmac(mechanism, stored, message))
    return hmac.compare_digest(stored_key(mechanism, key), stored)


def server_signature(mechanism: Mechanism, server: bytes, message: bytes) -> bytes:
    """ServerSignature of a server key."""
    return _hmac(mechanism, server, message)


def _hmac(mechanism: Mechanism, key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, mechanism.hash_name)


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


# ---- messages


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """`n,[a=authzid],n=user,r=nonce[,extensions]`."""

    username: str
    nonce: str
    authorization_id: str = ""
    extensions: tuple[tuple[str, str], ...] = ()

    @property
    def bare(self) -> str:
        """The message without its GS2 header, as it is signed."""
        return ",".join((f"n={escape(self.username)}", f"r={self.nonce}", *(f"{k}={v}" for k, v in self.extensions)))

    @property
    def gs2_header(self) -> str:
        return f"n,a={escape(self.authorization_id)}," if self.authorization_id else "n,,"

    def encode(self) -> bytes:
        return (self.gs2_header + self.bare).encode()

    @classmethod
    def parse(cls, data: bytes) -> ClientFirst:
        flag, _, rest = _text(data).partition(",")
        authorization, separator, bare = rest.partition(",")
        if flag != "n" or not separator:
            raise ScramError("expected a client-first message without channel binding")
        first, *others = parse_attributes(bare)
        if first[0] != "n" or not others or others[0][0] != "r":
            raise ScramError("expected a user name and a nonce in a client-first message")
        name = _authorization_id(authorization) if authorization else ""
        return cls(unescape(first[1]), _nonce(others[0][1]), name, tuple(others[1:]))


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """`r=nonce,s=salt,i=iterations`; the nonce is the client's with more behind it."""

    nonce: str
    salt: bytes
    iterations: int

    def encode(self) -> bytes:
        return f"r={self.nonce},s={base64.b64encode(self.salt).decode()},i={self.iterations}".encode()

    @classmethod
    def parse(cls, data: bytes) -> ServerFirst:
        values = _expected(_text(data), ("r", "s", "i"), "server-first")
        salt = _base64(values["s"])
        if len(salt) > SALT_BYTES_MAX or not re.fullmatch(r"[0-9]{1,9}", values["i"]):
            raise ScramError("a server-first message has a salt or a number of iterations that is refused")
        return cls(_nonce(values["r"]), salt, int(values["i"]))


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """`c=channel-binding,r=nonce,p=proof`; without a channel, the binding is the GS2 header of client-first."""

    channel_binding: bytes
    nonce: str
    proof: bytes = field(repr=False)

    @property
    def without_proof(self) -> str:
        """The message as it is signed."""
        return f"c={base64.b64encode(self.channel_binding).decode()},r={self.nonce}"

    def encode(self) -> bytes:
        return f"{self.without_proof},p={base64.b64encode(self.proof).decode()}".encode()

    @classmethod
    def parse(cls, data: bytes) -> ClientFinal:
        values = _expected(_text(data), ("c", "r", "p"), "client-final")
        return cls(_base64(values["c"]), _nonce(values["r"]), _base64(values["p"]))


@dataclass(frozen=True, slots=True)
class ServerFinal:
    """`v=signature`, or `e=error` from a server that refuses."""

    signature: bytes = field(default=b"", repr=False)
    error: str = ""

    def encode(self) -> bytes:
        return (f"e={self.error}" if self.error else f"v={base64.b64encode(self.signature).decode()}").encode()

    @classmethod
    def parse(cls, data: bytes) -> ServerFinal:
        (name, value), *_ = parse_attributes(_text(data))
        if name == "e":
            return cls(error=value)
        if name != "v":
            raise ScramError("expected a signature in a server-final message")
        return cls(signature=_base64(value))


def parse_attributes(text: str) -> list[tuple[str, str]]:
    """Return the attributes of `a=1,b=2` in their order; at least one. Raises ScramError."""
    matches = [_ATTRIBUTE.fullmatch(part) for part in text.split(",")]
    if None in matches:
        raise ScramError("a SCRAM message has a part that is no attribute")
    return [(match[1], match[2]) for match in matches if match]


def escape(name: str) -> str:
    """Write a user name as a saslname."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescape(name: str) -> str:
    """Read a saslname. Raises ScramError."""
    if not _NAME.fullmatch(name):
        raise ScramError("a SCRAM message has a name that is not escaped as RFC 5802 says")
    return name.replace("=2C", ",").replace("=3D", "=")


def _authorization_id(text: str) -> str:
    (name, value), *others = parse_attributes(text)
    if name != "a" or others:
        raise ScramError("expected an authorization id in a client-first message")
    return unescape(value)


def _expected(text: str, names: tuple[str, ...], message: str) -> dict[str, str]:
    """The values of the attributes that a message must have, in this order; a client ignores further ones."""
    attributes = parse_attributes(text)
    if tuple(name for name, _ in attributes[: len(names)]) != names:
        raise ScramError(f"expected the attributes {', '.join(names)} in a {message} message")
    return dict(attributes[: len(names)])


def _text(data: bytes) -> str:
    if len(data) > MESSAGE_BYTES_MAX:
        raise ScramError(f"a SCRAM message has {len(data)} bytes; at most {MESSAGE_BYTES_MAX} are read")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ScramError("a SCRAM message is not UTF-8") from None


def _nonce(text: str) -> str:
    if not _NONCE.fullmatch(text):
        raise ScramError("a SCRAM message has a nonce that is not printable")
    return text


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError("a SCRAM message has a value that is not base64") from None
