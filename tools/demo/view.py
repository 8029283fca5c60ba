"""What the terminal shows while the demo runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tools.demo.processes import Member

WHY_LINES = 8
UNTOLD = ("event", "time", "level", "logger", "group")
UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TELLING = ("Preparing to rebalance", "Stabilized", "removed", "left", "leav", "expir")


def screen(
    chapter: str,
    members: Sequence[Member],
    committed: dict[int, int],
    ends: dict[int, int],
    story: list[dict[str, Any]],
) -> RenderableType:
    """Members with their partitions, the group's lag, and why it rebalanced."""
    return Group(Text(chapter, style="bold"), _state(story), _members(members), _lag(committed, ends), _why(story))


def _state(story: list[dict[str, Any]]) -> Text:
    told = [line for line in story if "generation" in line]
    if not told:
        return Text("no group yet")
    return Text(f"group {told[-1]['group']}: generation {told[-1]['generation']}, {told[-1].get('state', '')}")


def _members(members: Sequence[Member]) -> Table:
    table = Table("member", "state", "owns partitions", "records read", expand=True)
    for member in members:
        style = "" if member.fate == "consuming" else "dim"
        owns = ", ".join(map(str, member.owns)) or "-"
        table.add_row(member.client, member.fate, owns, f"{member.records_read:,}", style=style)
    return table


def _lag(committed: dict[int, int], ends: dict[int, int]) -> Table:
    table = Table("partition", *map(str, sorted(ends)), expand=True)
    table.add_row("committed", *(f"{max(committed.get(part, 0), 0):,}" for part in sorted(ends)))
    table.add_row("lag", *(f"{ends[part] - max(committed.get(part, 0), 0):,}" for part in sorted(ends)))
    return table


def _why(story: list[dict[str, Any]]) -> Panel:
    lines = [tell(line) for line in story if any(word in str(line.get("event")) for word in TELLING)]
    return Panel(
        "\n".join(lines[-WHY_LINES:]) or "…", title="the broker's log: what happened, and why", title_align="left"
    )


def tell(line: dict[str, Any]) -> str:
    """One log line without what every line has, and without the tails of member ids."""
    fields = {name: value for name, value in line.items() if name not in UNTOLD and value is not None}
    return f"[bold]{line['event']}[/]  " + "  ".join(f"{name}={short(str(value))}" for name, value in fields.items())


def short(value: str) -> str:
    return UUID.sub("…", value).replace(" with group instance id None", "")
