"""Finds the command of the arguments and runs it.

Laws
    `rota --help` imports neither the client nor the broker nor argparse.
    A command imports its own module and no other command's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from rota.cli.registry import COMMANDS, SECTIONS
from rota.transport import standard_streams

if TYPE_CHECKING:
    from argparse import ArgumentParser

EXIT_USAGE: Final = 2
_HELP: Final = ("-h", "--help", "help")
_NAME_WIDTH: Final = 12


def run(arguments: list[str]) -> int:
    """Run one command; returns its exit code. Raises SystemExit where argparse does: for help and for an error."""
    return standard_streams.exit_code(lambda: _run(arguments), lambda why: _output_failed(why, arguments))


def _output_failed(why: str, arguments: list[str]) -> None:
    from rota.cli.output import print_error

    print_error(why, as_json="--json" in arguments, exit_code=standard_streams.EXIT_NOT_WRITTEN)


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in _HELP:
        print(help_text())
        return 0
    name, *rest = ["version"] if arguments[0] == "--version" else arguments
    if name not in COMMANDS:
        standard_streams.print_on_stderr(_unknown(name))
        return EXIT_USAGE
    options = parser_of(name).parse_args(rest)
    code: int = options.run(options)
    return code


def parser_of(name: str) -> ArgumentParser:
    """Import the module of a command and return the parser of its options."""
    from rota.cli.command_parser import CommandParser

    command = COMMANDS[name]
    description = command.summary[:1].upper() + command.summary[1:] + "."
    parser = CommandParser(prog=f"rota {name}", description=description, allow_abbrev=False)
    import_module(command.module).add_arguments(name, parser)
    return parser


def help_text() -> str:
    """Return the commands with their summaries."""
    lines = ["usage: rota COMMAND …", "", "Kafka's consumer-group system: a broker, and tools for any Kafka cluster."]
    for title, commands in SECTIONS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {command.name:{_NAME_WIDTH}}{command.summary}" for command in commands]
    return "\n".join([*lines, "", "`rota COMMAND --help` explains a command."])


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    from rota.cli.text import escaped

    near = get_close_matches(name, COMMANDS, n=1)
    advice = f"; did you mean `rota {near[0]}`?" if near else "."
    return f"rota: there is no command '{escaped(name)}'{advice} The commands are {', '.join(COMMANDS)}."
