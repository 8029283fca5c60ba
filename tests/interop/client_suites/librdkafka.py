"""librdkafka's tests (C) that need brokers, built from the sources in the Rust package rdkafka-sys."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.interop.client_suites.kit import SUITE_S_MAX, Unavailable, fetch, home, settle
from tests.interop.client_suites.left_out import LIBRDKAFKA, LIBRDKAFKA_ADMIN
from tools.peer.jars import java

PACKAGE = "4.9.0"  # of rdkafka-sys: librdkafka 2.10.0
MANIFEST = f"""[package]
name = "client_suites"
version = "1.0.0"
edition = "2021"

[dependencies]
rdkafka-sys = "={PACKAGE}"
"""
OPTIONS = ("--disable-ssl", "--disable-gssapi", "--disable-curl", "--disable-zstd", "--disable-lz4-ext")
PARALLEL = 3
# 0119_consumer_auth has 5 s for four programs in Java
SETTINGS = "test.topic.random=true\ntest.timeout.multiplier=2\n"
PROGRAMS = {"kafka-topics.sh": "TopicCommand", "kafka-acls.sh": "AclCommand"}  # of Kafka, which tests call


def built() -> Path:
    """Return librdkafka's folder `tests` with `test-runner`. Raises Unavailable without cargo, compiler or network."""
    if any(shutil.which(program) is None for program in ("cargo", "g++", "make")):
        raise Unavailable("cargo, g++ or make is not installed")
    folder = home() / f"librdkafka-{PACKAGE}-acls"
    if not (folder / "tests" / "test-runner").exists():
        part = home() / f"librdkafka-part-{os.getpid()}"
        (part / "src").mkdir(parents=True)
        (part / "src" / "lib.rs").touch()
        (part / "Cargo.toml").write_text(MANIFEST)
        fetch(["cargo", "vendor", "-q", "vendor"], part)
        source = part / "librdkafka"
        shutil.move(part / "vendor" / "rdkafka-sys" / "librdkafka", source)
        _adapt(source / "tests")
        fetch(["./configure", *OPTIONS], source)
        fetch(["make", "-j2", "libs"], source)
        fetch(["make", "-j2", "-C", "tests", "test-runner"], source)
        settle(source, folder)
        shutil.rmtree(part, ignore_errors=True)
    return folder / "tests"


def _adapt(tests: Path) -> None:
    """Leave LIBRDKAFKA_ADMIN's parts of one long test out."""
    path = tests / "0081-admin.c"
    calls = re.compile(rf"^( +)do_test_(?:{'|'.join(LIBRDKAFKA_ADMIN)})\(.*rk.*;", re.MULTILINE)
    path.write_text(calls.sub(r"\1;", path.read_text()))


def run(bootstrap: str, tests: Path, only: Sequence[str] = ()) -> dict[str, str]:
    """Run all but LIBRDKAFKA's, or those of `only` one after the other; return "passed", "skipped: why" or
    "failed: why" of each.
    """
    report = tests / "report.json"
    report.unlink(missing_ok=True)
    (tests / "test.conf").write_text(f"metadata.broker.list={bootstrap}\n{SETTINGS}")
    programs = tests / "kafka" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name, kafka_class in PROGRAMS.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {_command(kafka_class)} "$@"\n')
        (programs / name).chmod(0o755)
    given = {
        "LD_LIBRARY_PATH": "../src:../src-cpp",
        "TEST_KAFKA_VERSION": "4.1.0",
        "TEST_REPORT": str(report),
        "KAFKA_PATH": str(tests / "kafka"),
        "BROKERS": bootstrap,
        "TESTS": ",".join(name[:4] for name in only),
        "TESTS_SKIP": ",".join(name[:4] for name in LIBRDKAFKA),
    }
    with (tests / ("output-again.txt" if only else "output.txt")).open("wb") as output:
        subprocess.run(
            ["./test-runner", "-L", "-Q", f"-p{1 if only else PARALLEL}"],
            cwd=tests,
            env={**os.environ, **{name: value for name, value in given.items() if value}},
            stdout=output,
            stderr=output,
            check=False,
            timeout=SUITE_S_MAX,
        )
    return outcomes(report)


def _command(kafka_class: str) -> str:
    return " ".join(f"'{word}'" for word in java("-XX:TieredStopAtLevel=1", f"org.apache.kafka.tools.{kafka_class}"))


def outcomes(report: Path) -> dict[str, str]:
    """The outcome of each test in the report of the test runner; a runner that wrote none has failed."""
    if not report.exists():
        return {"test-runner": "failed: it wrote no report"}
    words = {"PASSED": "passed", "SKIPPED": "skipped"}
    tests = json.loads(report.read_text())["tests"]
    return {name: f"{words.get(test['state'], 'failed')}: {test['extra']}" for name, test in tests.items()}
