"""The text of the demo: Lewis Carroll, Alice's Adventures in Wonderland (1865), which is in the public domain."""

from __future__ import annotations

from importlib.resources import files


def lines() -> list[str]:
    """The lines of the book that are not blank."""
    text = files("rota.demo").joinpath("alice.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line.strip()]
