"""What the terminal shows while the demo runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tools.demo.processes import Member

WHY_LINES = 8
TELLING = ("Preparing to rebalance", "Stabilized", "removed", "left", "leav", "expir")


def screen(
    chapter: str,
    members: Sequence[Member],
    committed: dict[int, int],
    ends: dict[int, int],
    story: list[dict[str, Any]],
) -> RenderableType:
    """Members with their partitions, the group's lag, and why it rebalanced."""
    return Group(Text(chapter, style="bold"), _members(members), _lag(committed, ends), _why(story))


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
    """One log line without its time and level."""
    fields = {k: v for k, v in line.items() if k not in ("event", "timestamp", "level", "logger", "group")}
    return f"{line['event']}  " + "  ".join(f"{k}={v}" for k, v in fields.items())
