"""JP1: what Java's patterns mean, and the constructs that are refused."""

from __future__ import annotations

import re

import pytest

from rota.coordinator.security.java_pattern import NotTranslated, compile_java


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        (r"a.b", "a\x85b", False),
        (r"a[.]b", "a.b", True),
        (r"a\.b", "axb", False),
        (r"[^,]+", "a\u2028", True),
        (r"(a)\1", "aa", True),
        (r"(?:a|b)(?=c)c(?<!b)", "ac", True),
        (r"(?i:CN)=x", "cn=x", True),
        (r"a++b", "aab", True),
        (r"\x41\u0042", "AB", True),
        (r"[\]a]+", "a]", True),
        (r"x$(?:\r\n)?", "x\r\n", True),
    ],
)
def test_a_pattern_means_the_same(pattern: str, text: str, is_match: bool) -> None:
    assert (compile_java(pattern).fullmatch(text) is not None) is is_match


@pytest.mark.parametrize(
    "pattern",
    [r"a\Z", r"\v", r"\0", r"[a-z&&[^b]]", "[a[b]]", r"\p{L}", r"\Qa\E", r"\h", r"(?s)a.b", "(?x) a", "[]a]", "[^]a]"],
)
def test_what_python_would_read_in_another_way_is_refused(pattern: str) -> None:
    with pytest.raises((NotTranslated, re.error)):
        compile_java(pattern)
