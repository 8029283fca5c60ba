"""Two transcripts side by side: the first difference that nobody has explained."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tests.interop.differential.explained import EXPLAINED, Explained
from tests.interop.differential.run import Line

Difference = tuple[str, Any, Any]  # where, what Kafka says, what Rota says


def differences(kafka: Any, rota: Any, at: str = "") -> Iterator[Difference]:
    """The leaves in which two JSON values differ."""
    if isinstance(kafka, dict) and isinstance(rota, dict):
        for name in sorted(kafka.keys() | rota.keys()):
            yield from differences(kafka.get(name, "absent"), rota.get(name, "absent"), f"{at}.{name}")
    elif isinstance(kafka, list) and isinstance(rota, list) and len(kafka) == len(rota):
        for index, (left, right) in enumerate(zip(kafka, rota, strict=True)):
            yield from differences(left, right, f"{at}[{index}]")
    elif kafka != rota:
        yield at, kafka, rota


def compare(kafka: Iterable[Line], rota: Iterable[Line], explained: Iterable[Explained] = EXPLAINED) -> Counter[str]:
    """How often each explanation was needed. AssertionError at the first difference without one.

    Consumes both side by side, so that a run that goes astray stops there.
    """
    needed: Counter[str] = Counter()
    for expected, got in itertools.zip_longest(kafka, rota):
        assert expected is not None, "more lines than Kafka gave"
        assert got is not None, "fewer lines than Kafka gave"
        for difference in differences(expected, got):
            why = explanation(expected, difference, explained)
            assert why is not None, answer(expected, got)
            needed[why.name] += 1
    return needed


def explanation(line: Line, difference: Difference, explained: Iterable[Explained] = EXPLAINED) -> Explained | None:
    return next((why for why in explained if why.covers(line["kind"], *difference)), None)


def answer(expected: Line, got: Line) -> str:
    """For people: the request, and where the answers part."""
    parts = [
        f"{at}: Kafka {json.dumps(left)}, Rota {json.dumps(right)}" for at, left, right in differences(expected, got)
    ]
    head = {name: expected.get(name) for name in ("n", "group", "kind", "slot", "version", "asked")}
    return "\n".join(["an unexplained difference", json.dumps(head), *parts])
