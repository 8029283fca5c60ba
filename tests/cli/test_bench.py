"""`rota bench` on both brokers."""

from __future__ import annotations

from tests.cli.kit import Rota


def test_all_phases_end_and_leave_nothing_behind(cli: Rota) -> None:
    found = cli.json("bench", "--records", "500", "--heartbeats", "20", "--size", "10", "--partitions", "2")
    assert [(phase["phase"], phase["count"]) for phase in found["phases"]] == [
        ("produce", 500),
        ("consume", 500),
        ("heartbeat", 20),
    ]
    assert all(phase["per_second"] > 0 for phase in found["phases"])
    assert found["phases"][0]["p99_ms"] >= found["phases"][0]["p50_ms"] > 0
    assert found["topic"] not in {each["name"] for each in cli.json("topics", "list")["topics"]}
    assert found["topic"] not in {each["group"] for each in cli.json("groups", "list")["groups"]}


def test_one_phase(cli: Rota) -> None:
    assert cli("bench", "--phase", "heartbeat", "--heartbeats", "5").lines[1].split()[:2] == ["heartbeat", "5"]
