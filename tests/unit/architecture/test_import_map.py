"""The map of imports in the docs is the code's own."""

from __future__ import annotations

from tools.import_map import BEGIN, END, PAGE, drawn, imports, layers, page


def test_the_map_in_the_docs_is_fresh() -> None:
    """`python -m tools.import_map` writes it."""
    text = PAGE.read_text()
    assert page(text, drawn(imports())) == text, "run: python -m tools.import_map"


def test_a_package_is_in_a_layer_above_its_imports() -> None:
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set[str](), "d": set[str]()}
    assert layers(graph) == [["a"], ["b"], ["c", "d"]]
    assert drawn(graph).splitlines()[2:4] == ["a  → b · c", "-"]


def test_only_the_map_is_replaced() -> None:
    assert page(f"before {BEGIN} old {END} after", f"{BEGIN} new {END}") == f"before {BEGIN} new {END} after"
