"""Refusals of the same peer are written less and less often."""

from __future__ import annotations

from rota.coordinator.network.refused_peers import REMEMBERED_MAX, RefusedPeers


def test_the_same_refusal_is_written_at_powers_of_ten() -> None:
    refused = RefusedPeers()
    counts = [refused.count("10.0.0.1", "no certificate") for _ in range(1_050)]
    assert [count for count in counts if count is not None] == [1, 10, 100, 1_000]


def test_another_host_and_another_reason_are_written() -> None:
    refused = RefusedPeers()
    assert refused.count("10.0.0.1", "no certificate") == 1
    assert refused.count("10.0.0.2", "no certificate") == 1
    assert refused.count("10.0.0.1", "something else than TLS") == 1
    assert refused.count("10.0.0.1", "no certificate") is None


def test_the_memory_is_bounded() -> None:
    refused = RefusedPeers()
    for number in range(3 * REMEMBERED_MAX):
        assert refused.count("10.0.0.1", str(number)) == 1
    assert len(refused._counts) <= REMEMBERED_MAX
