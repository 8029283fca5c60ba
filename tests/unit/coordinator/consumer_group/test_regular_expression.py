"""The syntax and the semantics of RE2, and the bound on the time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.consumer_group.characters import TEXT
from rota.coordinator.consumer_group.regular_expression import (
    CACHED_INSTRUCTIONS_MAX,
    NAME_WORK_MAX,
    InvalidExpression,
    TooExpensive,
    compile_expression,
)

NAMES = ("", "a", "b", "ab", "ba", "aab", "abb", "A", "a.b", "a-b", "a_1", "12", "topic-1", "__x", "aaaaab")


def test_an_expression_matches_the_whole_name() -> None:
    assert compile_expression("a").matches("a")
    assert not compile_expression("a").matches("ab")
    assert not compile_expression("b").matches("ab")


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        (r"\Qa.b\E", {"a.b"}),
        ("[[:alpha:]]+", {"a", "b", "ab", "ba", "aab", "abb", "A", "aaaaab"}),
        ("[^[:alpha:]]+", {"12"}),
        ("(?i)AB", {"ab"}),
        ("(?i:A)", {"a", "A"}),
        ("(?P<name>a)", {"a"}),
        ("(?<name>a)", {"a"}),
        (r"\pL", {"a", "b", "A"}),
        (r"\p{Lu}", {"A"}),
        (r"\PL\PL", {"12"}),
        (r"\x61", {"a"}),
        (r"\x{62}", {"b"}),
        (r"a{,2}", set()),  # RE2 takes this as text
        (r"\z", {""}),
        ("a|", {"a", ""}),
        (r"(?i)[[:^lower:]]", set()),
        (r"(?i)\P{Lu}\PL\P{Ll}", set()),
        ("(?i)\u212a", set()),
        ("(?i)a\u017fx|aab", {"aab"}),
    ],
)
def test_what_re2_has_and_python_has_not(expression: str, matches: set[str]) -> None:
    compiled = compile_expression(expression)
    assert {name for name in NAMES if compiled.matches(name)} == matches


@pytest.mark.parametrize(
    "expression",
    [
        "(", ")", "*a", "a**", "a{2}{3}", "[a", "[z-a]", "[[:foo:]]", "(?=a)", "(?!a)", "(?<=a)", r"\1", r"\Z", "\\",
        "a{1001}", "a{2,1}", "(?P<>a)",
        "(?P<n>a)(?<n>b)", r"\pX", r"\p{Foo}", r"\x{zz}", "(?z)", "((a{500}){500}){500}", "(" * 101,
    ],
)  # fmt: skip
def test_what_re2_refuses_is_refused(expression: str) -> None:
    with pytest.raises(InvalidExpression):
        compile_expression(expression)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        (r"\Qab\E*", {"a", "ab", "abb"}),
        ("a(?i)*", {"", "a"}),
        ("(ab|b)(?U)+", {"b", "ab", "abb"}),
        ("a*(?i)*b{0}?", {"", "a"}),
        (r"a\Q\E*", {"", "a"}),
        ("[[:alpha]+", {"a"}),
        (r"a\é?|A", {"a", "A"}),
    ],
)
def test_rx4_what_re2j_takes_is_taken_as_it_does(expression: str, names: set[str]) -> None:
    compiled = compile_expression(expression)
    assert {name for name in NAMES if compiled.matches(name)} == names


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("(", "missing closing )"),
        ("a)", "regexp/syntax: internal error"),
        ("[a", "missing closing ]"),
        ("[[:alpha]", None),
        ("*", "missing argument to repetition operator"),
        ("{1}", "missing argument to repetition operator"),
        ("(?i){2}", "missing argument to repetition operator"),
        ("|+", "missing argument to repetition operator"),
        ("{2,1}", "invalid repeat count"),
        ("a**", "invalid nested repetition operator"),
        ("{+", "invalid nested repetition operator"),
        ("a{{1}", "invalid nested repetition operator"),
        (r"\x6", "invalid escape sequence"),
        (r"\1", "invalid escape sequence"),
        ("\\", "trailing backslash at end of expression"),
        ("[z-a]", "invalid character class range"),
        ("[[:foo:]]", "invalid character class range"),
        (r"\p", "invalid character class range"),
        (r"\p{L", "invalid character class range"),
        ("(?", "invalid or unsupported Perl syntax"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?<=a)", "invalid named capture"),
        ("(?P<n>a)(?<n>b)", "duplicate capture group name"),
    ],
)
def test_rx4_what_is_wrong_has_the_text_of_re2j(expression: str, text: str | None) -> None:
    if text is None:
        compile_expression(expression)
        return
    with pytest.raises(InvalidExpression) as invalid:
        compile_expression(expression)
    assert str(invalid.value) == text


@pytest.mark.parametrize("expression", ["(a*)*b", "(a+)+c", "(a|aa)+c", "(x+x+)+y", "(.*)(.*)(.*)(.*)(.*)c"])
def test_no_expression_takes_exponential_time(expression: str) -> None:
    assert not compile_expression(expression).matches("a" * 249)
    assert not compile_expression(expression).matches("x" * 249)


@pytest.mark.parametrize(
    "expression",
    [
        "((((){1000}){1000}){1000}){1000}",
        "(a" + "()" * 5_000 + "){1000}",
        "(a" + "(){5}" * 3_000 + "){1000}",
        "(" * 99 + "a" + ")" * 99 + "{1000}",
    ],
)
def test_what_adds_no_instruction_is_not_built(expression: str) -> None:
    """RX1. Nothing, a thousand times a thousand times, stopped the event loop."""
    assert compile_expression(expression).size <= 1_001


@pytest.mark.parametrize("count", ["9" * 5_000, "1," + "9" * 5_000, "10000"])
def test_a_count_of_many_digits_is_refused(count: str) -> None:
    """Python refuses to convert more than 4,300 digits, which is not an InvalidExpression."""
    with pytest.raises(InvalidExpression, match="invalid repeat count"):
        compile_expression(f"a{{{count}}}")


@pytest.mark.parametrize("expression", ["(.?){1000}", "((.?){100}){90}", "(.?.?){4}((a?){95}){100}b"])
def test_a_match_that_takes_too_much_work_is_given_up(expression: str) -> None:
    """RX1."""
    compiled = compile_expression(expression)
    with pytest.raises(TooExpensive):
        compiled.matches("a" * 249)
    assert compiled.work < NAME_WORK_MAX + 2 * compiled.size


@pytest.mark.parametrize(("expression", "name"), [(".*" * 50, "x" * 20), (".*" * 6_000, "abc" * 20)])
def test_rx1_equal_states_are_remembered_as_one_object(expression: str, name: str) -> None:
    """A look-up of a step that is remembered compares equal sets element by element, and counts as one instruction."""
    compiled = compile_expression(expression, TEXT)
    assert compiled.matches(name)
    remembered = [each for (states, _, _), found in compiled._steps.items() for each in (states, found)]
    assert len({id(each) for each in remembered}) == len(set(remembered))
    assert all(compiled._steps[key] is compiled._known[found] for key, found in compiled._steps.items())


def test_remembered_steps_are_bounded() -> None:
    compiled = compile_expression("(?:" + "|".join(f".{{{n}}}a" for n in range(60)) + ")+")
    for seed in range(200):
        compiled.matches(f"{seed:08b}".replace("0", "a").replace("1", "b") * 4)
        assert sum(len(key[0]) + len(found) for key, found in compiled._steps.items()) < 2 * CACHED_INSTRUCTIONS_MAX


pieces = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "_", "-", "1", "A", "^", "$", r"\b"])


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    suffix = st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,}", "{0,2}"])
    return st.one_of(
        st.builds(lambda left, right: left + right, inner, inner),
        st.builds(lambda left, right: f"(?:{left}|{right})", inner, inner),
        st.builds(lambda body, how: f"({body}){how}", inner, suffix),
    )


@given(st.recursive(pieces, combined, max_leaves=8), st.text("ab1_-.A", max_size=8))
def test_where_python_has_the_same_syntax_the_result_is_the_same(expression: str, name: str) -> None:
    ours = compile_expression(expression).matches(name)
    theirs = re.compile(expression, re.ASCII).fullmatch(name) is not None
    assert ours == theirs


TEXTS = ("a b", "ä", "Ä", "k", "\N{KELVIN SIGN}", "a\nb", "tx:1", "{x}", "日本", "٣", "", "a", "1")


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ("a.b", {"a b"}),
        ("(?s)a.b", {"a b", "a\nb"}),
        ("(?m)a$(?s:.)^b", {"a\nb"}),
        ("a$(?s:.)^b", set()),
        ("a[^x]b", {"a b", "a\nb"}),
        (r"a\sb", {"a b", "a\nb"}),
        (r"tx:\d+", {"tx:1"}),
        (r"\{x\}", {"{x}"}),
        ("{x}", {"{x}"}),
        ("ä", {"ä"}),
        ("(?i)ä", {"ä", "Ä"}),
        ("(?i)[à-ö]", {"ä", "Ä"}),
        ("(?i)K", {"k", "\N{KELVIN SIGN}"}),
        ("[à-ö]", {"ä"}),
        (r"\x{e4}", {"ä"}),
        (r"\w", {"a", "k", "1"}),
        (r"\W", {"ä", "Ä", "\N{KELVIN SIGN}", "٣"}),
        (r"\pL", {"a", "ä", "Ä", "k", "\N{KELVIN SIGN}"}),
        (r"\p{Lu}", {"Ä", "\N{KELVIN SIGN}"}),
        (r"\p{Lo}+", {"日本"}),
        (r"\p{Nd}", {"1", "٣"}),
        (r"[\PL]", {"1", "٣"}),
        ("[[:^ascii:]]+", {"ä", "Ä", "\N{KELVIN SIGN}", "日本", "٣"}),
        (r"\Q{x}\E", {"{x}"}),
    ],
)
def test_txc13_an_expression_for_texts_knows_all_characters(expression: str, matches: set[str]) -> None:
    compiled = compile_expression(expression, TEXT)
    assert {text for text in TEXTS if compiled.matches(text)} == matches


@pytest.mark.parametrize("expression", [r"\p{Greek}", "a**", "(", "[z-a]", r"\1"])
def test_an_expression_for_texts_that_is_not_valid_is_refused(expression: str) -> None:
    with pytest.raises(InvalidExpression):
        compile_expression(expression, TEXT)


def test_rx1_the_comparisons_of_a_class_count() -> None:
    """A class of many characters, a thousand times: none is looked into by one instruction alone."""
    items = "".join(chr(0x4E00 + 2 * number) for number in range(5_000))
    with pytest.raises(InvalidExpression, match="too large"):
        compile_expression(f"[{items}]{{1000}}", TEXT)
    compiled = compile_expression(f"[{items}]*", TEXT)
    with pytest.raises(TooExpensive):
        compiled.matches(items)


@given(st.recursive(pieces, combined, max_leaves=8), st.text("ab1_-.Aä:€ ", max_size=8))
def test_where_python_has_the_same_syntax_texts_match_the_same(expression: str, text: str) -> None:
    ours = compile_expression(expression, TEXT).matches(text)
    assert ours == (re.compile(expression, re.ASCII).fullmatch(text) is not None)
