"""Classes of names and of texts have the same characters, where both can have them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.consumer_group.characters import (
    CATEGORIES,
    NAME_CHARACTERS,
    NAMES,
    PERL,
    POSIX,
    TEXT,
    UNICODE,
    CharacterTest,
    cases,
)

Both = tuple[Any, Any]  # the class of names, the class of texts
char = st.sampled_from(sorted(NAME_CHARACTERS))
simple = st.one_of(
    char.map(lambda each: (NAMES.one(each), TEXT.one(each))),
    st.tuples(char, char).map(lambda ends: (NAMES.span(*sorted(ends)), TEXT.span(*sorted(ends)))),
    st.sampled_from(sorted({*PERL.values(), *POSIX.values()}, key=sorted)).map(
        lambda chars: (NAMES.ascii(chars), TEXT.ascii(chars))
    ),
    st.sampled_from(sorted(UNICODE.keys() & CATEGORIES)).map(lambda name: (NAMES.unicode(name), TEXT.unicode(name))),
)


def combined(inner: st.SearchStrategy[Both]) -> st.SearchStrategy[Both]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(
            lambda items: (NAMES.union([names for names, _ in items]), TEXT.union([texts for _, texts in items]))
        ),
        inner.map(lambda both: (NAMES.complement(both[0]), TEXT.complement(both[1]))),
    )


# a class is folded before its complement is taken: that of an s alone has a long s, which is another case of it
folded = st.one_of(simple, simple.map(lambda both: (NAMES.fold(both[0]), TEXT.fold(both[1]))))


@given(st.recursive(folded, combined, max_leaves=5))
def test_both_have_the_same_characters_of_names(both: Both) -> None:
    names, texts = both
    assert {each for each in NAME_CHARACTERS if each in NAMES.known(names)} == {
        each for each in NAME_CHARACTERS if each in TEXT.known(texts)
    }


@pytest.mark.parametrize(
    "equal",
    [
        "aA",
        "1",
        "kK\u212a",
        "sS\u017f",
        "\u00df\u1e9e",
        "\u00b5\u03bc\u039c",
        "\u0130",
        "\u0131",
        "\u0345\u0399\u03b9\u1fbe",
        "\ufb01",
    ],
)
def test_rx4_what_is_equal_without_regard_to_case(equal: str) -> None:
    """A letter whose other case is two letters made every pattern with (?i) and a class of Unicode fail."""
    for each in equal:
        assert cases(each) == set(equal)
    assert "\u00df" in TEXT.fold(TEXT.unicode("L"))


def test_a_class_of_texts_counts_its_comparisons() -> None:
    one, two = TEXT.one("a"), TEXT.union([TEXT.one("a"), TEXT.span("b", "z")])
    assert (TEXT.weight(one), TEXT.weight(two), TEXT.weight(TEXT.complement(two))) == (1, 2, 2)
    assert TEXT.weight(TEXT.fold(two)) > 2
    assert NAMES.weight(NAMES.dot(takes_newline=True)) == 0


@pytest.mark.parametrize(("takes_newline", "found"), [(False, False), (True, True)])
def test_a_dot_takes_a_newline_when_it_is_told_to(takes_newline: bool, found: bool) -> None:
    dot = TEXT.dot(takes_newline=takes_newline)
    assert ("\n" in dot, "é" in dot) == (found, True)


def test_a_class_of_unicode_that_is_not_supported_is_none() -> None:
    assert TEXT.unicode("Greek") is NAMES.unicode("Greek") is None
    assert 7 not in CharacterTest(lambda char: True), "no character"
