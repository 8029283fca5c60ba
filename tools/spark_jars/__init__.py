"""The jars of Spark's own Kafka connector, which tests and a benchmark compare with ours, and of its Avro functions.

`python -m tools.spark_jars` downloads them with Maven and prints their folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from tools.peer.jars import copy_dependencies, home, only_one

POM: Final = Path(__file__).with_name("pom.xml")
JARS: Final = 5  # the connector, its token provider, Kafka's clients, commons-pool; the Avro functions


def folder() -> Path:
    """The folder of the jars, whether it exists or not."""
    return home() / "spark"


def jars() -> list[Path]:
    """All jars; an empty list when one is missing."""
    found = sorted(folder().glob("*.jar"))
    return found if len(found) == JARS else []


def fetch() -> list[Path]:
    """Download the jars with Maven unless they are there; returns them. Raises Missing, CalledProcessError."""
    with only_one("spark.lock"):
        return jars() or _download()


def _download() -> list[Path]:
    part = home() / "spark.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    copy_dependencies(POM, part)
    shutil.rmtree(folder(), ignore_errors=True)
    part.rename(folder())
    found = jars()
    assert found, f"Maven did not copy {JARS} jars to {folder()}"
    return found
