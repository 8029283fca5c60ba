"""The dashboard and the alert rules use metrics that are exposed, with labels that they have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rota.coordinator.web.families import FAMILIES, Family, sample_names

DEPLOY = Path(__file__).parents[4] / "deploy"
NAME = re.compile(r"\brota_[a-z_]+")
SELECTOR = re.compile(r"\b(rota_[a-z_]+)\{([^}]*)\}")
GROUPING = re.compile(r"by \(([^)]*)\)")
OF_SCRAPE = {"job", "instance", "le"}


def alerts() -> list[dict[str, Any]]:
    document = yaml.safe_load((DEPLOY / "prometheus" / "rota-alerts.yml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DEPLOY / "grafana" / "rota.json").read_text())["panels"]
    return found


EXPRESSIONS = [
    *((rule["alert"], rule["expr"]) for rule in alerts()),
    *((panel["title"], target["expr"]) for panel in panels() for target in panel["targets"]),
]


def family_of(sample: str) -> Family:
    """The family of a sample's name."""
    return next(FAMILIES[name] for name in sorted(FAMILIES, key=len, reverse=True) if sample.startswith(name))


@pytest.mark.parametrize(("title", "expression"), EXPRESSIONS)
def test_an_expression_uses_exposed_names_and_their_labels(title: str, expression: str) -> None:
    names = set(NAME.findall(expression))
    assert names <= sample_names()
    labels = {label for name in names for label in family_of(name).labels} | OF_SCRAPE
    for grouping in GROUPING.findall(expression):
        assert {label.strip() for label in grouping.split(",")} <= labels
    for name, selectors in SELECTOR.findall(expression):
        used = set(re.findall(r"(\w+)\s*[=!]~?", selectors))
        assert used <= {*family_of(name).labels, *OF_SCRAPE}


def test_an_alert_has_a_remedy() -> None:
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "remedy"}
        assert rule["for"]
    assert len({rule["alert"] for rule in alerts()}) == len(alerts())


def test_the_panels_have_ids_and_places_of_their_own() -> None:
    assert len({panel["id"] for panel in panels()}) == len(panels())
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels())
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23


def test_every_metric_of_partitions_groups_and_requests_is_looked_at() -> None:
    shown = {family_of(name).name for _, expression in EXPRESSIONS for name in NAME.findall(expression)}
    assert {
        "rota_group_lag_records",
        "rota_rebalances",
        "rota_request_latency_seconds",
        "rota_loop_stall_seconds",
    } <= shown
