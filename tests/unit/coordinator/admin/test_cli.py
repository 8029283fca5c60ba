"""The command `rota` as a process: ready, stopped, refused, cut short."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROTA = (sys.executable, "-m", "rota.coordinator")


@contextmanager
def rota(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker that is ready, and its address."""
    reads, writes = os.pipe()
    command = [*ROTA, "serve", "--listen", "127.0.0.1:0", "--ready-fd", str(writes), *arguments]
    with subprocess.Popen(command, pass_fds=[writes], stderr=subprocess.PIPE, text=True) as process:
        os.close(writes)
        try:
            with os.fdopen(reads) as ready:
                yield process, ready.read().strip()
        finally:
            process.kill()


def request_versions(address: str) -> bytes:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as peer:
        message = struct.pack(">hhih", 18, 0, 7, 1) + b"x"
        peer.sendall(struct.pack(">i", len(message)) + message)
        with peer.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4))
            return stream.read(size)


def test_it_serves_until_sigterm_and_leaves_with_0() -> None:
    with rota("--memory", "--preset", "dev") as (process, address):
        answer = request_versions(address)
        assert struct.unpack_from(">ihi", answer)[:2] == (7, 0)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate()
        assert process.returncode == 0
        lines = [line for line in log.splitlines() if '"listening"' in line]
        assert len(lines) == 1
        assert f'"port": {address.rpartition(":")[2]}' in lines[0]


INTERRUPTED = """
import sys
from rota.coordinator.admin import cli, options

def interrupted(_):
    raise KeyboardInterrupt

cli.import_module = options.parse_plain = interrupted
sys.argv[1:] = {arguments}
cli.main()
"""


@pytest.mark.parametrize("arguments", [["topics", "list"], ["serve", "--memory"]])
def test_ctrl_c_during_the_imports_is_silent(arguments: list[str]) -> None:
    """Law CL3."""
    program = INTERRUPTED.replace("{arguments}", repr(arguments))
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")


def test_a_second_broker_on_the_same_data_is_refused_in_one_line(tmp_path: Path) -> None:
    with rota("--data", str(tmp_path)) as (_, address):
        assert address
        second = subprocess.run(
            [*ROTA, "serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 2
        assert "Traceback" not in second.stderr
        assert str(tmp_path) in second.stderr


def test_a_port_in_use_is_reported_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [*ROTA, "serve", "--memory", "--listen", address], capture_output=True, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert address in done.stderr
    assert "--listen" in done.stderr
