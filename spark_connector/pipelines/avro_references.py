"""Avro schemas that refer to types of other schemas of a registry, as one schema that has all types in it. Pure.

Laws
    Each type is defined once, where it is used first. A schema without references is unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NAMED: Final = ("record", "error", "enum", "fixed")


def inlined(schema: str, definitions: Mapping[str, str]) -> str:
    """`schema` with each name of `definitions` (schemas by the full name of their type) replaced by its definition, at
    its first use. Raises ValueError."""
    if not definitions:
        return schema
    return json.dumps(_Inliner(definitions).type_of(json.loads(schema), ""))


class _Inliner:
    def __init__(self, definitions: Mapping[str, str]) -> None:
        self._definitions = definitions
        self._defined: set[str] = set()

    def type_of(self, node: Any, namespace: str) -> Any:
        """A type as it stands in a schema: a name, a union, or a definition."""
        match node:
            case str():
                return self._named(node, namespace)
            case list():
                return [self.type_of(each, namespace) for each in node]
            case dict() if node.get("type") in NAMED:
                return self._definition(node, namespace)
            case {"type": "array", "items": items}:
                return {**node, "items": self.type_of(items, namespace)}
            case {"type": "map", "values": values}:
                return {**node, "values": self.type_of(values, namespace)}
            case {"type": inner}:
                return {**node, "type": self.type_of(inner, namespace)}
        raise ValueError(f"not an Avro type: {str(node)[:80]}")

    def _named(self, name: str, namespace: str) -> Any:
        if name in PRIMITIVES:
            return name
        for full in (_full_name(name, namespace), name):  # as Avro's parser, which tries both
            if full in self._defined:
                break
            if full in self._definitions:
                return self._first_use(full)
        return name

    def _first_use(self, full: str) -> Any:
        node = json.loads(self._definitions[full])
        if not isinstance(node, dict) or _full_name(node.get("name", ""), node.get("namespace", "")) != full:
            raise ValueError(f"the reference {full} is not the type of its schema")
        # without a namespace of its own it would be in the one of the schema around it
        return self._definition({"namespace": "", **node}, "")

    def _definition(self, node: dict[str, Any], namespace: str) -> dict[str, Any]:
        full = _full_name(node["name"], node.get("namespace", namespace))
        self._defined.add(full)
        if "fields" not in node:
            return node
        inner = full.rpartition(".")[0]
        return {**node, "fields": [{**each, "type": self.type_of(each["type"], inner)} for each in node["fields"]]}


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
