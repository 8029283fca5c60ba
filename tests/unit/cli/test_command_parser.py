"""The errors of the command line."""

from __future__ import annotations

import io

import pytest

from rota.cli.command_parser import CommandParser


@pytest.mark.parametrize(
    ("arguments", "error_text"),
    [
        (["--what"], "unrecognized arguments: --what"),
        (["--passwort=secret"], "unrecognized arguments: --passwort"),
        (["--passwort", "secret"], "unrecognized arguments: --passwort"),
        (["secret"], "unrecognized arguments: more values than the command takes"),
        (["--count", "many"], "argument --count: invalid int value: 'many'"),
    ],
)
def test_unknown_arguments_are_named_without_values(
    arguments: list[str], error_text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Law CU1: a value may be a password."""
    parser = CommandParser(prog="rota groups", allow_abbrev=False)
    parser.add_argument("--count", type=int)
    with pytest.raises(SystemExit) as exit_info:
        parser.parse_args(arguments)
    error = capsys.readouterr().err
    assert exit_info.value.code == 2
    assert error_text in error
    assert "secret" not in error


def test_cl3_a_help_that_cannot_be_written_is_an_error_also_without_a_buffer() -> None:
    """As with PYTHONUNBUFFERED=1: argparse ignores it."""
    with open("/dev/full", "wb", buffering=0) as full:
        unbuffered = io.TextIOWrapper(full, write_through=True)
        with pytest.raises(OSError, match="No space left"):
            CommandParser(prog="rota groups").print_help(unbuffered)
