"""`rota version` says what this installation has."""

from __future__ import annotations

import importlib.metadata
import platform
import re

import pytest

from rota.coordinator.admin import version
from rota.protocol.records import COMPILED


def test_the_line_names_release_codecs_python_and_loop() -> None:
    codecs = "compiled" if COMPILED else "interpreted"
    pattern = rf"rota \d+\.\d+\.\d+ \({codecs} codecs, Python {platform.python_version()}, uvloop [\d.]+\)"
    assert re.fullmatch(pattern, version.version_line())


def test_interpreted_codecs_and_a_missing_uvloop_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_uvloop(name: str) -> str:
        if name == "uvloop":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.2.3"

    monkeypatch.setattr(version, "version", without_uvloop)
    monkeypatch.setattr(version, "COMPILED", False)
    assert version.version_line().startswith("rota 1.2.3 (interpreted codecs, Python ")
    assert version.version_line().endswith(", asyncio's event loop)")
