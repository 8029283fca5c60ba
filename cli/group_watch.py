"""`rota groups watch`: state, members and lag of groups, again and again.

On a terminal the table is drawn anew in its place; in a pipe, and with --json, each look is a line a group.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rota.cli.arguments import add_subcommand, iso_time, positive_float, whole
from rota.cli.group_details import group_document, lag_documents, largest_seconds, total_lag
from rota.cli.session import Session
from rota.cli.text import GAP, Table, cell
from rota.client.errors import AdminFailed
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.cli.arguments import Subcommands
    from rota.client import Admin

INTERVAL_S: Final = 2.0
COLUMNS: Final = ("GROUP", "STATE", "MEMBERS", "PARTITIONS", "LAG", "SECONDS", "CHANGE", "RECORDS/S")
FIELDS: Final = ("group", "state", "members", "partitions", "lag", "lag_seconds", "lag_change", "records_per_second")
Look = dict[str, dict[str, Any]]


def add_watch(commands: Subcommands) -> None:
    """Declare the subcommand."""
    add = add_subcommand(commands, "watch", watch_groups, "show state, members and lag, live")
    add.add_argument("groups", metavar="GROUP", nargs="*", help="unset: all groups")
    add.add_argument(
        "--interval", type=positive_float, default=INTERVAL_S, metavar="SECONDS", help="default %(default)s"
    )
    add.add_argument("--count", type=whole(1), metavar="N", help="end after N looks; unset: until Ctrl-C")


async def watch_groups(session: Session) -> None:
    options = session.options
    before: Look = {}
    looks = 0
    async with session.admin() as admin:
        with _screen(session) as show:
            while options.count is None or looks < options.count:
                if looks:
                    await asyncio.sleep(options.interval)
                look = await _look(admin, options.groups)
                compare(look, before)
                show(look)
                before, looks = look, looks + 1


async def _look(admin: Admin, groups: list[str]) -> Look:
    """Return each group as it is now; a group that is deleted meanwhile is left out."""
    names = groups or list(await admin.list_groups())
    try:
        described = await admin.describe_groups(names) if names else {}
    except AdminFailed as failure:
        if groups or failure.codes != {ErrorCode.GROUP_ID_NOT_FOUND}:
            raise
        described = failure.done
    look: Look = {}
    for name, group in described.items():
        offsets = lag_documents(await admin.group_lag(name, with_age=True))
        look[name] = {
            "time_ms": int(time.time() * 1000),
            "group": name,
            "state": group.state,
            "assignor": group.protocol or None,
            "members": len(group.members),
            "partitions": len(offsets),
            "lag": total_lag(offsets),
            "lag_seconds": largest_seconds(offsets),
            "lag_change": None,
            "records_per_second": None,
            "member_ids": [member["member_id"] for member in group_document(group)["members"]],
            "offsets": offsets,
        }
    return look


def compare(look: Look, before: Mapping[str, dict[str, Any]]) -> None:
    """Set lag_change and records_per_second of the groups that were there in the look before."""
    for name, now in look.items():
        then = before.get(name)
        if then is None:
            continue
        if now["lag"] is not None and then["lag"] is not None:
            now["lag_change"] = now["lag"] - then["lag"]
        seconds = (now["time_ms"] - then["time_ms"]) / 1000
        committed = {_key(each): each["committed"] for each in then["offsets"]}
        steps = [
            each["committed"] - committed[_key(each)]
            for each in now["offsets"]
            if each["committed"] is not None and committed.get(_key(each)) is not None
        ]
        if steps and seconds > 0:
            now["records_per_second"] = round(sum(steps) / seconds, 1)


def _key(offset: Mapping[str, Any]) -> tuple[str, int]:
    return offset["topic"], offset["partition"]


@contextmanager
def _screen(session: Session) -> Iterator[Callable[[Look], None]]:
    """Yield the function that shows a look."""
    try:
        if session.out.as_json or not session.out.is_terminal:
            raise ModuleNotFoundError
        from rich.live import Live
    except ModuleNotFoundError:
        yield lambda look: _print_lines(session, look)
        return
    from rota.cli.output import rich_table

    with Live(auto_refresh=False, screen=False) as live:
        yield lambda look: live.update(rich_table(table_of(look)), refresh=True)


def table_of(look: Look) -> Table:
    """Return the look as a table; it has a row when there is no group."""
    rows = [[each[name] for name in FIELDS] for each in look.values()] or [["no groups", *[None] * (len(FIELDS) - 1)]]
    return Table(COLUMNS, rows)


def _print_lines(session: Session, look: Look) -> None:
    for each in look.values():
        values = (f"{heading.lower()}={cell(each[name])}" for heading, name in zip(COLUMNS, FIELDS, strict=True))
        session.out.event(each, GAP.join([iso_time(each["time_ms"]) or "", *values]), flush=False)
    session.out.flush()
