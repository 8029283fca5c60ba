"""`rota completion`: scripts for bash, zsh and fish, which call `rota completion words` for the next words.

Laws
    Names of topics and groups are offered when the broker of the typed options answers within LOOKUP_S, and only those
    that a shell needs not quote.
    A line that cannot be completed gives no words and no message.
"""

from __future__ import annotations

import os
import re
import shlex
from argparse import ArgumentParser, Namespace
from typing import Final

from rota.cli.reference import Argument, CommandReference, references
from rota.cli.registry import COMMANDS

LOOKUP_S: Final = 1.5
NAMES_MAX: Final = 1_000
_PLAIN: Final = re.compile(r"[A-Za-z0-9._+@%-]+", re.ASCII)
BASH: Final = """\
_rota() {
    local IFS=$'\\n'
    COMPREPLY=($(rota completion words -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
    return 0
}
complete -o default -F _rota rota
"""
ZSH: Final = """\
#compdef rota
_rota() {
    local -a found
    found=("${(@f)$(rota completion words -- "${(j: :)words[1,CURRENT]}" 2>/dev/null)}")
    if (( ${#found[1]} )); then compadd -a found; else _files; fi
}
compdef _rota rota
"""
FISH: Final = """\
complete -c rota -f -a '(rota completion words -- (commandline -cp) 2>/dev/null)'
"""
SCRIPTS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the subcommands."""
    parser.description = (
        'Print the completion of a shell: eval "$(rota completion bash)" in ~/.bashrc, the same for zsh in ~/.zshrc, '
        "rota completion fish > ~/.config/fish/completions/rota.fish."
    )
    commands = parser.add_subparsers(metavar="SHELL", required=True, dest="shell")
    for shell in SCRIPTS:
        add = commands.add_parser(shell, help=f"the script for {shell}", description=f"Print the script for {shell}.")
        add.set_defaults(run=_print_script)
    add = commands.add_parser("words", help="what may come next, for the scripts",
                              description="Print what may come next on a command line, a word a line.")  # fmt: skip
    add.add_argument("line", metavar="LINE", help="the command line up to the cursor")
    add.set_defaults(run=_print_words)


def _print_script(options: Namespace) -> int:
    print(SCRIPTS[options.shell], end="")
    return 0


def _print_words(options: Namespace) -> int:
    for word in completions(options.line):
        print(word)
    return 0


def completions(line: str) -> list[str]:
    """Return the words that may stand at the end of a command line."""
    try:
        words = shlex.split(line)[1:]
    except ValueError:  # an open quote
        return []
    prefix = "" if not line or line[-1].isspace() else words.pop() if words else ""
    return [word for word in _candidates(words, prefix) if word.startswith(prefix)]


def _candidates(words: list[str], prefix: str) -> list[str]:
    if not words:
        return [*COMMANDS]
    if words[0] not in COMMANDS:
        return []
    found = {each.words: each for each in references(words[0])}
    if len(words) == 1 and (words[0],) not in found:
        return [command[1] for command in found]
    command = found.get((words[0],)) or found.get(tuple(words[:2]))
    return [] if command is None else _next(command, words[len(command.words) :], prefix)


def _next(command: CommandReference, given: list[str], prefix: str) -> list[str]:
    """Return the values of the option before, the options, or the values of the positional arguments."""
    options = {flag: option for option in command.options for flag in option.flags}
    before = options.get(given[-1]) if given else None
    if before is not None and before.value:
        return _values(before, given)
    if prefix.startswith("-"):
        return [*options]
    place = len([word for at, word in enumerate(given) if not _is_of_option(given, at, options)])
    if not command.positionals:
        return [*options]
    return _values(command.positionals[min(place, len(command.positionals) - 1)], given)


def _is_of_option(given: list[str], at: int, options: dict[str, Argument]) -> bool:
    before = options.get(given[at - 1]) if at else None
    return given[at].startswith("-") or (before is not None and bool(before.value))


def _values(argument: Argument, given: list[str]) -> list[str]:
    if argument.choices:
        return [*argument.choices]
    for kind in ("TOPIC", "GROUP"):
        if kind in argument.value or f"--{kind.lower()}" in argument.flags:
            return _names(kind, given)
    return []


def _names(kind: str, given: list[str]) -> list[str]:
    """Return the topics or groups of the cluster; none when it does not answer in time."""
    import asyncio

    from rota.cli.settings import UsageError
    from rota.client.errors import KafkaError

    try:
        names = asyncio.run(_listed(kind, given))
    except (KafkaError, UsageError, OSError, TimeoutError):
        return []
    return [name for name in names if _PLAIN.fullmatch(name)][:NAMES_MAX]


async def _listed(kind: str, given: list[str]) -> list[str]:
    import asyncio

    from rota.cli.settings import config_of, read_settings
    from rota.client import Admin, AdminConfig

    def option(flag: str) -> str | None:
        return next((given[at + 1] for at, word in enumerate(given[:-1]) if word == flag), None)

    settings = read_settings(
        os.environ, bootstrap=option("--bootstrap-server"), file=option("--command-config"), timeout_s=LOOKUP_S
    )
    async with asyncio.timeout(LOOKUP_S), Admin(config_of(AdminConfig, settings)) as admin:
        return [*(await admin.list_topics() if kind == "TOPIC" else await admin.list_groups())]
