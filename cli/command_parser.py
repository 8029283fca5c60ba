"""The parser of a command's options; `rota --help` does without."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, Final, NoReturn

UNRECOGNIZED: Final = "unrecognized arguments: "


class CommandParser(ArgumentParser):
    """A parser whose error texts have the names of unknown options alone: a value may be a password (CU1)."""

    def error(self, message: str) -> NoReturn:
        kind, separator, rest = message.partition(UNRECOGNIZED)
        if not kind and separator:
            words = [word.partition("=")[0] for word in rest.split() if word.startswith("-")]
            message = f"{UNRECOGNIZED}{' '.join(words) or 'more values than the command takes'}"
        super().error(message)

    def print_help(self, file: Any = None) -> None:
        """As argparse does, which ignores errors of the output."""
        print(self.format_help(), end="", file=file)
