"""Types of other schemas are written into the schema that refers to them."""

from __future__ import annotations

import json

import pytest

from rota.spark_connector.pipelines.avro_references import inlined

MONEY = {"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}
KIND = {"type": "enum", "name": "Kind", "symbols": ["A"]}  # without a namespace


def record(*types: object, **more: object) -> dict[str, object]:
    fields = [{"name": f"f{at}", "type": each} for at, each in enumerate(types)]
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": fields, **more}


def types(schema: dict[str, object], **definitions: dict[str, object]) -> list[object]:
    given = {
        each.get("namespace", "") + "." * ("namespace" in each) + str(each["name"]): each
        for each in definitions.values()
    }
    found = json.loads(inlined(json.dumps(schema), {name: json.dumps(each) for name, each in given.items()}))
    return [field["type"] for field in found["fields"]]


def test_a_type_is_defined_at_its_first_use_and_named_afterwards() -> None:
    assert types(record("Money", "shop.Money", "string"), money=MONEY) == [MONEY, "shop.Money", "string"]


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        (["null", "Money"], ["null", MONEY]),
        ({"type": "array", "items": "Money"}, {"type": "array", "items": MONEY}),
        ({"type": "map", "values": "Money"}, {"type": "map", "values": MONEY}),
        ({"type": {"type": "array", "items": "Money"}}, {"type": {"type": "array", "items": MONEY}}),
        ({"type": "long", "logicalType": "timestamp-micros"}, {"type": "long", "logicalType": "timestamp-micros"}),
    ],
)
def test_a_type_is_found_inside_of_other_types(around: object, expected: object) -> None:
    assert types(record(around), money=MONEY) == [expected]


def test_a_type_without_a_namespace_does_not_get_the_one_around_it() -> None:
    assert types(record("Kind"), kind=KIND) == [{"namespace": "", **KIND}]


def test_a_definition_may_refer_to_others_and_to_itself() -> None:
    price = {"type": "record", "name": "Price", "namespace": "shop", "fields": [{"name": "m", "type": "Money"}]}
    tree = {"type": "record", "name": "Tree", "namespace": "shop", "fields": [{"name": "t", "type": ["null", "Tree"]}]}
    found = types(record("Price", "Money", "Tree"), price=price, money=MONEY, tree=tree)
    assert found == [{**price, "fields": [{"name": "m", "type": MONEY}]}, "Money", tree]


def test_a_schema_without_references_is_unchanged() -> None:
    assert inlined('{"type":  "string"}', {}) == '{"type":  "string"}'


def test_a_reference_to_a_type_inside_of_another_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the reference shop\.Other"):
        inlined(json.dumps(record("Other")), {"shop.Other": json.dumps(MONEY)})
    with pytest.raises(ValueError, match="not an Avro type"):
        inlined(json.dumps(record(3)), {"shop.Money": json.dumps(MONEY)})
