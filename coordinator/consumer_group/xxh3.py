"""XXH3, 64 bits, seed 0: the hash with which Kafka compares the metadata of subscribed topics (KIP-1101).

Written from the specification (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). The inputs are short: a
topic has 8 bytes for each partition and more for each rack.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

_64: Final = (1 << 64) - 1
_P32: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_P64: Final = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_MX1: Final = 0x165667919E3779F9
_MX2: Final = 0x9FB21C651E98DF25
_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE_BYTES: Final = 64
_STRIPES: Final = (len(_SECRET) - _STRIPE_BYTES) // 8  # of a block
_LANES: Final = Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    """Return the hash, 0 to 2^64 - 1."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data, size)
    if size <= 128:
        return _up_to_128(data, size)
    return _up_to_240(data, size) if size <= 240 else _long(data, size)


def _int(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _fold(left: int, right: int) -> int:
    product = left * right
    return (product & _64) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = (value * _MX1) & _64
    return value ^ (value >> 32)


def _avalanche_xxh64(value: int) -> int:
    value ^= value >> 33
    value = (value * _P64[1]) & _64
    value ^= value >> 29
    value = (value * _P64[2]) & _64
    return value ^ (value >> 32)


def _up_to_16(data: bytes, size: int) -> int:
    if size > 8:
        low = _int(_SECRET, 24) ^ _int(_SECRET, 32) ^ _int(data, 0)
        high = _int(_SECRET, 40) ^ _int(_SECRET, 48) ^ _int(data, size - 8)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _fold(low, high)) & _64)
    if size >= 4:
        value = _int(data, size - 4, 4) + (_int(data, 0, 4) << 32)
        return _mix_4_to_8(value ^ _int(_SECRET, 8) ^ _int(_SECRET, 16), size)
    if size:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _avalanche_xxh64(combined ^ _int(_SECRET, 0, 4) ^ _int(_SECRET, 4, 4))
    return _avalanche_xxh64(_int(_SECRET, 56) ^ _int(_SECRET, 64))


def _mix_4_to_8(value: int, size: int) -> int:
    value ^= _rotated(value, 49) ^ _rotated(value, 24)
    value = (value * _MX2) & _64
    value ^= (value >> 35) + size
    value = (value * _MX2) & _64
    return value ^ (value >> 28)


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _64


def _mix_16(data: bytes, at: int, secret_at: int) -> int:
    return _fold(_int(data, at) ^ _int(_SECRET, secret_at), _int(data, at + 8) ^ _int(_SECRET, secret_at + 8))


def _up_to_128(data: bytes, size: int) -> int:
    total = size * _P64[0]
    for i in range((size - 1) // 32 + 1):
        total += _mix_16(data, 16 * i, 32 * i) + _mix_16(data, size - 16 * (i + 1), 32 * i + 16)
    return _avalanche(total & _64)


def _up_to_240(data: bytes, size: int) -> int:
    total = size * _P64[0] + sum(_mix_16(data, 16 * i, 16 * i) for i in range(8))
    total = _avalanche(total & _64)
    total += sum(_mix_16(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, size // 16))
    total += _mix_16(data, size - 16, 136 - 17)
    return _avalanche(total & _64)


def _long(data: bytes, size: int) -> int:
    lanes = [_P32[2], _P64[0], _P64[1], _P64[2], _P64[3], _P32[1], _P64[4], _P32[0]]
    block_bytes = _STRIPE_BYTES * _STRIPES
    blocks = (size - 1) // block_bytes
    for block in range(blocks):
        for stripe in range(_STRIPES):
            _accumulate(lanes, data, block * block_bytes + stripe * _STRIPE_BYTES, 8 * stripe)
        _scramble(lanes)
    begin = blocks * block_bytes
    for stripe in range((size - 1 - begin) // _STRIPE_BYTES):
        _accumulate(lanes, data, begin + stripe * _STRIPE_BYTES, 8 * stripe)
    _accumulate(lanes, data, size - _STRIPE_BYTES, len(_SECRET) - _STRIPE_BYTES - 7)
    secret = _LANES.unpack_from(_SECRET, 11)
    total = size * _P64[0]
    for i in range(0, 8, 2):
        total += _fold(lanes[i] ^ secret[i], lanes[i + 1] ^ secret[i + 1])
    return _avalanche(total & _64)


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    values, secrets = _LANES.unpack_from(data, at), _LANES.unpack_from(_SECRET, secret_at)
    for i, value in enumerate(values):
        mixed = value ^ secrets[i]
        lanes[i ^ 1] = (lanes[i ^ 1] + value) & _64
        lanes[i] = (lanes[i] + (mixed & 0xFFFFFFFF) * (mixed >> 32)) & _64


def _scramble(lanes: list[int]) -> None:
    secret = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE_BYTES)
    for i in range(8):
        lanes[i] = ((lanes[i] ^ (lanes[i] >> 47) ^ secret[i]) * _P32[0]) & _64
