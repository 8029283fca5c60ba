"""The failover benchmark: its table beside Kafka, and what it knows of each cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks.failover.__main__ import SCENARIOS, cells, options, table_of
from tools.peer.cluster import CONTROLLER, KafkaCluster


def test_a_row_has_the_median_the_worst_and_the_ratio_of_the_medians() -> None:
    assert cells([1.0, 3.0, 2.0], [8.0, 4.0], is_count=False) == ["2.00 s", "3.00 s", "6.00 s", "8.00 s", "0.33"]


def test_counts_and_rows_without_kafka_have_no_ratio() -> None:
    assert cells([0.0], [2.0], is_count=True) == ["0", "0", "2", "2", "-"]
    assert cells([0.5], [], is_count=False) == ["0.50 s", "0.50 s", "-", "-", "-"]


def test_the_table_has_a_row_for_each_figure() -> None:
    figures = {"leader": [{"librdkafka": 0.4, "errors (count)": 0.0}]}
    table = table_of(figures, figures)
    assert [list(column.cells) for column in table.columns][:2] == [
        ["kill -9 of a partition's leader", ""],
        ["librdkafka", "errors (count)"],
    ]


def test_an_unknown_scenario_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["failover", "leader", "meteorite"])
    with pytest.raises(SystemExit):
        options()
    assert f"no scenario meteorite; there are {', '.join(SCENARIOS)}" in capsys.readouterr().err


def test_brokers_of_kafka_are_no_controllers(tmp_path: Path) -> None:
    """The controller can be paused, and the brokers killed, without one another."""
    cluster = KafkaCluster(tmp_path)
    roles = {broker: cluster.settings(broker)["process.roles"] for broker in (*cluster.brokers, CONTROLLER)}
    assert roles == {1: "broker", 2: "broker", 3: "broker", CONTROLLER: "controller"}
    assert len({cluster.settings(broker)["log.dirs"] for broker in roles}) == len(roles)
