from __future__ import annotations

import pytest

from rota.coordinator.config.client_metrics import MATCH_CHARS_MAX, check_client_metrics, parse_match
from rota.coordinator.config.definition import ConfigRefused


def test_a_match_is_a_pattern_for_each_attribute() -> None:
    patterns = parse_match("client_id=app-[0-9]+, client_source_port = 90.*")
    assert patterns["client_id"].fullmatch("app-12")
    assert set(patterns) == {"client_id", "client_source_port"}
    assert parse_match("") == {}


@pytest.mark.parametrize(
    "text",
    [
        "client=app",
        "client_id",
        "client_id=(",
        "client_id=a=b",
        r"client_id=(a)\1",
        "client_id=" + "a" * (MATCH_CHARS_MAX + 1),
    ],
)
def test_an_invalid_match_pattern_is_refused(text: str) -> None:
    with pytest.raises(ConfigRefused, match="Illegal client matching pattern"):
        check_client_metrics({"match": text})
