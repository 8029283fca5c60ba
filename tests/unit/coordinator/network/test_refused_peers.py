"""Refusals of the same peer are written less and less often."""

from __future__ import annotations

from rota.coordinator.network.refused_peers import REMEMBERED_MAX, ROUND_MS, WRITTEN_MAX, RefusedPeers


def test_the_same_refusal_is_written_at_powers_of_ten() -> None:
    refused = RefusedPeers()
    counts = [refused.count("10.0.0.1", "no certificate") for _ in range(1_050)]
    assert [line["count"] for line in counts if line is not None] == [1, 10, 100, 1_000]


def test_another_host_and_another_reason_are_written() -> None:
    refused = RefusedPeers()
    assert refused.count("10.0.0.1", "no certificate") == {"count": 1}
    assert refused.count("10.0.0.2", "no certificate") == {"count": 1}
    assert refused.count("10.0.0.1", "something else than TLS") == {"count": 1}
    assert refused.count("10.0.0.1", "no certificate") is None


def test_many_hosts_and_reasons_fill_neither_the_log_nor_the_memory() -> None:
    now_ms = 0
    refused = RefusedPeers(lambda: now_ms)
    lines = [refused.count(f"10.0.0.{number}", str(number)) for number in range(3 * REMEMBERED_MAX)]
    assert len(refused._counts) <= REMEMBERED_MAX
    assert sum(line is not None for line in lines) == WRITTEN_MAX
    now_ms = ROUND_MS
    assert refused.count("10.0.1.1", "a") == {"count": 1, "omitted": 3 * REMEMBERED_MAX - WRITTEN_MAX}
    assert refused.count("10.0.1.2", "a") == {"count": 1}
