import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.transport.sasl.jaas import JAAS_CHARS_MAX, InvalidJaas, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{PLAIN} required username="alice" password="secret";', {"username": "alice", "password": "secret"}),
        (
            f"{PLAIN} required\n  username='alice'\n  password='se\"cret' ;\n",
            {"username": "alice", "password": 'se"cret'},
        ),
        (f'{PLAIN} REQUIRED password="a\\"b\\\\c=;d";', {"password": 'a"b\\c=;d'}),
        (f"{PLAIN} required debug=true user_a=b;", {"debug": "true", "user_a": "b"}),
        (f'{PLAIN} required username = "a" // the user\n password="#/*x*/";', {"username": "a", "password": "#/*x*/"}),
        (f"{PLAIN} required;", {}),
        (f'{PLAIN} required password="";', {"password": ""}),
    ],
)
def test_options_are_parsed_as_by_java(text: str, options: dict[str, str]) -> None:
    module = parse_jaas(text)
    assert (module.name, dict(module.options)) == ("PlainLoginModule", options)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", "expected MODULE required"),
        (f'{PLAIN} username="planted";', "expected MODULE required"),
        (f'{PLAIN} required password="planted"', "a semicolon at its end"),
        (f'{PLAIN} required password="planted;', "a quotation mark"),
        (f"{PLAIN} required planted;", "NAME=VALUE"),
        (f"{PLAIN} required planted=;", "NAME=VALUE"),
        (f"{PLAIN} required a planted b;", "NAME=VALUE"),
        (f"{PLAIN} required a=planted; {PLAIN} required b=c;", "a second one"),
        ("x" * (JAAS_CHARS_MAX + 1), "characters"),
    ],
)
def test_an_invalid_entry_is_refused_without_its_values_in_the_message(text: str, answer: str) -> None:
    with pytest.raises(InvalidJaas, match=answer) as refused:
        parse_jaas(text)
    assert "planted" not in str(refused.value)


def test_values_are_in_no_repr() -> None:
    assert "planted" not in repr(parse_jaas(f'{PLAIN} required password="planted";'))


@given(st.text(alphabet="ab=;\"'\\ \n/*#", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_jaas("M required " + text)
    except InvalidJaas:
        return


@given(st.text(max_size=30))
def test_a_quoted_value_is_unquoted(value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_jaas(f'M required v="{quoted}";').options["v"] == value


def test_escapes_are_javas() -> None:
    text = r'PlainLoginModule required password="\101\7\412\a\v\"\\8";'
    assert parse_jaas(text).options == {"password": 'A\x07!2\a\v"\\8'}
