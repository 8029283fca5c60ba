"""What a start imports, by count: nearly all of the time until the first output or record is that of imports.

The limits have room for the standard library of another Python; times are measured by benchmarks/test_start.py. Raise a
limit of ours only for a module that the start cannot do without.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

ROTA = "from rota.coordinator.admin.cli import main; sys.argv = ['rota', *sys.argv[1:]]; main()"
FIRST_RECORD = """
from rota.testing import running_broker
with running_broker() as running:
    producer = Producer({"bootstrap.servers": running.bootstrap_servers})
    producer.produce("t", b"first")
    assert producer.flush(30) == 0
    at_the_first_record = set(sys.modules)
"""
# at the end of the process, or at the first record
COUNTED = """
import atexit, sys
{before}
known = set(sys.modules)
found = lambda: globals().get("at_the_first_record", set(sys.modules)) - known
atexit.register(lambda: print("\\nimported", *found(), file=sys.stderr))
{code}
"""
OUR_PACKAGES = {"rota", "mypy_extensions"}  # the compiled codecs import the latter
LIBRARIES = OUR_PACKAGES | {"construct", "structlog", "colorama", "greenlet"}  # structlog imports the last two


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
        (ROTA, ("--help",), "", OUR_PACKAGES, 7, 60),
        (ROTA, ("version",), "", OUR_PACKAGES, 16, 165),
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
