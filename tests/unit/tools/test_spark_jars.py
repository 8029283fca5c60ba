"""The download of the jars of Spark's connector."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
MAVEN = """#!/bin/sh
for word in "$@"; do case "$word" in -DoutputDirectory=*) folder="${word#*=}";; esac; done
echo run >> "$MAVEN_RUNS"
for jar in a b c d e; do mkdir "$folder/$jar.lock" || exit 1; rmdir "$folder/$jar.lock"; : > "$folder/$jar.jar"; done
"""


def test_processes_that_start_together_download_once(tmp_path: Path) -> None:
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text(MAVEN)
    maven.chmod(0o755)
    runs = tmp_path / "runs"
    settings = {"ROTA_PEER_HOME": str(tmp_path / "peer"), "MAVEN_RUNS": str(runs)}
    env = {**os.environ, **settings, "PATH": f"{maven.parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "tools.spark_jars"]
    together = [subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    folders = {process.communicate(timeout=60)[0].strip() for process in together}
    assert [process.returncode for process in together] == [0] * 6
    assert folders == {str(tmp_path / "peer" / "spark")}
    assert runs.read_text() == "run\n"
