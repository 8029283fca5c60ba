"""Unsigned varints and tagged fields (KIP-482): functions that generated decoders call on rare paths."""

from __future__ import annotations

from typing import Final

from rota.protocol.constructs import TAGS_MAX, TEXT_BYTES_MAX, VARINT_BYTES_MAX, DecodeError

SMALL: Final = tuple(bytes([n]) for n in range(128))  # all varints of one byte


def uvarint(value: int) -> bytes:
    """Encode a number that is not negative."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(buffer: bytes, position: int) -> tuple[int, int]:
    """(value, end). Raises DecodeError on a sixth byte and IndexError at the end of the buffer."""
    value = 0
    for shift in range(0, 7 * VARINT_BYTES_MAX, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise DecodeError("varint longer than five bytes")


def text_size(buffer: bytes, position: int) -> tuple[int, int]:
    """(length of a compact string plus one, end). Raises as read_uvarint, and DecodeError above TEXT_BYTES_MAX."""
    size, position = read_uvarint(buffer, position)
    if size > TEXT_BYTES_MAX + 1:
        raise DecodeError("text longer than any version can carry")
    return size, position


def read_tag(buffer: bytes, position: int) -> tuple[int, int, int]:
    """(tag, start, end) of one tagged field. Raises as read_uvarint, and DecodeError when it leaves the buffer."""
    tag, position = read_uvarint(buffer, position)
    size, position = read_uvarint(buffer, position)
    if size > len(buffer) - position:
        raise DecodeError("tagged field longer than its frame")
    return tag, position, position + size


def skip_tags(buffer: bytes, position: int, count: int) -> int:
    """The position after `count` tagged fields, which are ignored. Raises as read_tag."""
    if count > TAGS_MAX:
        raise DecodeError("too many tagged fields")
    for _ in range(count):
        _, _, position = read_tag(buffer, position)
    return position


def tag_section(fields: tuple[tuple[int, bytes] | None, ...]) -> bytes:
    """Encode a tag section from (tag, value) pairs in ascending order; None is left out."""
    written = [field for field in fields if field is not None]
    out = [uvarint(len(written))]
    for tag, raw in written:
        out += (uvarint(tag), uvarint(len(raw)), raw)
    return b"".join(out)
