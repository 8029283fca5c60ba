"""Two processes with one checkpoint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.job_lock import LOCK, locked

HOLDER = """
import sys
from rota.spark_connector.pipelines.job_lock import locked
with locked(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_job_that_runs_is_not_started_again_until_its_process_is_killed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "out" / "_checkpoint"
    command = [sys.executable, "-c", HOLDER, str(checkpoint)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        for same in (str(checkpoint), checkpoint.as_uri()):
            with pytest.raises(OptionError, match="another process is running it"), locked(same):
                raise AssertionError
        with locked(str(tmp_path / "other")):
            holder.kill()
    for _ in range(2):
        with locked(str(checkpoint)):
            assert (checkpoint / LOCK).exists()


def test_an_object_store_has_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.spark_connector.pipelines.job_lock.file_system", lambda _: (None, "bucket/checkpoint"))
    with locked("s3://bucket/checkpoint"), locked("s3://bucket/checkpoint"):
        pass
