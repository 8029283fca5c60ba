"""`rota groups`: the subcommands and their options; list, delete, remove-members."""

from __future__ import annotations

from argparse import ArgumentParser

from rota.cli.arguments import add_subcommand, one_of, subcommands
from rota.cli.group_details import describe_groups, show_lag
from rota.cli.group_plan import add_plan
from rota.cli.group_reset import add_reset
from rota.cli.group_watch import add_watch
from rota.cli.group_why import add_why
from rota.cli.session import Session
from rota.cli.settings import UsageError
from rota.cli.text import Table

STATES = (
    "Stable",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
)
TYPES = ("classic", "consumer", "share", "streams")


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the subcommands."""
    commands = subcommands(parser)
    add = add_subcommand(commands, "list", list_groups, "list the groups of all brokers")
    for option, names in (("--state", STATES), ("--type", TYPES)):
        text = f"one of {', '.join(names)}; as often as needed"
        add.add_argument(option, action="append", default=[], type=one_of(names), metavar=option[2:].upper(), help=text)
    add = add_subcommand(commands, "describe", describe_groups, "show state, coordinator, members and their partitions")
    add.add_argument("groups", metavar="GROUP", nargs="+")
    add = add_subcommand(
        commands, "lag", show_lag, "show committed offsets, ends and lag of each partition, in records and in seconds"
    )
    add.add_argument("groups", metavar="GROUP", nargs="*", help="unset: all groups")
    add.add_argument("--total", action="store_true", help="one line for each group")
    add_watch(commands)
    add_why(commands)
    add_plan(commands)
    add_reset(commands)
    add = add_subcommand(commands, "delete", delete_groups, "delete groups without members, with their offsets")
    add.add_argument("groups", metavar="GROUP", nargs="+")
    add = add_subcommand(commands, "remove-members", remove_members, "remove members, which join again if they run")
    add.add_argument("group", metavar="GROUP")
    add.add_argument("--member", action="append", default=[], metavar="MEMBER_ID", help="as often as needed")
    add.add_argument("--instance", action="append", default=[], metavar="INSTANCE_ID", help="group.instance.id")
    add.add_argument("--all", action="store_true", help="all members")
    add.add_argument("--reason", default="removed by an administrator", help="what the broker logs (KIP-800)")


async def list_groups(session: Session) -> None:
    options = session.options
    async with session.admin() as admin:
        found = await admin.list_groups(states=options.state, types=options.type)
    rows = [
        {"group": each.group_id, "state": each.state or None, "type": each.type or None,
         "protocol_type": each.protocol_type or None}
        for each in found.values()
    ]  # fmt: skip
    columns = ("GROUP", "STATE", "TYPE", "PROTOCOL")
    session.out.show({"groups": rows}, Table(columns, [tuple(row.values()) for row in rows], empty="no groups"))


async def delete_groups(session: Session) -> None:
    names = list(dict.fromkeys(session.options.groups))
    async with session.admin() as admin:
        await admin.delete_groups(names)
    session.out.show({"deleted": names})
    session.out.note(f"deleted: {', '.join(names)}")


async def remove_members(session: Session) -> None:
    options = session.options
    if options.all == bool(options.member or options.instance):
        raise UsageError("name members with --member and --instance, or all of them with --all")
    async with session.admin() as admin:
        before = (await admin.describe_groups([options.group]))[options.group].members
        await admin.remove_members(
            options.group,
            members=options.member,
            instances=options.instance,
            remove_all=options.all,
            reason=options.reason,
        )
    named = {*options.member, *options.instance}
    removed = [each.member_id for each in before if options.all or {each.member_id, each.group_instance_id} & named]
    session.out.show({"group": options.group, "removed": removed})
    session.out.note(f"removed from {options.group}: {', '.join(removed) or 'no members'}")
