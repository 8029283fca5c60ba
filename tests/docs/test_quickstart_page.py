"""docs/QUICKSTART.md: the commands of the second terminal, run one after the other on one broker."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rota.testing import running_broker

PAGE = (Path(__file__).parents[2] / "docs" / "QUICKSTART.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMAND_S_MAX = 60


def test_the_commands_print_the_output_of_the_page() -> None:
    start, produce, send_request = BLOCKS
    assert "rota serve --memory " in start, "tests/docs/test_readme.py runs a broker in memory"
    rota = str(Path(sys.executable).with_name("rota"))
    printed = {}
    with running_broker() as broker:
        environment = {**os.environ, "ROTA_BOOTSTRAP_SERVER": broker.bootstrap_servers}
        for line in [*produce.splitlines(), *send_request.splitlines()]:
            command = [rota, *shlex.split(line)[1:]]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False
            )
            assert done.returncode == 0, line + "\n" + done.stdout + done.stderr
            printed[line] = done.stdout
    assert sorted(printed[produce.splitlines()[-1]].splitlines()) == ['{"id": 1}', '{"id": 2}']
    assert "billing" in printed["rota groups list"]
    assert "joined" in printed["rota groups why billing"]
    assert "left" in printed["rota groups why billing"]
