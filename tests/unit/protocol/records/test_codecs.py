"""Every codec there and back, other people's framings, bombs."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from struct import pack

import cramjam
import pytest

from rota.protocol.records.batch import Codec
from rota.protocol.records.codecs import compress, decompress
from rota.protocol.records.errors import CorruptBatch

TEXT = b"the same line again and again, a little different: %d\n"
BODIES = {
    "nothing": b"",
    "a byte": b"x",
    "text": b"".join(TEXT % number for number in range(5000)),
    "noise": random.Random(7).randbytes(100_000),
    "a block of snappy": bytes(32 * 1024),
    "a block and a byte": bytes(32 * 1024 + 1),
}
PACKED = [codec for codec in Codec if codec is not Codec.NONE]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("codec", list(Codec))
def test_compressed_data_is_decompressed_to_the_original(codec: Codec, body: bytes) -> None:
    for kind in (bytes, bytearray, memoryview):
        packed = compress(codec, kind(body))
        assert type(packed) is bytes
        assert decompress(codec, kind(packed)) == body
    assert decompress(codec, packed, len(body)) == body


@pytest.mark.parametrize("codec", PACKED)
def test_text_gets_smaller(codec: Codec) -> None:
    assert len(compress(codec, BODIES["text"])) < len(BODIES["text"]) / 3


@pytest.mark.parametrize(("codec", "low", "high"), [(Codec.GZIP, 1, 9), (Codec.LZ4, 1, 12), (Codec.ZSTD, 1, 19)])
def test_a_level_trades_time_for_size(codec: Codec, low: int, high: int) -> None:
    fast, small = compress(codec, BODIES["text"], low), compress(codec, BODIES["text"], high)
    assert len(small) < len(fast)
    assert decompress(codec, fast) == decompress(codec, small) == BODIES["text"]


@pytest.mark.parametrize("codec", PACKED)
def test_a_limit_is_held_to_the_byte(codec: Codec) -> None:
    packed = compress(codec, BODIES["text"])
    assert decompress(codec, packed, len(BODIES["text"])) == BODIES["text"]
    with pytest.raises(CorruptBatch, match=codec.name):
        decompress(codec, packed, len(BODIES["text"]) - 1)
    with pytest.raises(CorruptBatch, match=codec.name):
        decompress(codec, packed, 0)


@pytest.mark.parametrize("codec", PACKED)
def test_a_decompression_bomb_uses_no_more_memory_than_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(64 << 20))
    limit = 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch):
            decompress(codec, bomb, limit)
        assert tracemalloc.get_traced_memory()[1] < 4 * limit
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", PACKED)
def test_a_cut_or_bent_body_is_refused(codec: Codec) -> None:
    packed = compress(codec, BODIES["text"])
    with pytest.raises(CorruptBatch, match=codec.name):
        decompress(codec, packed[:-3], 1 << 20)
    with pytest.raises(CorruptBatch, match=codec.name):
        decompress(codec, b"\x00garbage" + packed, 1 << 20)
    with pytest.raises(CorruptBatch, match=codec.name):
        decompress(codec, packed + b"garbage", 1 << 20)


def test_gzip_members_in_a_row_are_one_body() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"


def test_snappy_is_framed_as_the_java_library_does() -> None:
    packed = compress(Codec.SNAPPY, BODIES["a block and a byte"])
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    first = int.from_bytes(packed[16:20], "big")
    assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + first]) == 32 * 1024


def test_snappy_without_a_frame_is_read() -> None:
    body = BODIES["text"]
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(body))) == body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x82SNAPPY\x00",
        b"\x82SNAPPY\x00\x00\x00\x00\x01",
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00",
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + pack(">I", 2**31) + b"x",
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + pack(">I", 5) + b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\x0f" + b"\x00" * 20,  # a block that claims 4 GiB
        b"\xff\xff\x03" + b"\x00" * 20,  # a block that claims 64 KiB
    ],
    ids=["nothing", "half a header", "no compatibility", "half a size", "a huge block", "a lie", "4 GiB", "64 KiB"],
)
def test_hostile_snappy_is_refused(body: bytes) -> None:
    with pytest.raises(CorruptBatch, match="SNAPPY"):
        decompress(Codec.SNAPPY, body)


def test_lz4_blocks_are_independent_because_the_java_client_refuses_others() -> None:
    packed = compress(Codec.LZ4, BODIES["text"])
    assert packed[:4] == b"\x04\x22\x4d\x18"
    assert packed[4] >> 6 == 1  # version
    assert packed[4] & 0x20  # independent blocks
    assert not packed[4] & 0x01  # no dictionary
    assert 4 <= packed[5] >> 4 <= 7  # 64 KiB to 4 MiB


def test_a_codec_that_is_none_copies() -> None:
    assert decompress(Codec.NONE, memoryview(b"abc")) == b"abc"
