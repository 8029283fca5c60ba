"""One HTML page, or an SVG file, of the tables of group_activity: lag, rebalances and causes, partitions, members.

    python -m rota.spark_connector.pipelines.report activity report.html --groups orders,billing

Reads the tables without Spark. The charts are drawn by Vega-Lite, whose script is in the page (the extra
`rota[report]`): the page loads nothing.

Laws
    No text of the tables is interpreted as HTML or as a program.
"""

from __future__ import annotations

import argparse
import html
import json
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines import report_charts
from rota.spark_connector.pipelines.report_rows import (
    Row,
    group_lags,
    member_bars,
    named_members,
    partition_lags,
    rebalances,
    timeline_marks,
    worst_groups,
)
from rota.spark_connector.pipelines.report_tables import Tables
from rota.transport import standard_streams

GROUPS_MAX: Final = 20
DAYS: Final = 7
DAYS_HELP: Final = f"the newest days of the tables ({DAYS}); 0: all"
POLICY: Final = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:"
PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
:root[data-theme=light] {{ color-scheme: light; }}
:root[data-theme=dark] {{ color-scheme: dark; }}
body {{ font: 15px system-ui, sans-serif; margin: 1.5rem; background: Canvas; color: CanvasText; }}
#controls {{ margin: 1rem 0; }}
</style>
<body>
<main>
<h1>{title}</h1>
<button id="theme" type="button">Dark or light</button>
<div id="controls"></div>
<div id="charts"></div>
</main>
<script>{library}</script>
<script id="spec" type="application/json">{spec}</script>
<script>
const spec = JSON.parse(document.getElementById("spec").textContent);
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen = null;
async function draw() {{
  const theme = chosen ?? (system.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  const options = {{ actions: false, renderer: "svg", theme: theme === "dark" ? "dark" : undefined }};
  options.config = {{ background: "transparent" }};
  options.bind = "#controls";
  const controls = document.getElementById("controls");
  spec.params[0].value = controls.querySelector("select")?.value ?? spec.params[0].value;
  controls.replaceChildren();
  await vegaEmbed("#charts", structuredClone(spec), options);
  document.documentElement.dataset.drawn = theme;
}}
document.getElementById("theme").onclick = () => {{
  chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  draw();
}};
system.onchange = draw;
draw();
</script>
</body>
</html>
"""


def table(output: str, name: str, since: date | None = None, namespace: str = "") -> list[Row]:
    """The rows of a table, with the columns of day and micro-batch; `since` is the first day, None: all. Raises
    FileNotFoundError, and OptionError when the package of the table's format is not installed."""
    return Tables(output, namespace).open(name).rows(since)


def first_day(output: str, days: int, today: date | None = None, namespace: str = "") -> date | None:
    """The first of the newest `days` days of the tables that are not in the future; below 1: None, all of them. Raises
    as `table`."""
    if days < 1:
        return None
    today = today or datetime.now(UTC).date()
    newest = max((day for day in Tables(output, namespace).open("lag").days() if day <= today), default=None)
    if newest is None or days > newest.toordinal():
        return None
    return newest - timedelta(days=days - 1)


def chart_data(
    output: str, groups: Sequence[str] = (), days: int = 0, namespace: str = ""
) -> tuple[list[str], dict[str, list[Row]]]:
    """The groups (those with the highest lag, or `groups`) and the rows of the charts, of the newest `days` days.
    Raises as `table`."""
    since = first_day(output, days, namespace=namespace)
    partitions = partition_lags(table(output, "lag", since, namespace))
    chosen = list(groups) or worst_groups(partitions, GROUPS_MAX)
    members = named_members(_of(chosen, table(output, "members", since, namespace)))
    partitions = _of(chosen, partitions)
    events = _of(chosen, timeline(output, since, namespace))
    marks = rebalances(_of(chosen, table(output, "rebalances", since, namespace)), members, events)
    ends = {row["group"]: row["end"] for row in sorted(partitions, key=lambda row: row["end"])}
    bars = member_bars(members, marks, ends)
    data = {"lags": group_lags(partitions), "partitions": partitions, "marks": marks, "members": bars}
    return chosen, {**data, "events": timeline_marks(events)}


def timeline(output: str, since: date | None, namespace: str = "") -> list[Row]:
    """The table timeline; empty for a job that does not write it."""
    try:
        return table(output, "timeline", since, namespace)
    except FileNotFoundError:
        return []


def page(
    output: str, *, groups: Sequence[str] = (), title: str = "Consumer groups", days: int = 0, namespace: str = ""
) -> str:
    """The page. Raises OptionError when the extra is not installed, and as `table`."""
    chosen, data = chart_data(output, groups, days, namespace)
    spec = json.dumps(report_charts.report(chosen, data, title)).replace("<", "\\u003c")
    script = _vega().javascript_bundle().replace("</script", "<\\/script")
    return PAGE.format(policy=POLICY, title=html.escape(title), library=script, spec=spec)


def svg(
    output: str, *, groups: Sequence[str] = (), title: str = "Consumer groups", days: int = 0, namespace: str = ""
) -> str:
    """The lag and the rebalances of all groups as SVG. Raises as `page`."""
    _, data = chart_data(output, groups, days, namespace)
    found: str = _vega().vegalite_to_svg(report_charts.overview(data, title))
    return found


def _of(groups: Sequence[str], rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["group"] in groups]


def _vega() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise OptionError("report", None, 'used with Vega-Lite: pip install "rota[report]"') from None
    return vl_convert


def add_tables_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the tables are."""
    parser.add_argument("output", help="the --output of the job; for Iceberg the folder of the namespace")
    parser.add_argument(
        "--namespace", default="", metavar="CATALOG.NAMESPACE", help="of Iceberg, in a catalog of pyiceberg's settings"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    standard_streams.open_standard_streams()
    return standard_streams.exit_code(lambda: _main(arguments), _failed)


def _main(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="report", description=(__doc__ or "").partition("\n")[0])
    add_tables_arguments(parser)
    parser.add_argument("file", type=Path, help="the file to write: NAME.html, or NAME.svg")
    parser.add_argument("--groups", default="", help=f"with commas (the {GROUPS_MAX} groups with the highest lag)")
    parser.add_argument("--title", default="Consumer groups")
    parser.add_argument("--days", type=int, default=DAYS, metavar="N", help=DAYS_HELP)
    given = parser.parse_args(arguments)
    groups = [group for group in given.groups.split(",") if group]
    make = svg if given.file.suffix == ".svg" else page
    shown = {"groups": groups, "title": given.title, "days": given.days, "namespace": given.namespace}
    try:
        text = make(given.output, **shown)
    except OptionError as error:
        return _failed(str(error))
    except (ValueError, OSError) as error:  # ValueError: a file that pyarrow cannot read
        return _failed(f"{error}; {given.output} must have the tables of a group_activity job")
    try:
        given.file.write_text(text, encoding="utf-8")
    except OSError as error:
        return _failed(str(error))
    return 0


def _failed(why: str) -> int:
    standard_streams.print_on_stderr(f"report: {why}")
    return 2


if __name__ == "__main__":
    sys.exit(main())
