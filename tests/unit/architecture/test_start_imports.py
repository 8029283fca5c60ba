"""What a start imports, by count: nearly all of the time until the first output or record is that of imports.

The limits have room for the standard library of another Python; times are measured by benchmarks/test_start.py. Raise a
limit of ours only for a module that the start cannot do without.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROTA = "from rota.coordinator.admin.cli import main; sys.argv = ['rota', *sys.argv[1:]]; main()"
FIRST_RECORD = """
from rota.testing import running_broker
with running_broker() as running:
    producer = Producer({"bootstrap.servers": running.bootstrap_servers})
    producer.produce("t", b"first")
    assert producer.flush(30) == 0
    then = set(sys.modules)
"""
IDLE_BROKER = """
import os, signal, socket, struct, threading
from rota.coordinator.admin.cli import main

def ask():
    host, port = os.read(told, 100).rsplit(b":", 1)  # a host as text would load the tables of international names
    with socket.create_connection((host, int(port))) as connected:
        connected.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
        assert connected.recv(4)
    global then
    then = set(sys.modules)
    os.kill(os.getpid(), signal.SIGTERM)

told, tells = os.pipe()
threading.Thread(target=ask, daemon=True).start()
sys.argv = ["rota", "serve", "--listen", "127.0.0.1:0", "--ready-fd", str(tells), "--data", *sys.argv[1:]]
main()
"""
# at the end of the process, or `then`
COUNTED = """
import atexit, sys
{before}
known = set(sys.modules)
found = lambda: globals().get("then", set(sys.modules)) - known
atexit.register(lambda: print("\\nimported", *found(), file=sys.stderr))
{code}
"""
OUR_PACKAGES = {"rota", "mypy_extensions"}  # the compiled codecs import the latter
LIBRARIES = OUR_PACKAGES | {"construct", "structlog", "colorama", "greenlet"}  # structlog imports the last two
BROKER_LIBRARIES = LIBRARIES | {"uvloop", "_cython_3_3_0", "cython_runtime"}
# what an idle broker does not need: each would be a part of its memory that one sees
NOT_IDLE = {
    *("bz2", "encodings.idna", "glob", "hashlib", "hmac", "http", "lzma", "pdb", "pprint", "random", "secrets"),
    *("shutil", "stringprep", "tempfile", "unicodedata", "xml"),
}


def imported(code: str, *arguments: str, before: str = "") -> set[str]:
    """Return the modules that the code imports."""
    command = [sys.executable, "-c", COUNTED.format(before=before, code=code), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    (line,) = (
        line for line in done.stderr.splitlines() if line.startswith("imported")
    )  # librdkafka's threads log, too
    return set(line.split()[1:])


@pytest.mark.parametrize(
    ("code", "arguments", "before", "libraries", "ours_max", "all_max"),
    [
        (ROTA, ("--help",), "", OUR_PACKAGES, 9, 60),
        (ROTA, ("version",), "", OUR_PACKAGES, 17, 165),
        (FIRST_RECORD, (), "from confluent_kafka import Producer", LIBRARIES, 300, 430),
    ],
    ids=["help", "version", "first record in a test"],
)
def test_a_start_imports_few_modules_of_ours_and_no_library_that_it_does_not_need(
    code: str, arguments: tuple[str, ...], before: str, libraries: set[str], ours_max: int, all_max: int
) -> None:
    modules = imported(code, *arguments, before=before)
    ours = {name for name in modules if name.partition(".")[0] == "rota"}
    assert {name.partition(".")[0] for name in modules} - sys.stdlib_module_names <= libraries | {"rota"}
    assert 1 < len(ours) <= ours_max, sorted(ours)
    assert len(modules) <= all_max, sorted(modules)


def test_an_idle_broker_has_imported_little(tmp_path: Path) -> None:
    """Of a broker's memory before it has any data three quarters are modules (benchmarks/README.md)."""
    modules = imported(IDLE_BROKER, str(tmp_path))
    ours = {name for name in modules if name.partition(".")[0] == "rota"}
    assert {name.partition(".")[0] for name in modules} - sys.stdlib_module_names <= BROKER_LIBRARIES
    assert not NOT_IDLE & modules
    assert 200 < len(ours) <= 264, sorted(ours)
    assert len(modules) <= 450, sorted(modules)
