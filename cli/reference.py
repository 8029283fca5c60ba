"""The commands as data, read from their parsers: for docs/COMMANDS.md and for shell completion."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, _HelpAction, _SubParsersAction
from collections.abc import Iterator

from rota.cli.main import parser_of
from rota.protocol.dataclass import dataclass

SHARED = ("--bootstrap-server", "--command-config", "--command-property", "--timeout", "--json", "--verbose")


@dataclass(frozen=True, slots=True)
class Argument:
    """An option or a positional argument. `value` is how a value is written, empty for a switch."""

    flags: tuple[str, ...]
    value: str
    help: str
    choices: tuple[str, ...]
    is_required: bool


@dataclass(frozen=True, slots=True)
class CommandReference:
    """A command, or a subcommand (two words)."""

    words: tuple[str, ...]
    description: str
    arguments: tuple[Argument, ...]

    @property
    def options(self) -> tuple[Argument, ...]:
        return tuple(each for each in self.arguments if each.flags)

    @property
    def positionals(self) -> tuple[Argument, ...]:
        return tuple(each for each in self.arguments if not each.flags)


def references(name: str) -> Iterator[CommandReference]:
    """Yield the command, or its subcommands when it has any."""
    parser = parser_of(name)
    subcommands = subparsers(parser)
    if not subcommands:
        yield _reference((name,), parser)
    for word, each in subcommands.items():
        yield _reference((name, word), each)


def subparsers(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    """Return the parsers of the subcommands by name."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            return dict(action.choices)
    return {}


def _reference(words: tuple[str, ...], parser: ArgumentParser) -> CommandReference:
    description = " ".join(filter(None, (parser.description, parser.epilog)))
    shown = (action for action in parser._actions if not isinstance(action, _HelpAction) and action.help != SUPPRESS)
    return CommandReference(words, description, tuple(_argument(parser, action) for action in shown))


def _argument(parser: ArgumentParser, action: Action) -> Argument:
    text = (action.help or "") % {"default": action.default, "prog": parser.prog} if action.help else ""
    return Argument(
        tuple(action.option_strings),
        _value(action),
        text,
        tuple(map(str, action.choices or ())),
        action.required,
    )


def _value(action: Action) -> str:
    if action.nargs == 0:
        return ""
    name = action.metavar if isinstance(action.metavar, str) else None
    if name is None:
        name = "|".join(map(str, action.choices)) if action.choices else action.dest.upper()
    if action.option_strings:
        return name
    return {"*": f"[{name} …]", "+": f"{name} [{name} …]", "?": f"[{name}]"}.get(str(action.nargs), name)
