"""`rota configs`: describe and alter the settings of topics, brokers, loggers, groups and client metrics."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any, Final

from rota.cli.arguments import INT32_MAX, add_subcommand, name_and_value, subcommands
from rota.cli.session import Session
from rota.cli.settings import UsageError
from rota.cli.text import Table
from rota.client.errors import KafkaError

if TYPE_CHECKING:
    from rota.client import Admin, ConfigChange, ConfigEntry, ConfigResource

TYPES: Final = {
    "topic": "TOPIC",
    "broker": "BROKER",
    "broker-logger": "BROKER_LOGGER",
    "group": "GROUP",
    "client-metrics": "CLIENT_METRICS",
}
ALL_BROKERS: Final = "default"


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the subcommands."""
    commands = subcommands(parser)
    add = add_subcommand(commands, "describe", describe_configs, "show the settings that were set")
    _add_resource(add)
    add.add_argument("--all", action="store_true", help="also settings that have their default")
    add.add_argument("--key", action="append", metavar="NAME", help="only this setting; as often as needed")
    add.add_argument("--synonyms", action="store_true", help="all places where a setting is set, the strongest first")
    add = add_subcommand(commands, "alter", alter_configs, "set settings, or reset them; others keep their values")
    _add_resource(add)
    for operation, text in (
        ("set", "set a value"),
        ("append", "add elements to a list"),
        ("subtract", "remove elements from a list"),
    ):
        add.add_argument(
            f"--{operation}", type=name_and_value, action="append", default=[], metavar="NAME=VALUE", help=text
        )
    add.add_argument("--delete", action="append", default=[], metavar="NAME", help="back to the default")
    add.add_argument("--dry-run", action="store_true", help="let the broker check it; change nothing")


def _add_resource(parser: ArgumentParser) -> None:
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("name", metavar="NAME", help=f"of a broker its id, or `{ALL_BROKERS}` for all brokers")


def resource_of(kind: str, name: str) -> ConfigResource:
    """Return the resource of the arguments. Raises UsageError."""
    from rota.client import ConfigResource, ResourceType

    if kind == "broker" and name == ALL_BROKERS:
        name = ""
    elif kind.startswith("broker") and not (name.isascii() and name.isdecimal()):
        advice = f", or `{ALL_BROKERS}` for all brokers" if kind == "broker" else ""
        raise UsageError(f"{kind} {name}: expected the id of a broker{advice}")
    elif kind.startswith("broker") and name and int(name) > INT32_MAX:
        raise UsageError(f"{kind} {name}: the id of a broker is at most {INT32_MAX}")
    return ConfigResource(ResourceType[TYPES[kind]], name)


async def _require_broker(admin: Admin, kind: str, name: str) -> None:
    """Raises KafkaError for a broker that is not alive: a client waits for one that may start."""
    if not kind.startswith("broker") or name == ALL_BROKERS:
        return
    alive = sorted(broker.id for broker in (await admin.describe_cluster()).nodes)
    if int(name) not in alive:
        raise KafkaError(f"no live broker has the id {name}; live brokers: {', '.join(map(str, alive))}")


async def describe_configs(session: Session) -> None:
    options = session.options
    resource = resource_of(options.type, options.name)
    async with session.admin() as admin:
        await _require_broker(admin, options.type, options.name)
        found = await admin.describe_configs([resource], keys=options.key, synonyms=options.synonyms)
    entries = [
        entry_document(entry, options.synonyms)
        for _, entry in sorted(found[resource].items())
        if options.all or options.key or not entry.is_default
    ]
    rows = [_cells(each) for each in entries]
    columns = ("NAME", "VALUE", "SOURCE", "READ ONLY", *(["SYNONYMS"] if options.synonyms else []))
    empty = "no setting was set; --all shows the defaults"
    session.out.show(
        {"type": options.type, "name": options.name, "configs": entries}, Table(columns, rows, empty=empty)
    )


def _cells(entry: dict[str, Any]) -> list[object]:
    value = "(hidden)" if entry["sensitive"] else entry["value"]
    cells = [entry["name"], value, entry["source"], entry["read_only"]]
    if "synonyms" in entry:
        cells.append("; ".join(f"{each['source']} {each['name']}={each['value']}" for each in entry["synonyms"]))
    return cells


def entry_document(entry: ConfigEntry, synonyms: bool) -> dict[str, Any]:
    """Return a setting as JSON."""
    document: dict[str, Any] = {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "type": entry.type.name,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
    }
    if synonyms:
        document["synonyms"] = [
            {"name": each.name, "value": each.value, "source": each.source.name} for each in entry.synonyms
        ]
    return document


async def alter_configs(session: Session) -> None:
    options = session.options
    resource = resource_of(options.type, options.name)
    changes = changes_of(options)
    async with session.admin() as admin:
        await _require_broker(admin, options.type, options.name)
        await admin.alter_configs({resource: changes}, validate_only=options.dry_run)
    done = [
        {"name": name, "operation": change.operation.name.lower(), "value": change.value}
        for name, change in changes.items()
    ]
    document = {"type": options.type, "name": options.name, "dry_run": options.dry_run, "changes": done}
    title = "the broker would accept:" if options.dry_run else "changed:"
    rows = [tuple(change.values()) for change in done]
    session.out.show(document, Table(("NAME", "OPERATION", "VALUE"), rows, title))


def changes_of(options: Any) -> dict[str, ConfigChange]:
    """Return the changes of the options by name. Raises UsageError when there is none, or two for one name."""
    from rota.client import ConfigChange

    given = [
        *((name, ConfigChange.set(value)) for name, value in options.set),
        *((name, ConfigChange.append(value)) for name, value in options.append),
        *((name, ConfigChange.subtract(value)) for name, value in options.subtract),
        *((name, ConfigChange.delete()) for name in options.delete),
    ]
    if not given:
        raise UsageError("nothing to change: give --set, --append, --subtract or --delete")
    changes = dict(given)
    if len(changes) < len(given):
        raise UsageError("a setting is named twice: give one change for each")
    return changes
