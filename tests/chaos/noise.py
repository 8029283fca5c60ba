"""Requests that nobody would send: every API in every version, right in form and wild in content, and worse.

Names, ids and numbers are drawn from small pools as often as not, so that requests meet what others left behind.
"""

from __future__ import annotations

from collections import deque
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any

import construct as c

from rota.coordinator.api.routes import SERVES
from rota.protocol.compiler import codec
from rota.protocol.constructs import UUID, UUID_BYTES, List, Maybe, RecordSet, Shape, Tags, Text
from rota.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from rota.protocol.header import read_response_header, request_header
from rota.protocol.records.batch import Codec
from rota.protocol.records.record import Record, write_batch
from rota.protocol.registry import APIS
from rota.protocol.source import fixed_code
from rota.protocol.wire import layout

WORDS = [
    *("", "a", "b", "t-1", "t-2", "t-1", "t-2", "g-1", "g-2", "consumer", "range", "noise", "1", "-1", "compact"),
    *("cleanup.policy", "segment.bytes", "flush.messages", "max.message.bytes", "compression.type", "gzip", "zstd"),
    *("é\U0001f600", "a\nb\x1b[31m\x00", "x" * 300, "__consumer_offsets", "__admin_client"),
]
# fields for which a wild value ends the request before anything of interest happens
LIKELY: dict[str, list[Any]] = {
    "group_id": ["g-1", "g-2"],
    "protocol_type": ["consumer"],
    "session_timeout_ms": [6_000],
    "rebalance_timeout_ms": [50],
    "max_wait_ms": [0, 20],
    "timeout_ms": [1_000],
    "replication_factor": [1, -1],
    "num_partitions": [1, 2, -1],
    "acks": [-1, 1],
    "transactional_id": [None],
    "replica_id": [-1],
}
LEARNED = ("member_id", "generation_id", "topic_id", "session_id", "session_epoch", "producer_id", "leader_epoch")
LEARNED_MAX = 8
NUMBERS = [-2, -1, -1, 0, 0, 0, 1, 1, 2, 3, 5, 100, 6_000, 10_000]
STRING_BYTES_MAX = 0x7FFF
SERVED = [(key, version) for key in SERVES for version in APIS[key].versions]


