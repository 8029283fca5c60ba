"""Runs pytest, with an Apache Kafka beside it where there can be one: `python -m tools.gate [pytest arguments]`.

Where Java and Maven are installed, Apache Kafka's jars are downloaded and one broker runs during the tests: ROTA_PEER,
ROTA_PEER_DATA and ROTA_KAFKA_LIBS have its address, its data folder and the jars. Elsewhere the tests that need it are
skipped and the missing program is printed; with ROTA_CI set that is a failure.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

from tools.peer import broker, jars

# program and what is not tested without it
PROGRAMS = {
    "java": "Kafka's own tools and clients against Rota; comparisons with a running Apache Kafka",
    "mvn": "the same: Maven downloads Apache Kafka's jars",
    "kcat": "interop with kcat",
    "chromium": "the console in a browser",
    "systemd-analyze": "the unit file of the service",
    "gcc": "the compiled record codec (the interpreted one is tested)",
}


def main(arguments: list[str]) -> int:
    """Returns pytest's exit code."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    for name in absent:
        print(f"SKIPPED because {name} is not installed: {PROGRAMS[name]}", file=sys.stderr)
    if absent and os.environ.get("ROTA_CI"):
        print(f"in CI nothing is skipped: install {', '.join(absent)}", file=sys.stderr)
        return 1
    if {"java", "mvn"} & set(absent):
        return run_pytest(arguments, {})
    try:
        return run_beside_kafka(arguments)
    except (jars.Missing, subprocess.CalledProcessError, TimeoutError) as failure:
        print(f"SKIPPED because Apache Kafka cannot run: {failure}", file=sys.stderr)
        return 1 if os.environ.get("ROTA_CI") else run_pytest(arguments, {})


def run_beside_kafka(arguments: list[str]) -> int:
    """Run pytest while a Kafka broker runs; returns its exit code. Raises Missing, CalledProcessError, TimeoutError."""
    libs = jars.fetch()
    address = broker.start()
    try:
        variables = {"ROTA_PEER": address, "ROTA_PEER_DATA": str(jars.home() / "data"), "ROTA_KAFKA_LIBS": str(libs)}
        return run_pytest(arguments, variables)
    finally:
        broker.stop()


def run_pytest(arguments: list[str], variables: dict[str, str]) -> int:
    """The order of sets is that of `make sim`, so that a seed tells the same story there."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    environment = {"PYTHONHASHSEED": "0", **os.environ, **variables}
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
