"""The image, as far as it can be held without a Docker engine: what it copies, what it runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
ROTA = str(Path(sys.executable).with_name("rota"))
STOP_S = 20


def image_command() -> list[str]:
    found = re.search(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert found is not None
    command: list[str] = json.loads(found[1])
    return command


def test_the_files_that_the_image_copies_exist() -> None:
    copied = [
        line.split()[1:-1] for line in DOCKERFILE.splitlines() if line.startswith("COPY ") and "--from" not in line
    ]
    missing = [name for names in copied for name in names if not (ROOT / name).exists()]
    assert copied
    assert not missing
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert sent == {name for names in copied for name in names}


def test_the_image_has_its_own_user_and_a_health_check() -> None:
    assert re.search(r"^USER rota$", DOCKERFILE, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*", DOCKERFILE, re.MULTILINE)
    assert re.search(r"^ARG BASE=", DOCKERFILE, re.MULTILINE)


def test_its_command_serves_on_two_listeners_and_the_health_check_finds_it(tmp_path: Path) -> None:
    """The same command with a folder and free ports of ours."""
    read, write = os.pipe()
    ours = [
        re.sub(r"0\.0\.0\.0:\d+", "127.0.0.1:0", word).replace("/var/lib/rota/data", str(tmp_path))
        for word in image_command()
    ]
    process = subprocess.Popen([ROTA, *ours, "--ready-fd", str(write)], pass_fds=[write], stderr=subprocess.PIPE)
    os.close(write)
    with os.fdopen(read) as ready:
        address = ready.readline().strip()
    healthy = subprocess.run([ROTA, "check", address], timeout=STOP_S, check=False)
    process.terminate()
    _, answer = process.communicate(timeout=STOP_S)
    assert process.returncode == 0, answer
    assert healthy.returncode == 0
    assert subprocess.run([ROTA, "check", address], timeout=STOP_S, capture_output=True, check=False).returncode == 1
