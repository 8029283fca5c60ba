"""Requests that nobody would send: every API in every version, right in form and wild in content, and worse.

Names, ids and numbers are drawn from small pools as often as not, so that requests meet what others left behind.
"""

from __future__ import annotations

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
from rota.protocol.header import request_header
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
NUMBERS = [-2, -1, -1, 0, 0, 0, 1, 1, 2, 3, 5, 100, 6_000, 10_000]
STRING_BYTES_MAX = 0x7FFF
SERVED = [(key, version) for key in SERVES for version in APIS[key].versions]


class Noise:
    """All of it follows from `seed`. `words` and `ids` grow with what answers told."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.words = list(WORDS)
        self.ids = [bytes(UUID_BYTES), b"\xff" * UUID_BYTES]

    def frame(self) -> bytes:
        """One request, without its length."""
        key, version = self.random.choice(SERVED)
        body = codec(APIS[key].request, version).encode(self.value(layout(APIS[key].request, version)))
        return request_header(key, version, self.random.getrandbits(31), self.text()) + body

    def garbage(self) -> bytes:
        """Bytes for the socket that are no request, or most of one, or more than one."""
        random, raw = self.random, self.frame()
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
            return self.random.choice(self.ids)
        code = fixed_code(node)
        return self.octets() if code is None else self._number(str(code), 8 * node.sizeof())

    def _instance(self, node: Shape) -> Any:
        found: dict[str, Any] = {}
        for part in node.subcon.subcons:
            if not isinstance(part.subcon, Tags):
                found[part.name] = self.value(part.subcon, part.name)
                continue
            for one in part.subcon.known:
                found[one.name] = one.default if self.random.random() < 0.5 else self.value(one.subcon, one.name)
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
        return self.random.choice(self.words)

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
