"""LP1, LP2: patterns match as those of `re` do, in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.config.linear_pattern import DEPTH_MAX, POSITIONS_MAX, LinearPattern

LEAVES = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\.", r"\d", "[]a]", "-", " ", r"[\]b]", "\\x61"])
QUANTIFIERS = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}", "{2,}", "{,2}", "{0}"])
PATTERNS = st.recursive(
    st.just("") | LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join).map("({})".format),
        st.tuples(inner.map("(?:{})".format) | LEAVES, QUANTIFIERS).map("".join),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.text("ab.]1- \n", max_size=8), st.sampled_from(["{}", "^{}$", "(?i){}"]))
def test_it_matches_the_same_texts_as_re(pattern: str, text: str, around: str) -> None:
    pattern = around.format(pattern)
    assert LinearPattern(pattern).fullmatch(text) == bool(re.fullmatch(pattern, text)), pattern


@pytest.mark.parametrize("pattern", ["(a|aa)+(a+)+", "((a*)*)*", "a*a*a*a*a*a*a*b", "(a?){200}a{200}"])
def test_no_pattern_takes_more_steps_than_positions_for_a_character(pattern: str) -> None:
    linear, steps = LinearPattern(pattern), 0

    class Counted:
        def __init__(self, leaf: re.Pattern[str]) -> None:
            self.leaf = leaf

        def fullmatch(self, character: str) -> object:
            nonlocal steps
            steps += 1
            return self.leaf.fullmatch(character)

    linear._leaves = [Counted(leaf) for leaf in linear._leaves]  # type: ignore[misc]
    assert not linear.fullmatch("a" * 255 + "!")
    assert 0 < steps <= 256 * POSITIONS_MAX


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        "(?=a)a",
        "(?<!a)b",
        r"\ba",
        "a^b",
        "a$b",
        "(?>a)",
        "a*+",
        "(?P<n>a)",
        "(?i:a)",
        "a{501}",
        "((a{30}){30}){2}",
        "(){1000000000}",
        "(((){400}){400}){400}",
        "(" * (DEPTH_MAX + 1) + "a" + ")" * (DEPTH_MAX + 1),
    ],
)
def test_patterns_with_backtracking_or_above_the_size_limit_are_refused(pattern: str) -> None:
    re.compile(pattern)
    with pytest.raises(ValueError, match=re.escape(pattern) + "|\\*\\+|{"):
        LinearPattern(pattern)


@pytest.mark.parametrize("pattern", ["(", "a)", "[a", "*a", "a**", "a{2}{3}", "\\"])
def test_patterns_that_re_refuses_are_refused(pattern: str) -> None:
    with pytest.raises((ValueError, re.error)):
        LinearPattern(pattern)


def test_an_escaped_dollar_is_a_character() -> None:
    assert LinearPattern(r"a\$").fullmatch("a$")
    assert LinearPattern("app-.*$").fullmatch("app-1")
