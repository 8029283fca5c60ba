"""The charts use columns that their rows have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rota.spark_connector.pipelines.report_charts import overview, report

COLUMNS = {
    "lags": {"group", "end", "lag"},
    "partitions": {"group", "start", "end", "partition", "lag"},
    "marks": {"group", "at", "generation", "members", "cause", "reason"},
    "events": {"group", "at", "type", "members", "reason"},
    "members": {"group", "member", "member_id", "generation", "from", "to", "partitions"},
}


def charts(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for part in (*spec.get("vconcat", ()), *spec.get("layer", ())):
        yield from charts(part)
    if "data" in spec:
        yield spec


def fields(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if "field" in value:
            yield value["field"]
        for each in value.values():
            yield from fields(each)
    elif isinstance(value, list):
        for each in value:
            yield from fields(each)


def test_each_chart_has_the_fields_of_its_data() -> None:
    drawn = [*charts(report(["g"], {"events": [{}]}, "t")), *charts(overview({}, "t"))]
    assert {chart["data"]["name"] for chart in drawn} == COLUMNS.keys()
    for chart in drawn:
        assert set(fields(chart["encoding"])) <= COLUMNS[chart["data"]["name"]]


def test_the_reader_chooses_among_the_groups() -> None:
    (parameter,) = report(["b", "a"], {}, "t")["params"]
    assert (parameter["value"], parameter["bind"]["options"]) == ("b", ["b", "a"])
    assert report([], {}, "t")["params"][0]["value"] == ""


def test_without_a_timeline_there_is_no_chart_of_it() -> None:
    assert "events" not in {chart["data"]["name"] for chart in charts(report(["g"], {"events": []}, "t"))}
