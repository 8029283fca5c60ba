"""docs/COMMANDS.md, made from the commands: `python -m rota.cli.page` prints it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rota.cli.main import parser_of
from rota.cli.reference import SHARED, Argument, CommandReference, references
from rota.cli.registry import SECTIONS
from rota.cli.session import EXIT_CODES
from rota.cli.settings import BOOTSTRAP_VARIABLE, CONFIG_VARIABLE, DEFAULT_ADDRESS, SETTING_VARIABLES

WITHOUT_JSON: Final = {
    "serve": "it runs until it is stopped; `--log-format json` makes its log JSON, `--ready-fd` says when it is ready",
    "demo": "it is a show for people",
    "completion": "it prints scripts for shells, and words for them",
}
HEAD = f"""# The commands of `rota`

Made from the commands by `make docs`. The commands of a cluster speak Kafka's protocol: they work on Rota and on Apache
Kafka.

## Settings

In ascending order of precedence: the file of `--command-config` (Java properties with the names of
[the client's settings](CLIENT_SETTINGS.md), as for Kafka's tools; `{CONFIG_VARIABLE}` names one, too), the variables
`{BOOTSTRAP_VARIABLE}` and `{SETTING_VARIABLES}…` (`{SETTING_VARIABLES}REQUEST_TIMEOUT_MS` is `request.timeout.ms`),
`--bootstrap-server`, `--command-property`. Without any of them the broker is {DEFAULT_ADDRESS}.

## Output

A terminal shows tables (with rich, which comes with `rota[broker]`), a pipe gets the same as aligned text. Control
characters in names are printed as escapes. `--json` prints one JSON document, or one object a line where a command
prints a stream; an error is an object on standard error. What is not known is `-` in tables and `null` in JSON.

Commands without `--json`:

{chr(10).join(f"- `rota {name}`: {reason}" for name, reason in WITHOUT_JSON.items())}

## Exit codes

| code | meaning |
|---|---|
"""


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield HEAD + "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    yield ""
    yield "`rota serve` and `rota check` have their own: see their descriptions."
    yield ""
    yield "## Options of every command of a cluster"
    yield ""
    (shared,) = references("offsets")
    yield from _table([each for each in shared.options if each.flags[0] in SHARED])
    for title, commands in SECTIONS.items():
        yield ""
        yield f"## {title}"
        for command in commands:
            yield ""
            yield f"### rota {command.name}"
            yield ""
            yield parser_of(command.name).description or ""
            for reference in references(command.name):
                yield from _reference(reference)


def _reference(reference: CommandReference) -> Iterator[str]:
    yield ""
    yield f"    rota {' '.join([*reference.words, *(each.value for each in reference.positionals)])}"
    if len(reference.words) > 1:
        yield ""
        yield reference.description
    rows = [each for each in reference.arguments if (each.flags or each.help) and each.flags[:1] != ("--json",)]
    rows = [each for each in rows if not each.flags or each.flags[0] not in SHARED]
    if rows:
        yield ""
        yield from _table(rows)


def _table(arguments: list[Argument]) -> Iterator[str]:
    yield "| | |"
    yield "|---|---|"
    for each in arguments:
        name = " ".join(filter(None, (each.flags[0] if each.flags else "", each.value)))
        help_text = each.help + (" (required)" if each.is_required and each.flags else "")
        yield f"| `{_cell(name)}` | {_cell(help_text)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print("\n".join(page()))
