"""Compression in Kafka's formats: gzip, snappy in xerial's framing, lz4 frames, zstd.

Laws
    decompress(compress(data)) = data, and other clients can decompress it.
    Decompression stops at its limit: a decompression bomb costs no more than the limit.
    cramjam is imported for the first batch that is compressed or decompressed: it takes 1.5 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from rota.protocol.records.batch import Buffer, Codec
from rota.protocol.records.errors import CorruptBatch

DECOMPRESSED_BYTES_MAX: Final = 128 << 20
GZIP_LEVEL: Final = 6
ZSTD_LEVEL: Final = 3

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + Struct(">ii").pack(1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_SIZE: Final = Struct(">I")
_SNAPPY_RATIO_MAX: Final = 64  # a copy of 64 bytes takes two at least
_GUESS_RATIO: Final = 4
_GUESS_BYTES_MIN: Final = 4096


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`level` is that of the codec; None: Kafka's default (gzip 6, zstd 3). snappy has no levels."""
    if codec is Codec.NONE:
        return bytes(data)
    import cramjam

    match codec:
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(data, level=GZIP_LEVEL if level is None else level))
        case Codec.SNAPPY:
            return _snappy_write(data)
        case Codec.LZ4:
            return _lz4_write(data, level)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=ZSTD_LEVEL if level is None else level))


def decompress(codec: Codec, data: Buffer, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Raises CorruptBatch for bytes that are not of that codec, or that decompress to more than `limit_bytes`."""
    if codec is Codec.NONE:
        return bytes(data)
    import cramjam

    match codec:
        case Codec.GZIP:
            return _decompress_into(cramjam.gzip.decompress_into, codec, data, limit_bytes)
        case Codec.SNAPPY:
            return _snappy_read(data, limit_bytes)
        case Codec.LZ4:
            return _decompress_into(cramjam.lz4.decompress_into, codec, data, limit_bytes)
        case Codec.ZSTD:
            return _decompress_into(cramjam.zstd.decompress_into, codec, data, limit_bytes)


def _decompress_into(into: Callable[[Buffer, bytearray], int], codec: Codec, data: Buffer, limit_bytes: int) -> bytes:
    """Decompress into a buffer of estimated size; when that fails, into larger ones up to the limit.

    A buffer that is too small and corrupt bytes raise the same error, so both are tried up to the limit; memory pages
    that are not written cost nothing.
    """
    import cramjam

    room = min(limit_bytes, max(_GUESS_BYTES_MIN, len(data) * _GUESS_RATIO))
    while True:
        out = bytearray(room)
        try:
            size = into(data, out)
        except cramjam.DecompressionError as error:
            if room == limit_bytes:
                raise CorruptBatch(f"{codec.name}: not decompressed within {limit_bytes} bytes: {error}") from None
            room = min(limit_bytes, room * _GUESS_RATIO)
        else:
            with memoryview(out) as view:
                return bytes(view[:size])


def _lz4_write(data: Buffer, level: int | None) -> bytes:
    """Compress with independent blocks: the Java client refuses linked blocks."""
    import cramjam

    stream = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    stream.compress(bytes(data))
    return bytes(stream.finish())


def _snappy_write(data: Buffer) -> bytes:
    import cramjam

    parts = [_XERIAL_HEADER]
    with memoryview(data) as view:
        for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
            parts.append(_SIZE.pack(len(block)))
            parts.append(block)
    return b"".join(parts)


def _snappy_read(data: Buffer, limit_bytes: int) -> bytes:
    """xerial's framing, or one block without framing, as older versions of librdkafka send."""
    with memoryview(data) as view:
        if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
            return _snappy_block(view, limit_bytes)
        parts: list[bytes] = []
        at, end = len(_XERIAL_HEADER), len(view)
        if end < at:
            raise CorruptBatch("SNAPPY: a header that is cut short")
        while at < end:
            if end - at < _SIZE.size:
                raise CorruptBatch("SNAPPY: a block's size is cut short")
            size = _SIZE.unpack_from(view, at)[0]
            at += _SIZE.size
            if size > end - at:
                raise CorruptBatch(f"SNAPPY: a block of {size} bytes, but {end - at} are there")
            parts.append(_snappy_block(view[at : at + size], limit_bytes))
            limit_bytes -= len(parts[-1])
            at += size
    return b"".join(parts)


def _snappy_block(block: memoryview, limit_bytes: int) -> bytes:
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit_bytes or size > len(block) * _SNAPPY_RATIO_MAX:
            raise CorruptBatch(f"SNAPPY: a block of {len(block)} bytes claims to hold {size}, of {limit_bytes} allowed")
        out = bytearray(size)
        cramjam.snappy.decompress_raw_into(block, out)
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"SNAPPY: {error}") from None
    return bytes(out)
