"""The text that is sent through the broker: Python's own language reference, which comes with every Python."""

from __future__ import annotations

import importlib
from pathlib import Path

LINES_MAX = 12_000


def lines() -> list[str]:
    """Several thousand lines of prose."""
    try:
        topics = importlib.import_module("pydoc_data.topics").topics
    except ModuleNotFoundError:  # a Python without its manual: the licence is prose too, if repeated
        return (Path(__file__).parents[2] / "LICENSE").read_text().splitlines() * 20
    found = [line for name in sorted(topics) for line in topics[name].splitlines() if line.strip()]
    return found[:LINES_MAX]
