"""The subject of a certificate as Java prints it (RFC 2253): `CN=Bob,OU=clients,O=X`. Pure.

OpenSSL has checked the certificate before: this reads the few parts of its DER that lead to the subject, and gives
ValueError for bytes that are no certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_KEYWORDS: Final = {  # RFC 2253, section 2.3; Java prints any other type by its number, and its value in hexadecimal
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ENCODINGS: Final = {12: "utf-8", 19: "ascii", 20: "latin-1", 22: "ascii", 28: "utf-32-be", 30: "utf-16-be"}
_ESCAPED: Final = ',=+<>;"\\'
_VERSION_TAG: Final = 0xA0

Element = tuple[int, bytes, bytes]  # tag, content, the whole element


def subject_of(certificate: bytes) -> str:
    """Return the name in the subject of a certificate in DER. Raises ValueError."""
    try:
        fields = list(_elements(next(_elements(next(_elements(certificate))[1]))[1]))
        subject = fields[5 if fields[0][0] == _VERSION_TAG else 4]
        names = [_relative_name(content) for _, content, _ in _elements(subject[1])]
    except (IndexError, StopIteration):
        raise ValueError("it is no certificate") from None
    return ",".join(reversed(names))


def _relative_name(content: bytes) -> str:
    return "+".join(_attribute(pair) for _, pair, _ in _elements(content))


def _attribute(pair: bytes) -> str:
    kind, value = _elements(pair)
    name = _object_id(kind[1])
    keyword, encoding = _KEYWORDS.get(name), _ENCODINGS.get(value[0])
    if keyword is None or encoding is None:
        return f"{keyword or name}=#{value[2].hex()}"
    return f"{keyword}={_escape(value[1].decode(encoding))}"


def _escape(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in _ESCAPED else char for char in text)
    if escaped[:1] in ("#", " "):
        escaped = "\\" + escaped
    return f"{escaped[:-1]}\\ " if len(text) > 1 and escaped.endswith(" ") else escaped


def _object_id(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _elements(data: bytes) -> Iterator[Element]:
    """Yield the elements of a DER value in their order."""
    at = 0
    while at < len(data):
        start, tag, length = at, data[at], data[at + 1]
        at += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[at : at + size])
            at += size
        if at + length > len(data):
            raise ValueError("it is cut off")
        yield tag, data[at : at + length], data[start : at + length]
        at += length
