"""Rota runs on Linux and macOS: no module needs a name of the standard library that only one of them has.

Which names these are is read from typeshed, as mypy brings it; one test runs a broker without them.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import mypy
from tests.unit.architecture.test_tidy import ROOT, named, sources

TYPESHED = Path(mypy.__file__).parent / "typeshed" / "stdlib"
STUBS = {
    "os": ("os/__init__.pyi",),
    "socket": ("socket.pyi", "_socket.pyi"),
    "select": ("select.pyi",),
    "signal": ("signal.pyi",),
    "time": ("time.pyi",),
    "mmap": ("mmap.pyi",),
    "fcntl": ("fcntl.pyi",),
    "resource": ("resource.pyi",),
}
USE = re.compile(rf"\b(?:{'|'.join(STUBS)})\.[A-Za-z_]+")
GUARDED = {("coordinator/log/files.py", name) for name in ("os.posix_fadvise", "os.POSIX_FADV_DONTNEED")}
"""Used behind a `hasattr`."""

BROKER = """
import sys
for missing in sys.argv[2:]:
    module, _, name = missing.partition(".")
    if hasattr(__import__(module), name):
        delattr(sys.modules[module], name)

import asyncio
from pathlib import Path
from rota.client import Consumer, ConsumerConfig, Producer, ProducerConfig
from rota.testing import running_broker

async def work(address):
    async with Producer(ProducerConfig(bootstrap_servers=address)) as producer:
        await (await producer.send("t", b"value"))
    config = ConsumerConfig(bootstrap_servers=address, group_id="g", auto_offset_reset="earliest")
    async with Consumer(config) as consumer:
        consumer.subscribe(["t"])
        async for record in consumer:
            return record.value

with running_broker(data=Path(sys.argv[1])) as broker:
    broker.create_topic("t", configs={"flush.messages": "1"})
    assert asyncio.run(work(broker.bootstrap_servers)) == b"value"
    broker.restart()
    broker.group("g").committed({("t", 0): 1})
"""


def names(statements: Iterable[ast.stmt], platform: str) -> Iterator[str]:
    """Yield what a stub defines on a platform."""
    known = {"sys": SimpleNamespace(platform=platform, version_info=sys.version_info)}
    for statement in statements:
        if isinstance(statement, ast.If):
            is_met = eval(compile(ast.Expression(statement.test), "stub", "eval"), known)  # of typeshed
            yield from names(statement.body if is_met else statement.orelse, platform)
        elif isinstance(statement, ast.ClassDef):
            yield statement.name
            yield from names(statement.body, platform)  # the members of an enum are names of its module, too
        elif isinstance(statement, ast.FunctionDef):
            yield statement.name
        elif isinstance(statement, ast.ImportFrom | ast.Import):
            yield from (alias.asname or alias.name for alias in statement.names)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id
        elif isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))


@cache
def of_linux_only() -> frozenset[str]:
    """The names that macOS does not have, with their modules."""
    found = set[str]()
    for module, stubs in STUBS.items():
        for stub in stubs:
            statements = ast.parse((TYPESHED / stub).read_text()).body
            only = set(names(statements, "linux")) - set(names(statements, "darwin"))
            found |= {f"{module}.{name}" for name in only if not name.startswith("_")}
    return frozenset(found)


def test_the_stubs_say_what_only_linux_has() -> None:
    assert {"os.fdatasync", "os.posix_fadvise", "socket.SOCK_CLOEXEC", "select.epoll"} <= of_linux_only()
    assert not {"os.fsync", "os.pwrite", "os.preadv", "socket.SO_REUSEADDR", "signal.SIGTERM"} & of_linux_only()


def test_no_module_needs_what_only_linux_has() -> None:
    found = {
        (named(path), name) for path in sources() for name in USE.findall(path.read_text()) if name in of_linux_only()
    }
    assert found == GUARDED


def test_pf2_nothing_waits_by_asyncio_shield() -> None:
    """Python 3.14 reports the errors of what nobody waits for any more: `rota.transport.shielded` does not."""
    assert [named(path) for path in sources() if "asyncio.shield(" in path.read_text()] == []


OLD_PYTHON = """#!/bin/sh
exec {python} -c 'import sys; sys.version_info = (3, 10, 13, "final", 0); exec(sys.argv[2])' "$@"
"""


def test_pf4_make_says_which_python_it_needs(tmp_path: Path) -> None:
    old = tmp_path / "python3.10"
    old.write_text(OLD_PYTHON.format(python=sys.executable))
    old.chmod(0o755)
    command = ["make", "-C", str(ROOT), "demo", f"VENV={tmp_path / 'venv'}", f"PYTHON={old}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "needs Python 3.11 or newer, and this is 3.10" in done.stderr
    assert done.returncode
    assert not (tmp_path / "venv").exists(), "the next make, with another Python, would use it"


def test_a_broker_with_a_disk_works_without_what_only_linux_has(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BROKER, str(tmp_path), *sorted(of_linux_only())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
