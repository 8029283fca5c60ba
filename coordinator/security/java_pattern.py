"""A regular expression of Java as one of Python's `re`, with the same meaning or refused. Pure.

Law
    JP1 A pattern matches what Java's matches: classes are ASCII, `.` stops at each of Java's line terminators, and what
        Python would read in another way (unions and intersections of classes, `\\Z`, `\\v`, octal numbers) is refused.
"""

from __future__ import annotations

import re
from typing import Final

_LINE_TERMINATORS: Final = r"\n\r\x85\u2028\u2029"
_END: Final = r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)"  # of Java's `$`
_TOKEN: Final = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)|\(\?<(?=[A-Za-z])|\(\?[a-zA-Z-]+[:)]|.", re.DOTALL)
_ESCAPES: Final = frozenset("dDwWsSbBAtnrfa")  # of letters that mean the same in both, beside \xHH and \uHHHH
_FLAGS: Final = frozenset(("(?i)", "(?i:"))


class NotTranslated(ValueError):
    """A construct of a pattern has no counterpart of the same meaning, or is none of Java's."""


def compile_java(pattern: str) -> re.Pattern[str]:
    """Return the pattern. Raises re.error, NotTranslated."""
    translated: list[str] = []
    depth = 0  # depth: inside a class in brackets
    for token in _TOKEN.findall(pattern):
        if depth:
            translated.append(_in_class(token, translated))
            depth -= token == "]"
        elif token == "[":
            translated.append(token)
            depth = 1
        else:
            translated.append(_outside(token))
    return re.compile("".join(translated), re.ASCII)


def _outside(token: str) -> str:
    if token == ".":
        return f"[^{_LINE_TERMINATORS}]"
    if token == "$":
        return _END
    if token == "(?<":
        return "(?P<"
    if token.startswith("(?") and token not in _FLAGS:
        raise NotTranslated(f"{token} is not supported")
    return _escape(token, "123456789")


def _in_class(token: str, before: list[str]) -> str:
    if token == "[" or (token == "&" and before[-1] == "&"):
        raise NotTranslated("unions and intersections of classes are not supported")
    if token == "]" and (before[-1] == "[" or before[-2:] == ["[", "^"]):
        raise NotTranslated("a class is empty")
    return _escape(token, "")


def _escape(token: str, digits: str) -> str:
    """Return a token as it is, if both languages read it in one way."""
    if len(token) != 2 or token[0] != "\\" or not token[1].isalnum() or token[1] in _ESCAPES or token[1] in digits:
        return token
    raise NotTranslated(f"{token} is not supported")