class Noise:
    """All of it follows from `seed`, and from the ids that answers told (`learn`)."""

    def __init__(self, seed: int, spared: bytes = b"") -> None:
        """`spared` is the id of a topic that is left alone."""
        self.spared = spared
        self.random = Random(seed)
        self._last = 0
        self._pending: dict[int, tuple[int, int]] = {}  # the API and version of each correlation id
        self._learned: dict[str, deque[Any]] = {name: deque(maxlen=LEARNED_MAX) for name in LEARNED}

    def frame(self) -> bytes:
        """One request, without its length."""
        key, version = self.random.choice(SERVED)
        body = codec(APIS[key].request, version).encode(self.value(layout(APIS[key].request, version)))
        self._last = correlation = self.random.getrandbits(31)  # spoiled ones are nobody else's
        self._pending[correlation] = key, version
        return request_header(key, version, correlation, self.text()) + body

    def learn(self, frame: bytes) -> None:
        """Law P1: an answer is what its version says, to the last byte. Its ids are used from here on."""
        correlation = int.from_bytes(frame[:4], "big")
        if correlation in self._pending:  # the others come of spoiled requests
            key, version = self._pending[correlation]
            _, begin = read_response_header(frame, key, version)
            answer, end = codec(APIS[key].response, version).decode(frame, begin)
            assert end == len(frame), f"bytes behind the answer of API {key}"
            self._remember(answer)

    def _remember(self, value: Any) -> None:
        for entry in fields(value):
            inner = getattr(value, entry.name)
            if entry.name in self._learned and inner != self.spared:
                self._learned[entry.name].append(inner)
            for item in inner if isinstance(inner, tuple) else (inner,):
                if is_dataclass(item):
                    self._remember(item)

    def garbage(self) -> bytes:
        """Bytes for the socket that are no request, or most of one, or more than one."""
        random, raw = self.random, self.frame()
        del self._pending[self._last]
        match random.randrange(6):
            case 0:
                return random.randbytes(random.randrange(200))
            case 1:
                return random.choice([-1, -(1 << 31), (1 << 31) - 1, 200 << 20]).to_bytes(4, "big", signed=True)
            case 2:  # the length is right, the frame is not
                return framed(raw[: random.randrange(len(raw))])
            case 3:
                return framed(raw)[: random.randrange(len(raw) + 4)]
            case 4:
                spoiled = bytearray(raw)
                for _ in range(random.randrange(1, 8)):
                    spoiled[random.randrange(len(spoiled))] = random.randrange(256)
                return framed(bytes(spoiled))
            case _:
                return framed(raw + random.randbytes(random.randrange(1, 20)))

    # ---- values

    def value(self, node: Any, name: str = "") -> Any:
        if isinstance(node, Text) or fixed_code(node) is not None:
            known = LIKELY.get(name) or self._learned.get(name)
            if known and self.random.random() < 0.8:
                found = self.random.choice(known)
                return "" if found is None and not node.nullable else found
        if isinstance(node, Shape):
            return self._instance(node)
        if isinstance(node, Maybe):
            return None if self.random.random() < 0.3 else self.value(node.subcon, name)
        if getattr(node, "nullable", False) and self.random.random() < 0.1:
            return None
        if isinstance(node, List):
            return tuple(self.value(node.item, name) for _ in range(self.random.choice([0, 1, 1, 1, 2, 3])))
        if isinstance(node, RecordSet):
            return self.records()
        if isinstance(node, Text):
            return self.text()
        return self._plain(node)

    def _plain(self, node: Any) -> Any:
        if node is c.Flag:
            return self.random.random() < 0.5
        if node is UUID:
            known = self._learned["topic_id"] if self.random.random() < 0.8 else None
            return self.random.choice(known or [bytes(UUID_BYTES), b"\xff" * UUID_BYTES])
        code = fixed_code(node)
        return self.octets() if code is None else self._number(str(code), 8 * node.sizeof())

    def _instance(self, node: Shape) -> Any:
        found: dict[str, Any] = {}
        for part in node.subcon.subcons:
            if not isinstance(part.subcon, Tags):
                found[part.name] = self.value(part.subcon, part.name)
                continue
            for entry in part.subcon.known:
                found[entry.name] = (
                    entry.default if self.random.random() < 0.5 else self.value(entry.subcon, entry.name)
                )
        return node.made(**found)

    def _number(self, code: str, bits: int) -> int:
        low, high = (0, (1 << bits) - 1) if code.isupper() else (-(1 << bits - 1), (1 << bits - 1) - 1)
        if self.random.random() < 0.9:
            return min(max(self.random.choice(NUMBERS), low), high)
        return self.random.choice([low, high, self.random.randint(low, high)])

    def text(self) -> str:
        dice = self.random.random()
        if dice < 0.01:
            return "y" * self.random.choice([STRING_BYTES_MAX, STRING_BYTES_MAX - 40])
        if dice < 0.1:
            return "".join(chr(self.random.choice([0, 10, 65, 0x7F, 0xE9, 0x1F600])) for _ in range(5))
        return self.random.choice(WORDS)

    def octets(self) -> bytes:
        topics = tuple(self.random.sample(["t-1", "t-2", "a", ""], self.random.randrange(3)))
        match self.random.randrange(4):
            case 0:
                return self.random.randbytes(self.random.randrange(40))
            case 1:
                return encode_subscription(Subscription(topics=topics))
            case 2:
                parts = tuple(TopicPartition(topic=topic, partitions=(0, 1)) for topic in topics)
                return encode_assignment(Assignment(assigned_partitions=parts))
            case _:
                return b""

    def records(self) -> bytes:
        random = self.random
        count = random.choice([1, 1, 2, 5])
        keys = [random.choice([None, b"k", b"l"]) for _ in range(count)]
        records = [Record(at, random.choice(NUMBERS), key, random.randbytes(9), ()) for at, key in enumerate(keys)]
        raw = bytearray(
            write_batch(
                records,
                codec=random.choice(list(Codec)),
                producer_id=random.choice([-1, 0, 1, 1000]),
                producer_epoch=random.choice([-1, 0, 1]),
                base_sequence=random.choice([-1, 0, 1, (1 << 31) - 1]),
            )
        )
        if random.random() < 0.2:
            raw[random.randrange(len(raw))] ^= 1 << random.randrange(8)
        return bytes(raw)


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(4, "big") + message
