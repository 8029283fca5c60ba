"""What may come next on a command line."""

from __future__ import annotations

import shutil
import subprocess
import sys
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


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    program = tmp_path / "rota"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m rota.cli "$@"\n')
    program.chmod(0o755)
    script = f"""PATH={tmp_path}:$PATH; eval "$(rota completion bash)"
        COMP_LINE="rota topics cr"; COMP_POINT=${{#COMP_LINE}}; _rota; echo "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("create\n", "")
