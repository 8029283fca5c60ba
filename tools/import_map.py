"""The import map of docs/ARCHITECTURE.md, drawn from the code: `python -m tools.import_map` writes it.

One line for each package of the broker, in the layers that its imports make: a package stands above all that it
imports. Imports under TYPE_CHECKING count.
"""

from __future__ import annotations

from pathlib import Path

import grimp

PAGE = Path(__file__).parents[1] / "docs" / "ARCHITECTURE.md"
BEGIN, END = "<!-- import map: begin -->", "<!-- import map: end -->"
ROOT_PACKAGE = "rota.coordinator"
LEFT_OUT = frozenset({"__main__"})


def imports() -> dict[str, set[str]]:
    """Package or top module of the broker -> those that it imports."""
    graph = grimp.build_graph(ROOT_PACKAGE, exclude_type_checking_imports=False, cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        importer = _part(module)
        imported = {_part(other) for other in graph.find_modules_directly_imported_by(module)}
        found.setdefault(importer, set()).update(imported - {importer, ""})
    return {part: found[part] for part in sorted(found) if part and part not in LEFT_OUT}


def layers(graph: dict[str, set[str]]) -> list[list[str]]:
    """The packages by height, the top first: each stands one above the highest that it imports."""
    heights: dict[str, int] = {}

    def height(part: str) -> int:
        if part not in heights:
            heights[part] = 1 + max((height(other) for other in graph[part]), default=-1)
        return heights[part]

    for part in graph:
        height(part)
    return [[part for part in graph if heights[part] == level] for level in range(max(heights.values()), -1, -1)]


def drawn(graph: dict[str, set[str]]) -> str:
    """The map as a block of Markdown."""
    width = max(map(len, graph))
    rows = []
    for layer in layers(graph):
        rows += [
            f"{part:<{width}}  {'→ ' + ' · '.join(sorted(graph[part])) if graph[part] else ''}".rstrip()
            for part in layer
        ]
        rows.append("-" * width)
    return "\n".join([BEGIN, "```", *rows[:-1], "```", END])


def page(text: str, block: str) -> str:
    """The page with the map replaced by `block`."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + block + after


def _part(module: str) -> str:
    names = module.removeprefix(ROOT_PACKAGE).split(".")
    return names[1] if len(names) > 1 else ""


def main() -> None:
    """Write the map into the page."""
    PAGE.write_text(page(PAGE.read_text(), drawn(imports())))


if __name__ == "__main__":
    main()
