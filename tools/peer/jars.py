"""Kafka's jars: where they are, and how they come there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
POM = Path(__file__).with_name("pom.xml")
MAIN_JAR = "kafka-clients-*.jar"


class Missing(Exception):
    """Java, Maven or the jars are not there; says what to do."""


def home() -> Path:
    """The folder of everything that belongs to the peer. ROTA_PEER_HOME names another one."""
    return Path(os.environ.get("ROTA_PEER_HOME") or ROOT / ".peer")


def lib() -> Path | None:
    """The folder of the jars, if they have been fetched."""
    folder = home() / "lib"
    return folder if any(folder.glob(MAIN_JAR)) else None


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Missing(f"{name} is not installed")
    return found


def fetch() -> Path:
    """Copy the jars with Maven unless they are there. The folder appears whole or not at all."""
    if (there := lib()) is not None:
        return there
    part = home() / "lib.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    subprocess.run([program("mvn"), "-q", "-B", "-f", str(POM), *goal], check=True, cwd=home())
    part.rename(home() / "lib")
    found = lib()
    if found is None:
        raise Missing("Maven copied no Kafka")
    return found


def java(*arguments: str, heap: str = "512m", quiet: str = "error") -> list[str]:
    """The command line of a Java program with Kafka's jars. Raises Missing."""
    folder = lib()
    if folder is None:
        raise Missing("Kafka's jars are not there: python -m tools.peer fetch")
    log = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={quiet}"
    return [program("java"), f"-Xmx{heap}", log, "-cp", f"{folder}/*", *arguments]
