from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import pytest

from rota.client.checks import (
    between,
    check,
    instance,
    nearest,
    offsets_to_commit,
    one_of,
    parsed,
    refused,
    setting,
    several,
    topic_name,
    topic_partitions,
    unknown,
    wire_name,
    wire_text,
)
from rota.client.errors import ConfigError, IllegalArgument, IllegalUse
from rota.client.types import OffsetAndMetadata, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    shelves: int = setting("how many", 3, between(1, 9))
    name: str = setting("above the entrance", validator=wire_text(1))
    owner: str | None = setting("who has it", None)
    open: bool = setting("may one go in", True)
    goods: tuple[str, ...] = setting("on the shelves", ("bread",))
    kind: str | int = setting("a word or a number", "baker")


FIELDS = {field.name: field for field in fields(Shop)}


def test_valid_settings_are_accepted() -> None:
    check(Shop(name="x", shelves=9, owner="me", open=False, goods=(), kind=4))


def test_a_list_or_text_becomes_a_tuple() -> None:
    goods = ["bread", "rolls"]
    shop = Shop(name="x", goods=goods)  # type: ignore[arg-type]
    check(shop)
    goods.clear()
    assert shop.goods == ("bread", "rolls")
    shop = Shop(name="x", goods="bread, rolls")  # type: ignore[arg-type]
    check(shop)
    assert shop.goods == ("bread", "rolls")


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"shelves": 0}, "shelves (shelves) is 0; it must be an integer of at least 1 and at most 9"),
        ({"shelves": True}, "shelves (shelves) is True; it must be of type int"),
        ({"open": 1}, "open (open) is 1; it must be of type bool"),
        ({"name": None}, "name (name) is None; it must be of type str"),
        ({"name": ""}, "name (name) is ''; it must be of 1 to 32767 bytes"),
        ({"goods": 1}, "goods (goods) is 1; it must be of type tuple[str, ...]"),
        ({"goods": [1]}, "goods (goods) is (1,); it must be of type tuple[str, ...]"),
        ({"kind": 1.5}, "kind (kind) is 1.5; it must be of type str or int"),
    ],
)
def test_invalid_settings_are_refused(given: dict[str, object], answer: str) -> None:
    with pytest.raises(ConfigError) as failed:
        check(Shop(**({"name": "x"} | given)))  # type: ignore[arg-type]
    assert str(failed.value) == answer


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("shelves", " 7 ", 7),
        ("open", "TRUE", True),
        ("open", "false", False),
        ("goods", "bread, ,rolls", ("bread", "rolls")),
        ("name", " x ", "x"),
        ("shelves", 7, 7),
        ("open", None, None),
    ],
)
def test_text_is_parsed_to_the_type_of_the_setting(name: str, text: object, value: object) -> None:
    assert parsed(name, FIELDS[name], text) == value


@pytest.mark.parametrize(("name", "text"), [("shelves", "many"), ("shelves", ""), ("open", "1"), ("open", "yes")])
def test_text_that_cannot_be_read(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=name):
        parsed(name, FIELDS[name], text)


def test_a_refusal_has_both_names() -> None:
    assert str(refused("group_id", "", "a name")) == "group_id (group.id) is ''; it must be a name"


def test_an_unknown_setting_is_refused_with_the_nearest_name_or_its_replacement() -> None:
    assert str(unknown("Shop", "shelfs", ["shelves", "name"])) == "Shop has no setting shelfs; did you mean shelves?"
    assert str(unknown("Shop", "zzz", ["b", "a"])) == "Shop has no setting zzz; known: a, b"
    assert str(unknown("Shop", "zzz", ["b"], "ask the baker")) == "Shop has no setting zzz: ask the baker"


def test_rules() -> None:
    assert between(0)(0) is one_of("a")("a") is wire_text()("") is wire_text(1)(None) is instance("a.b-c_9") is None
    assert instance(None) is None
    assert one_of("a", "b")("c") == "one of a, b"
    assert between(0)("1") == "an integer of at least 0"
    assert wire_text(1)("") == "of 1 to 32767 bytes"
    assert all(instance(item) for item in ("", ".", "..", "a b", "é", "a" * 250))


@pytest.mark.parametrize("single", ["ab", b"ab", bytearray(b"ab"), TopicPartition("t", 0), 7])
def test_a_single_value_where_several_are_expected_is_refused(single: Any) -> None:
    with pytest.raises(IllegalArgument, match=r"names takes a list, tuple or set of topic names, not ") as raised:
        several("names", single, "topic names")
    assert isinstance(raised.value, TypeError)


def test_several_takes_any_iterable() -> None:
    assert several("names", ["a", "b"], "topic names") == ("a", "b")
    assert several("names", iter(("a",)), "topic names") == ("a",)
    assert several("names", {"a": 1}, "topic names") == ("a",)
    assert several("names", (), "topic names") == ()


def test_the_nearest_valid_value_is_named() -> None:
    assert nearest("murmur2", ("murmur2_random", "random")) == "; did you mean murmur2_random?"
    assert nearest("zzz", ("murmur2_random", "random")) == ""


@pytest.mark.parametrize("text", ["\ud800", "x" * 32_768, "é" * 16_384])
def test_nc14_a_text_that_no_request_can_carry_is_refused(text: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: wire_name("group", text),
        lambda: several("names", ["a", text], "topic names"),
        lambda: topic_name(text),
        lambda: topic_partitions("partitions", [TopicPartition(text, 0)]),
        lambda: offsets_to_commit({TopicPartition("t", 0): OffsetAndMetadata(1, text)}),
    ]
    for call in calls:
        with pytest.raises(IllegalUse, match=r"half of a surrogate pair|3276[78] bytes: 32767 fit|32768 bytes"):
            call()
    assert wire_text()(text) == "of 0 to 32767 bytes"
    with pytest.raises(IllegalArgument, match="group takes a str, not None"):
        wire_name("group", None)


def test_nc14_the_longest_text_fits() -> None:
    assert several("names", ["x" * 32_767, "é" * 16_383, b"id"], "names")
