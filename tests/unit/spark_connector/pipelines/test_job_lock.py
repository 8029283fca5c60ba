"""Two processes with one checkpoint."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines import group_activity
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


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_mounted_file_system_without_locks_does_not_stop_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """As NFS without its lock service, or an object store that is mounted with FUSE."""

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(str(tmp_path)):
        pass
    assert "no locks" in caplog.text
    assert str(tmp_path) in caplog.text


def test_other_errors_of_the_disk_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="Input/output"), locked(str(tmp_path)):
        raise AssertionError


def test_group_activity_says_that_it_runs_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--bootstrap-servers", "127.0.0.1:1", "--output", str(tmp_path)]
    with locked(f"{tmp_path}/_checkpoint"):
        assert group_activity.main(arguments) == 2
    assert "group_activity: " in (message := capsys.readouterr().err)
    assert "another process is running it" in message
