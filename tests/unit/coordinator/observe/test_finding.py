"""A finding is plain values, and the thresholds leave room for a healthy group."""

from __future__ import annotations

from dataclasses import asdict

from rota.coordinator.observe.finding import DEFAULTS, Code, Finding, Severity


def test_a_finding_is_plain_values() -> None:
    finding = Finding(
        code=Code.NEVER_STABLE,
        severity=Severity.ERROR,
        subject="group",
        sentence="It rebalances.",
        remedy="Stop it.",
        evidence=("once",),
        count=1,
        last_ms=5,
    )
    assert asdict(finding)["code"] == "never-stable"


def test_a_group_has_time_to_settle() -> None:
    assert DEFAULTS.settled_ms < DEFAULTS.unsettled_ms < DEFAULTS.window_ms
