"""`make test` and `make interop`: pytest with what it needs beside it, `python -m tools.gate [pytest arguments]`.

Where Java and Maven are there, Apache Kafka's jars are fetched and one broker of it runs meanwhile (ROTA_PEER,
ROTA_PEER_DATA, ROTA_KAFKA_LIBS), so that the tests that compare with it run. Where they are not, those tests are
skipped, and this says so by name; with ROTA_CI set that is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from tools.peer import broker, jars

# program, what is not tested without it
WANTED = {
    "java": "what Kafka's own tools and clients make of Rota; comparisons with a running Apache Kafka",
    "mvn": "the same: it fetches Apache Kafka's jars",
    "kcat": "interop with kcat",
    "gcc": "the compiled record codec (the interpreted one is tested)",
}


def main(arguments: list[str]) -> int:
    """pytest's exit code."""
    absent = [name for name in WANTED if shutil.which(name) is None]
    for name in absent:
        print(f"SKIPPED for want of {name}: {WANTED[name]}", file=sys.stderr)
    if absent and os.environ.get("ROTA_CI"):
        print(f"in CI nothing is skipped: install {', '.join(absent)}", file=sys.stderr)
        return 1
    if {"java", "mvn"} & set(absent):
        return pytest(arguments, {})
    try:
        return beside_kafka(arguments)
    except (jars.Missing, subprocess.CalledProcessError, TimeoutError) as why:
        print(f"SKIPPED for want of Apache Kafka: {why}", file=sys.stderr)
        return 1 if os.environ.get("ROTA_CI") else pytest(arguments, {})


def beside_kafka(arguments: list[str]) -> int:
    """Raises Missing when Kafka cannot be had."""
    libs = jars.fetch()
    address = broker.start()
    try:
        told = {"ROTA_PEER": address, "ROTA_PEER_DATA": str(jars.home() / "data"), "ROTA_KAFKA_LIBS": str(libs)}
        return pytest(arguments, told)
    finally:
        broker.stop()


def pytest(arguments: list[str], told: dict[str, str]) -> int:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], env={**os.environ, **told}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
