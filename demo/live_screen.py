"""The demo on a terminal: members with their partitions, the group's lag, and the log lines that explain rebalances."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rota.demo.screen import State, fields

LOG_LINES = 8


class LiveScreen:
    """Redraws the whole picture at each `show`."""

    def __init__(self, live: Live) -> None:
        self.live = live

    def show(self, state: State) -> None:
        self.live.update(picture(state), refresh=True)


@contextmanager
def live_screen(stream: TextIO) -> Iterator[LiveScreen]:
    """The last picture stays when the block ends; the cursor stands in the line below it."""
    console = Console(file=stream)
    with Live(console=console, auto_refresh=False) as live:
        yield LiveScreen(live)
    if not console.is_terminal:
        console.line()  # rich ends the last picture with a newline on terminals only


def picture(state: State) -> RenderableType:
    return Group(Text(state.chapter, style="bold"), _group(state), _members(state), _lag(state), _log(state))


def _group(state: State) -> Text:
    lines = [event for event in list(state.events) if "generation" in event]
    if not lines:
        return Text("no group yet")
    return Text(f"group {lines[-1]['group']}: generation {lines[-1]['generation']}, {lines[-1].get('state', '')}")


def _members(state: State) -> Table:
    table = Table("member", "state", "partitions", "records read", expand=True)
    for member in state.members:
        style = "" if member.state == "consuming" else "dim"
        partitions = ", ".join(map(str, member.partitions)) or "-"
        table.add_row(member.name, member.state, partitions, f"{member.records_read:,}", style=style)
    return table


def _lag(state: State) -> Table:
    partitions = sorted(state.ends)
    committed = [state.committed.get(partition, 0) for partition in partitions]
    table = Table("partition", *map(str, partitions), expand=True)
    table.add_row("committed", *(f"{offset:,}" for offset in committed))
    table.add_row(
        "lag", *(f"{state.ends[part] - offset:,}" for part, offset in zip(partitions, committed, strict=True))
    )
    return table


def _log(state: State) -> Panel:
    lines = [f"[bold]{escape(str(event['event']))}[/]  {escape(fields(event))}" for event in state.rebalances()]
    title = "the broker's log: what happened, and why"
    return Panel("\n".join(lines[-LOG_LINES:]) or "…", title=title, title_align="left")
