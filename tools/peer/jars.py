"""Kafka's jars: the folder that has them, and their download."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
POM = Path(__file__).with_name("pom.xml")
UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")  # a quarter of a client's CPU time
# for a Java that does little
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", *UNVERIFIED)
MAIN_JAR = "connect-file-*.jar"  # the one that was added last: an older folder is downloaded again


class Missing(Exception):
    """Java, Maven or the jars are missing; the message says what to do."""


def home() -> Path:
    """The folder for Kafka's jars, data and logs: ROTA_PEER_HOME, or .peer."""
    return Path(os.environ.get("ROTA_PEER_HOME") or ROOT / ".peer")


def lib() -> Path | None:
    """The folder of the jars; None when they have not been downloaded."""
    folder = home() / "lib"
    return folder if any(folder.glob(MAIN_JAR)) else None


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Missing(f"{name} is not installed")
    return found


@contextmanager
def only_one(name: str) -> Iterator[None]:
    """Hold the lock file `name` in `home()`: test processes that start together download once, one after the other."""
    home().mkdir(parents=True, exist_ok=True)
    with (home() / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch() -> Path:
    """Download the jars with Maven unless they are there; returns their folder, which is complete."""
    with only_one("lib.lock"):
        existing = lib()
        return _download() if existing is None else existing


def _download() -> Path:
    part = home() / "lib.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    copy_dependencies(POM, part)
    shutil.rmtree(home() / "lib", ignore_errors=True)
    part.rename(home() / "lib")
    found = lib()
    if found is None:
        raise Missing("Maven did not copy Kafka's jars")
    return found


def copy_dependencies(pom: Path, folder: Path) -> None:
    """Have Maven download the jars of a POM into a folder. Raises Missing, CalledProcessError."""
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    quick = " ".join((*QUICK, os.environ.get("MAVEN_OPTS", "")))  # less than half of its processor time
    command = [program("mvn"), "-q", "-B", "-f", str(pom), *goal]
    subprocess.run(command, check=True, cwd=home(), env={**os.environ, "MAVEN_OPTS": quick})


def java(*arguments: str, heap: str = "512m", quiet: str = "error") -> list[str]:
    """The command line of a Java class from Kafka's jars. `quiet` is the lowest level logged. Raises Missing."""
    folder = lib()
    if folder is None:
        raise Missing("Kafka's jars are missing: python -m tools.peer fetch")
    log = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={quiet}"
    return [program("java"), f"-Xmx{heap}", log, "-cp", f"{folder}/*", *arguments]
