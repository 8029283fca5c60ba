"""What a benchmark measures; tests/cli/test_bench.py runs it on brokers."""

from __future__ import annotations

import pytest

from rota.cli.bench import Measured, percentile


@pytest.mark.parametrize(
    ("values", "share", "value"),
    [([], 0.5, None), ([1.0], 0.5, 1.0), ([1.0], 1.0, 1.0), ([1.0, 2.0, 3.0, 4.0], 0.5, 3.0), ([1.0, 9.0], 1.0, 9.0)],
)
def test_percentiles(values: list[float], share: float, value: float | None) -> None:
    assert percentile(values, share) == value


async def test_a_phase_counts_and_ends() -> None:
    measured = Measured("produce", 1e-9, 100)
    measured.add()
    measured.add(0.0)
    document = measured.document()
    assert measured.is_over
    assert (document["phase"], document["count"]) == ("produce", 2)
    assert document["megabytes_per_second"] > 0
    assert Measured("heartbeat", 5).document()["p50_ms"] is None
