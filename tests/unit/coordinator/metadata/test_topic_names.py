from __future__ import annotations

import pytest

from rota.coordinator.metadata.topic_names import collision_key, invalid_reason, refuse_collision, refuse_name
from rota.protocol.errors import ErrorCode


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "...", "-", "_", "x" * 249])
def test_right_names(name: str) -> None:
    assert invalid_reason(name) is None
    assert refuse_name(name) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("é", "'é' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_wrong_names_are_refused_in_kafkas_words(name: str, why: str) -> None:
    refusal = refuse_name(name)
    assert refusal is not None
    assert (refusal.code, refusal.message) == (ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def test_names_collide_when_they_fold_alike() -> None:
    assert collision_key("a.b") == collision_key("a_b") != collision_key("a-b")
    assert refuse_collision("a.b", ["a_b"]) is not None
    assert refuse_collision("a.b", ["a.b"]) is None
    assert refuse_collision("a.b", []) is None
