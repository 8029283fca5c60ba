from __future__ import annotations

from dataclasses import dataclass, fields

import pytest

from rota.client.checks import between, check, instance, one_of, parsed, refused, some, unknown, wire_text
from rota.client.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    shelves: int = some("how many", 3, between(1, 9))
    name: str = some("over the door", right=wire_text(1))
    owner: str | None = some("who has it", None)
    open: bool = some("may one go in", True)
    goods: tuple[str, ...] = some("on the shelves", ("bread",))
    kind: str | int = some("a word or a number", "baker")


FIELDS = {field.name: field for field in fields(Shop)}


def test_what_is_right_is_taken() -> None:
    check(Shop(name="x", shelves=9, owner="me", open=False, goods=(), kind=4))


def test_a_list_or_text_is_taken_for_the_tuple_that_is_meant() -> None:
    goods = ["bread", "rolls"]
    shop = Shop(name="x", goods=goods)  # type: ignore[arg-type]
    check(shop)
    goods.clear()
    assert shop.goods == ("bread", "rolls")
    shop = Shop(name="x", goods="bread, rolls")  # type: ignore[arg-type]
    check(shop)
    assert shop.goods == ("bread", "rolls")


@pytest.mark.parametrize(
    ("given", "told"),
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
def test_what_is_wrong_is_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError) as failed:
        check(Shop(**({"name": "x"} | given)))  # type: ignore[arg-type]
    assert str(failed.value) == told


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
def test_text_is_read_as_what_it_is_for(name: str, text: object, value: object) -> None:
    assert parsed(name, FIELDS[name], text) == value


@pytest.mark.parametrize(("name", "text"), [("shelves", "many"), ("shelves", ""), ("open", "1"), ("open", "yes")])
def test_text_that_cannot_be_read(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=name):
        parsed(name, FIELDS[name], text)


def test_a_refusal_has_both_names() -> None:
    assert str(refused("group_id", "", "a name")) == "group_id (group.id) is ''; it must be a name"


def test_an_unknown_setting_is_told_with_its_neighbour_or_its_replacement() -> None:
    assert str(unknown("Shop", "shelfs", ["shelves", "name"])) == "Shop has no setting shelfs; did you mean shelves?"
    assert str(unknown("Shop", "zzz", ["b", "a"])) == "Shop has no setting zzz; known: a, b"
    assert str(unknown("Shop", "zzz", ["b"], "ask the baker")) == "Shop has no setting zzz: ask the baker"


def test_rules() -> None:
    assert between(0)(0) is one_of("a")("a") is wire_text()("") is wire_text(1)(None) is instance("a.b-c_9") is None
    assert instance(None) is None
    assert one_of("a", "b")("c") == "one of a, b"
    assert between(0)("1") == "an integer of at least 0"
    assert wire_text(1)("") == "of 1 to 32767 bytes"
    assert all(instance(one) for one in ("", ".", "..", "a b", "é", "a" * 250))
