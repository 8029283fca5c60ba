"""A conversation with Apache Kafka that is kept, so that it can be compared where no Java is."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"


def read(path: Path) -> list[Any]:
    """Return the lines of a recording."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write(path: Path, run_scenario: Callable[[str], Iterable[Any]], bootstrap: str) -> None:
    """Record what `run_scenario` yields with this broker; two conversations must give the same."""
    once, again = list(run_scenario(bootstrap)), list(run_scenario(bootstrap))
    for first, second in zip(once, again, strict=True):
        assert first == second, f"two conversations differ:\n{first}\n{second}"
    text = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in once)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
