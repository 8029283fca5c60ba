"""Fixtures of the command line's tests: each test runs on a Rota of its own and, where one runs, on an Apache Kafka."""

from __future__ import annotations

import pytest
from tests.cli.kit import Rota
from tests.client.conftest import bootstrap, group, pytest_generate_tests, rota, topic

__all__ = ["bootstrap", "cli", "group", "pytest_generate_tests", "rota", "topic"]


@pytest.fixture
def cli(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Rota:
    """The command line on the broker under test."""
    return Rota(bootstrap, capsys)
