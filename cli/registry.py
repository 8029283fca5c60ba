"""The commands of `rota`: name, summary, and the module that declares the options and runs the command.

Laws
    A module is imported when its command runs, or when the reference page is made; `rota --help` imports none of them.
    A module has `add_arguments(name, parser)`, which sets the default `run`: a function of the options that returns
    the exit code.
"""

from __future__ import annotations

from typing import Final, NamedTuple

BROKER_COMMANDS: Final = "rota.coordinator.admin.commands"
TEST_COMMANDS: Final = "rota.testing.server"


class Command(NamedTuple):
    """One command. The module is imported by its name: the broker's code does not import the client."""

    name: str
    summary: str
    module: str


SECTIONS: Final[dict[str, tuple[Command, ...]]] = {
    "A broker": (
        Command("serve", "run a broker, or a cluster of brokers on this machine", BROKER_COMMANDS),
        Command("check", "test whether a broker answers", BROKER_COMMANDS),
        Command("demo", "watch a broker and a consumer group at work", BROKER_COMMANDS),
        Command("test-server", "run brokers in memory for tests, with faults on request", TEST_COMMANDS),
        Command("version", "print the version and what is compiled", BROKER_COMMANDS),
    ),
    "Any Kafka cluster": (
        Command("topics", "list, describe, create, extend and delete topics", "rota.cli.topics"),
        Command("groups", "list, describe, reset and delete groups; their lag", "rota.cli.groups"),
        Command("produce", "send records from standard input, a file or the command line", "rota.cli.produce"),
        Command("consume", "print records, follow topics", "rota.cli.consume"),
        Command("offsets", "print start, end and offsets at a time of partitions", "rota.cli.offsets"),
        Command("configs", "describe and alter settings of topics, brokers and groups", "rota.cli.configs"),
        Command("acls", "list, add and remove ACLs; explain which one decides", "rota.cli.acls"),
        Command("users", "list, add and remove SCRAM users", "rota.cli.users"),
        Command("cluster", "print brokers, controller, features, under-replicated partitions", "rota.cli.cluster"),
        Command("bench", "measure produce, consume and heartbeats", "rota.cli.bench"),
        Command("sniff", "print what clients and brokers say to each other", "rota.cli.sniff"),
    ),
    "This machine": (
        Command("logs", "show segments, batches, records and indexes of a folder, offline", "rota.cli.logs"),
        Command("completion", "print the completion of bash, zsh or fish", "rota.cli.completion"),
    ),
}
COMMANDS: Final = {command.name: command for section in SECTIONS.values() for command in section}
