"""The entry point: the help, unknown commands, and what a command imports."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rota.cli.main import help_text, parser_of, run
from rota.cli.registry import COMMANDS
from rota.transport.standard_streams import EXIT_BROKEN_PIPE

PRINT_IMPORTS = "import atexit, sys; atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr)); "
ROTA = PRINT_IMPORTS + "from rota.coordinator.admin.cli import main; sys.argv = ['rota', *sys.argv[1:]]; main()"
HELP_OF_EACH = (
    PRINT_IMPORTS
    + """
from contextlib import suppress
from rota.coordinator.admin.cli import main
for command in sys.argv[1:]:
    sys.argv = ["rota", command, "--help"]
    with suppress(SystemExit):
        main()
"""
)
CLUSTER_COMMANDS = sorted(set(COMMANDS) - {"serve", "check", "demo", "version"})


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", ROTA, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    return set(done.stderr.splitlines()[-1].split())


def packages(modules: set[str]) -> set[str]:
    return {".".join(name.split(".")[:2]) for name in modules if name.startswith("rota.")}


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_the_help_lists_every_command(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(list(arguments)) == 0
    assert capsys.readouterr().out == f"{help_text()}\n"
    for command in COMMANDS.values():
        assert f"  {command.name} " in help_text()
        assert command.summary in help_text()


def test_the_help_imports_no_client_no_broker_and_no_library() -> None:
    modules = imported_by("--help")
    assert packages(modules) == {"rota.cli", "rota.coordinator", "rota.transport"}
    assert {name for name in modules if name.startswith("rota.cli.")} == {"rota.cli.main", "rota.cli.registry"}
    assert not {"argparse", "asyncio", "construct", "importlib.metadata", "logging", "rich", "structlog"} & modules


@pytest.mark.parametrize("arguments", [["--help"], ["version"]])
def test_a_reader_that_has_gone_ends_a_command_quietly(arguments: list[str]) -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    program = "import sys; from rota.coordinator.admin.cli import main; sys.argv = ['rota', *sys.argv[1:]]; main()"
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, stdout=write_fd, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(write_fd)
    assert (done.returncode, done.stderr) == (EXIT_BROKEN_PIPE, b"")


def test_a_mistake_is_not_hidden_by_a_reader_that_has_gone() -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    program = (
        "import sys; from rota.cli import main; "
        "main._run = lambda arguments: [print('a line'), int('no number')]; main.run([])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=write_fd,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        check=False,
        timeout=60,
    )
    os.close(write_fd)
    assert "ValueError: invalid literal" in done.stderr


ROTA_CLI = "from rota.coordinator.admin.cli import main; main()"
TOPICS = "topics list --json --bootstrap-server 127.0.0.1:1"
NO_SPACE = "rota: standard output: No space left on device\n"
NO_SPACE_JSON = '{"error": {"message": "standard output: No space left on device", "codes": [], "exit_code": 1}}\n'


@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        ("--help >/dev/full", 1, NO_SPACE),
        ("topics --help >/dev/full", 1, NO_SPACE),
        ("version --json >/dev/full", 1, NO_SPACE_JSON),
        ("nosuch 2>/dev/full", 2, ""),
        ("topics 2>/dev/full", 2, ""),
        ("check 127.0.0.1:1 2>/dev/full", 1, ""),
        (f"{TOPICS} 2>/dev/full", 3, ""),
        (f"{TOPICS} 2>&-", 3, ""),
        (f"{TOPICS} <&- >&- 2>&-", 3, ""),
        ("users add u --password-file - --bootstrap-server 127.0.0.1:1 2>&1 <&-", 2, "rota: the password is empty\n"),
    ],
)
def test_cl3_standard_streams_that_are_closed_or_full_change_no_exit_code(command: str, code: int, output: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {command}', "sh", sys.executable, "-c", ROTA_CLI],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout + done.stderr) == (code, output)


def test_the_module_is_the_command() -> None:
    program = f'exec "$@" {TOPICS} >&-'
    done = subprocess.run(
        ["sh", "-c", program, "sh", sys.executable, "-m", "rota"], capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, b"Connection refused" in done.stderr) == (3, True)


def test_version_imports_the_codecs_and_neither_client_nor_broker_nor_loop() -> None:
    modules = imported_by("version")
    assert packages(modules) == {"rota.cli", "rota.coordinator", "rota.protocol", "rota.transport"}
    assert {name for name in modules if name.startswith("rota.coordinator.")} == {
        f"rota.coordinator.admin{name}" for name in ("", ".cli", ".commands", ".version")
    }
    assert not {"asyncio", "construct", "rich", "structlog", "uvloop"} & modules


def test_a_start_of_a_broker_imports_no_command_line() -> None:
    modules = imported_by("serve", "--config", "/does/not/exist")
    assert not [name for name in modules if name.startswith("rota.cli")]
    assert not {"argparse", "rich"} & modules


def test_a_command_of_the_cluster_imports_no_broker_and_no_terminal_library() -> None:
    """All of them in one process: what one imports is found."""
    command = [sys.executable, "-c", HELP_OF_EACH, *CLUSTER_COMMANDS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.count("usage: rota ") == len(CLUSTER_COMMANDS)
    modules = set(done.stderr.splitlines()[-1].split())
    assert {COMMANDS[name].module for name in CLUSTER_COMMANDS} <= modules
    of_the_broker = {name for name in modules if name.startswith("rota.coordinator.")}
    assert of_the_broker <= {"rota.coordinator.admin", "rota.coordinator.admin.cli"}
    assert not {"rich", "uvloop"} & modules


def test_an_unknown_command_is_refused_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topcs"]) == 2
    assert "no command 'topcs'; did you mean `rota topics`?" in capsys.readouterr().err


def test_an_unknown_command_does_not_reach_the_terminal_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["\x1b[2J"]) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert err.startswith("rota: there is no command '\\x1b[2J'. The commands are serve, ")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_a_parser_and_a_function(name: str) -> None:
    parser = parser_of(name)
    assert parser.prog == f"rota {name}"
    assert parser.description
