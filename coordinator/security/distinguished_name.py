"""The subject of a certificate as Java prints it (RFC 2253): `CN=Bob,OU=clients,O=X`. Pure.

OpenSSL has checked the certificate before: this reads the few parts of its DER that lead to the subject, and raises
ValueError for bytes that are no certificate.

Law
    DI1 The name is the one that Java prints, so that mapping rules and ACLs of Kafka match the same certificates. A
        value that is not UTF-8 is refused: Java's replacement character would give two subjects one name.
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
_TEXT_TAGS: Final = frozenset({12, 19, 20, 22, 27, 30})  # Java reads each as UTF-8, a BMPString (30) as well
_ESCAPED: Final = ',=+<>#;"\\'
_BLANKS: Final = " \r"
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
    keyword = _KEYWORDS.get(name)
    if keyword is None or value[0] not in _TEXT_TAGS:
        return f"{keyword or name}=#{value[2].hex()}"
    return f"{keyword}={_escape(value[1].decode())}"


def _escape(text: str) -> str:
    """Escape the characters with a meaning, NUL, and each blank at the beginning and the end."""
    leading = len(text) - len(text.lstrip(_BLANKS))
    trailing = len(text.rstrip(_BLANKS))
    return "".join(_escape_char(char, is_edge=not leading <= at < trailing) for at, char in enumerate(text))


def _escape_char(char: str, *, is_edge: bool) -> str:
    if char == "\0":
        return "\\00"
    return f"\\{char}" if is_edge or char in _ESCAPED else char


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
