"""What may come next on a command line."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from rota.cli.completion import SCRIPTS, completions
from rota.cli.main import run
from rota.cli.registry import COMMANDS
from rota.client import Admin, AdminConfig, NewTopic
from rota.testing import running_broker


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rota ", [*COMMANDS]),
        ("rota to", ["topics"]),
        ("rota nonsense ", []),
        ("rota topics de", ["describe", "delete"]),
        ("rota groups reset g --to-l", ["--to-latest"]),
        ("rota consume --value-format ", ["string", "json", "hex", "base64"]),
        ("rota configs describe br", ["broker", "broker-logger"]),
        ("rota serve --mem", ["--memory"]),
        ("rota cluster --js", ["--json"]),
        ("rota 'open", []),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    assert completions(line) == words


async def test_topics_of_the_cluster_are_offered_and_hostile_ones_are_not() -> None:
    import asyncio

    with running_broker() as running:
        address = running.bootstrap_servers
        async with Admin(AdminConfig(bootstrap_servers=address)) as admin:
            await admin.create_topics([NewTopic("orders"), NewTopic("other")])
        line = f"rota topics describe --bootstrap-server {address} or"
        assert await asyncio.to_thread(completions, line) == ["orders"]
        line = f"rota consume --bootstrap-server {address} o"
        assert await asyncio.to_thread(completions, line) == ["orders", "other"]


def test_a_broker_that_does_not_answer_gives_no_names() -> None:
    assert completions("rota topics describe --bootstrap-server 127.0.0.1:1 ") == []


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert "rota completion words" in capsys.readouterr().out


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture
def rota(tmp_path: Path) -> Path:
    """A folder with a program `rota` that completes, and writes what else it is called with to a file `called`."""
    program = tmp_path / "rota"
    complete = f'[ "$1" = completion ] && exec {sys.executable} -m rota "$@"'
    program.write_text(f'#!/bin/sh\n{complete}\necho "$@" > {tmp_path}/part && mv {tmp_path}/part {tmp_path}/called\n')
    program.chmod(0o755)
    return tmp_path


@needs("bash")
def test_bash_completes_with_the_script(rota: Path) -> None:
    script = f"""PATH={rota}:$PATH; eval "$(rota completion bash)"
        COMP_LINE="rota topics cr"; COMP_POINT=${{#COMP_LINE}}; _rota; echo "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("create\n", "")


@needs("fish")
@pytest.mark.parametrize(
    ("line", "found"), [("rota topics cr", "create\n"), ("rota topics create --pa", "--partitions\n")]
)
def test_fish_completes_with_the_script(rota: Path, line: str, found: str) -> None:
    script = f"set -x PATH {rota} $PATH; rota completion fish | source; complete -C '{line}'"
    home = {**os.environ, "HOME": str(rota), "XDG_CONFIG_HOME": str(rota), "XDG_DATA_HOME": str(rota)}
    command = ["fish", "--no-config", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=home)
    assert (done.stdout, done.stderr) == (found, "")


@needs("zsh")
def test_zsh_completes_with_the_script(rota: Path) -> None:
    """Its completion needs a terminal: the Tab key completes a line, which then is run."""
    setup = (
        f"""PATH={rota}:$PATH; autoload -U compinit; compinit -u -D; eval "$(rota completion zsh)"; PS1='rea''dy> '\n"""
    )
    ours, theirs = pty.openpty()
    home = {**os.environ, "HOME": str(rota), "ZDOTDIR": str(rota), "TERM": "dumb"}
    with subprocess.Popen(["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=home) as shell:
        os.close(theirs)
        os.write(ours, setup.encode())
        printed = b""
        while b"ready> " not in printed:
            printed += os.read(ours, 4096)
        os.write(ours, b"rota topics cr\t --dr\t\nexit\n")
        with suppress(OSError):  # the terminal has ended
            while more := os.read(ours, 4096):
                printed += more
        assert shell.wait(60) == 0
    os.close(ours)
    assert (rota / "called").read_text() == "topics create --dry-run\n", printed
