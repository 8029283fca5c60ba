"""Issue point 9: the tests of two client libraries' own authors, unchanged, against this broker.

They come by package name from PyPI and from Go's proxy, once, into .tools/strangers; without network they are skipped.
Sarama's are built with Go and run with ROTA_STRANGERS=all (`make interop`).
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from tests.interop.strangers import kafka_python, sarama
from tests.interop.strangers.kit import Unavailable

ALL = os.environ.get("ROTA_STRANGERS") == "all"


@pytest.mark.timeout(700)
def test_kafka_pythons_integration_tests(bootstrap: str) -> None:
    try:
        folder = kafka_python.source()
    except Unavailable as why:
        pytest.skip(str(why))
    outcomes = kafka_python.run(bootstrap, folder)
    assert_passed(outcomes, lambda names: kafka_python.run(bootstrap, folder, names))
    assert len(outcomes) >= 52


@pytest.mark.timeout(900)
@pytest.mark.skipif(not ALL, reason="ROTA_STRANGERS=all is not set")
def test_saramas_functional_tests(bootstrap: str) -> None:
    try:
        folder = sarama.built()
    except Unavailable as why:
        pytest.skip(str(why))
    outcomes = sarama.run(bootstrap, folder)
    assert_passed(outcomes, lambda names: sarama.run(bootstrap, folder, names))
    assert len(outcomes) >= 38


def assert_passed(outcomes: dict[str, str], again: Callable[[list[str]], dict[str, str]]) -> None:
    """What failed gets a second chance by itself: these tests race with each other, against Apache Kafka as well."""
    names = list(wrong(outcomes))
    if names:
        print(f"a second chance for {wrong(outcomes)}")
        assert wrong(again(names)) == {}


def wrong(outcomes: dict[str, str]) -> dict[str, str]:
    """What did not pass. A test that skips itself is not wrong."""
    return {name: outcome for name, outcome in outcomes.items() if outcome.startswith("failed")}
