"""The charts of the report as specifications of Vega-Lite. Pure."""

from __future__ import annotations

from typing import Any, Final

from rota.spark_connector.pipelines.report_rows import Row

Spec = dict[str, Any]
WIDTH: Final = 860
REBALANCE: Final = "#d62728"
TIME: Final = {"type": "temporal", "title": None}
OF_GROUP: Final = [{"filter": "datum.group == group"}]  # the group that the reader has chosen


def report(groups: list[str], data: dict[str, list[Row]], title: str) -> Spec:
    """One specification for the page: all groups, then the chosen one. `data` has lags, partitions, marks, members,
    events."""
    chosen = {"name": "group", "value": groups[0] if groups else "", "bind": {"input": "select", "options": groups}}
    return {
        **_head(data, title),
        "params": [chosen],
        "vconcat": [
            lag_of_groups(),
            lag_of_partitions(),
            *[timeline()] * bool(data.get("events")),
            heat_map(),
            gantt(),
        ],
    }


def overview(data: dict[str, list[Row]], title: str) -> Spec:
    """The lag and the rebalances of all groups, for a picture."""
    return {**_head(data, title), "vconcat": [lag_of_groups(), rebalances_of_groups()]}


def _head(data: dict[str, list[Row]], title: str) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": title,
        "background": "transparent",
        "datasets": data,
        "config": {"timeFormat": "%Y-%m-%d %H:%M:%S"},
        "resolve": {"scale": {"color": "independent"}},
    }


def lag_of_groups() -> Spec:
    """The lag of each group over time."""
    return {
        "title": "Lag of all groups",
        "width": WIDTH,
        "height": 180,
        "data": {"name": "lags"},
        "mark": {"type": "line", "point": {"size": 18}, "tooltip": True},
        "encoding": {"x": {"field": "end", **TIME}, "y": _quantity("lag", "records"), "color": {"field": "group"}},
    }


def rebalances_of_groups() -> Spec:
    """The rebalances of each group over time."""
    return {
        "title": "Rebalances",
        "width": WIDTH,
        "height": {"step": 22},
        "data": {"name": "marks"},
        "mark": {"type": "tick", "thickness": 2, "color": REBALANCE},
        "encoding": {"x": {"field": "at", **TIME}, "y": {"field": "group", "title": None}},
    }


def lag_of_partitions() -> Spec:
    """The lag of the partitions of the chosen group, with its rebalances and their causes."""
    lines = {
        "data": {"name": "partitions"},
        "transform": OF_GROUP,
        "mark": {"type": "line", "tooltip": True},
        "encoding": {
            "x": {"field": "end", **TIME},
            "y": _quantity("lag", "records"),
            "color": {"field": "partition"},
        },
    }
    fields = ("generation", "members", "cause", "reason")
    marks = {
        "data": {"name": "marks"},
        "transform": OF_GROUP,
        "mark": {"type": "rule", "color": REBALANCE, "strokeWidth": 2, "strokeDash": [6, 3]},
        "encoding": {"x": {"field": "at", **TIME}, "tooltip": [{"field": field} for field in fields]},
    }
    return {
        "title": {"text": "Lag by partition", "subtitle": "dashed lines are rebalances; point at one for its cause"},
        "width": WIDTH,
        "height": 180,
        "layer": [lines, marks],
    }


def timeline() -> Spec:
    """The events of the chosen group, as its coordinator wrote them."""
    return {
        "title": "Timeline",
        "width": WIDTH,
        "height": {"step": 16},
        "data": {"name": "events"},
        "transform": OF_GROUP,
        "mark": {"type": "point", "filled": True, "color": REBALANCE},
        "encoding": {
            "x": {"field": "at", **TIME},
            "y": {"field": "type", "title": None},
            "tooltip": [{"field": field} for field in ("type", "members", "reason")],
        },
    }


def heat_map() -> Spec:
    """The lag of each partition of the chosen group in each window."""
    return {
        "title": "Partitions",
        "width": WIDTH,
        "height": {"step": 14},
        "data": {"name": "partitions"},
        "transform": OF_GROUP,
        "mark": {"type": "rect", "tooltip": True},
        "encoding": {
            "x": {"field": "start", **TIME},
            "x2": {"field": "end"},
            "y": {"field": "partition", "title": None},
            "color": {"field": "lag", "type": "quantitative", "scale": {"scheme": "viridis"}},
        },
    }


def gantt() -> Spec:
    """The members of the chosen group, with the number of their partitions."""
    tooltip = [{"field": field} for field in ("member_id", "generation", "partitions")]
    return {
        "title": "Members",
        "width": WIDTH,
        "height": {"step": 20},
        "data": {"name": "members"},
        "transform": OF_GROUP,
        "mark": {"type": "bar", "cornerRadius": 2, "stroke": "gray"},
        "encoding": {
            "x": {"field": "from", **TIME},
            "x2": {"field": "to"},
            "y": {"field": "member", "title": None},
            "color": {"field": "partitions", "type": "quantitative", "scale": {"scheme": "blues"}},
            "tooltip": tooltip,
        },
    }


def _quantity(field: str, title: str) -> Spec:
    return {"field": field, "type": "quantitative", "title": title}
