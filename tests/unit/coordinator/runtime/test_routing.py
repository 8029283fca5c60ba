"""The vectors that Apache Kafka's own clients and tools compute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.runtime.routing import _remembered, java_hash, shard_of


@pytest.mark.parametrize(
    ("group_id", "shard"),
    [
        ("test", 48),
        ("my-group", 12),
        ("g", 3),
        ("console-consumer-12345", 6),
        ("polygenelubricants", 0),
        ("grüße-😀", 27),
        ("", 0),
    ],
)
def test_the_shard_of_a_group_is_kafkas(group_id: str, shard: int) -> None:
    assert shard_of(group_id) == shard


def test_a_long_group_id_is_hashed_and_not_kept() -> None:
    kept = _remembered.cache_info().currsize
    assert shard_of("g" * 30_000) == abs(java_hash("g" * 30_000)) % 50
    assert _remembered.cache_info().currsize == kept


def test_the_smallest_number_has_no_absolute_value_in_java() -> None:
    assert java_hash("polygenelubricants") == -(2**31)
    assert shard_of("polygenelubricants", 7) == 0


@given(st.text(max_size=40))
def test_the_hash_is_the_polynomial_over_utf16(text: str) -> None:
    units = [int.from_bytes(raw, "big") for raw in _pairs(text.encode("utf-16-be", "surrogatepass"))]
    whole = sum(unit * 31 ** (len(units) - 1 - i) for i, unit in enumerate(units))
    signed = (whole + 2**31) % 2**32 - 2**31
    assert java_hash(text) == signed
    assert 0 <= shard_of(text) < 50


def _pairs(raw: bytes) -> list[bytes]:
    return [raw[i : i + 2] for i in range(0, len(raw), 2)]
