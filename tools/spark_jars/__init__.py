"""The jars of Spark's own Kafka connector, for the tests and the benchmark that set it beside ours.

`python -m tools.spark_jars` fetches them with Maven and prints their folder.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from tools.peer.jars import home, program

POM: Final = Path(__file__).with_name("pom.xml")
JARS: Final = 4  # the connector, its tokens, Kafka's clients, a pool; Spark has the rest


def folder() -> Path:
    """Where they are, or will be."""
    return home() / "spark"


def jars() -> list[Path]:
    """All of them, or none."""
    found = sorted(folder().glob("*.jar"))
    return found if len(found) == JARS else []


def fetch() -> list[Path]:
    """Copy them with Maven unless they are there; the folder appears whole. Raises Missing, CalledProcessError."""
    if there := jars():
        return there
    part = home() / "spark.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    subprocess.run([program("mvn"), "-q", "-B", "-f", str(POM), *goal], check=True, cwd=home())
    shutil.rmtree(folder(), ignore_errors=True)
    part.rename(folder())
    found = jars()
    assert found, f"Maven did not copy {JARS} jars to {folder()}"
    return found
